#!/usr/bin/env bash
# ./dev bench [NAME...]: micro benchmarks (programs *_bench) and the times of whole jobs, beside torchrun's.
# Figures are only worth something from an optimised build on a quiet machine, so this builds and uses build-release.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/build_tree.sh

tools/install_packages.sh build test
build_tree release all
names=("$@")
wanted() { ((${#names[@]} == 0)) || [[ " ${names[*]} " == *" $1 "* ]]; }

while IFS= read -r program; do
  if wanted "$(basename "$program")"; then
    echo "== $(basename "$program")"
    "$program"
  fi
done < <(find build-release -type f -executable -name '*_bench' | sort)
if wanted end_to_end; then
  echo "== end_to_end"
  /usr/bin/python3 bench/end_to_end.py --bin build-release/bin --json build-release/end_to_end.json
fi
