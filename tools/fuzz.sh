#!/usr/bin/env bash
# ./dev fuzz [SECONDS] [NAME...]: libFuzzer on each parser, beginning with the inputs kept in tests/corpus.
# An input that crashes is left in build-asan/crashes; add it to tests/corpus/NAME, and it is a test from then on.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/build_tree.sh

seconds=60
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
tools/install_packages.sh build check
# CI asks the same questions each time, so that a change is judged by itself; people ask others each time.
seed=()
if [[ ${CI:-} == true ]]; then seed=(-seed=1); fi
names=("$@")
if ((${#names[@]} == 0)); then mapfile -t names < <(cd tests/corpus && ls); fi
build_tree asan "${names[@]}"
mkdir -p build-asan/crashes build-asan/logs

fuzz() {
  mkdir -p "build-asan/corpus/$1"
  if ! "build-asan/fuzz/$1" -max_total_time="$seconds" -timeout=30 "${seed[@]}" -print_final_stats=1 \
    -artifact_prefix="build-asan/crashes/$1-" "build-asan/corpus/$1" "tests/corpus/$1" >"build-asan/logs/$1" 2>&1; then
    tail -n 60 "build-asan/logs/$1"
    echo "FAILED $1: the input is in build-asan/crashes"
    return 1
  fi
  echo "ok $1: $(awk '/number_of_executed_units/ {print $2}' "build-asan/logs/$1") inputs in $seconds s"
}

failed=0 running=0
for name in "${names[@]}"; do
  if ((running == $(nproc))); then
    wait -n || failed=1
    running=$((running - 1))
  fi
  fuzz "$name" &
  running=$((running + 1))
done
while ((running > 0)); do
  wait -n || failed=1
  running=$((running - 1))
done
exit "$failed"
