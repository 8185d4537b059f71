#!/usr/bin/env bash
# ./dev fuzz [SECONDS] [NAME...]: libFuzzer on each parser, beginning with the inputs kept in tests/corpus.
# An input that crashes is left in build-fuzz/crashes; add it to tests/corpus/NAME, and it is a test from then on.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/build_tree.sh

seconds=60
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
tools/install_packages.sh build check
names=("$@")
if ((${#names[@]} == 0)); then mapfile -t names < <(cd tests/corpus && ls); fi
build_tree fuzz "${names[@]}"
mkdir -p build-fuzz/crashes
failed=0
for name in "${names[@]}"; do
  echo "== $name, $seconds s"
  mkdir -p "build-fuzz/corpus/$name"
  "build-fuzz/fuzz/$name" -max_total_time="$seconds" -timeout=10 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/crashes/$name-" "build-fuzz/corpus/$name" "tests/corpus/$name" 2>&1 | tail -n 15 ||
    { failed=1 && echo "FAILED $name: the input is in build-fuzz/crashes" >&2; }
done
exit "$failed"
