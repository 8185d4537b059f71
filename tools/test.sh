#!/usr/bin/env bash
# ./dev test [unit|e2e|sdk|NAME...]: NAME selects unit tests (a program of ctest), and end-to-end tests and those of the
# SDK whose name contains it. AIMASTER_TREE names another variant than `default` to build and test; results for machines
# lie in TREE/results/*.xml.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/build_tree.sh

variant=${AIMASTER_TREE:-default}
tree=$(tree_of "$variant")
results=$PWD/$tree/results

unit() {
  build_tree "$variant" all || return
  mkdir -p "$results"
  ctest --test-dir "$tree" --output-on-failure -j "$(nproc)" --output-junit "$results/unit.xml" "$@"
}

some_e2e() {
  AIMASTER_BIN=$PWD/$tree/bin /usr/bin/python3 -m pytest tests/e2e -q "$@"
}

# The tests mostly wait for processes, so more of them run at a time than there are cores; but for those that need the
# machine for themselves.
e2e() {
  local status=0 alone=0
  build_tree "$variant" programs || return
  tools/install_stack_tools.sh || echo "tests of stack tools are left out" >&2
  mkdir -p "$results"
  some_e2e -m 'not alone' -n "${AIMASTER_TEST_JOBS:-4}" --junitxml "$results/e2e.xml" "$@" || status=$?
  some_e2e -m alone --junitxml "$results/e2e-alone.xml" "$@" || alone=$?
  if ((alone == 5)); then return "$status"; fi # 5: pytest found no such test
  if ((status == 5)); then status=0; fi
  return $((status > alone ? status : alone))
}

# The SDK by itself, on every interpreter that is there.
sdk() {
  mkdir -p "$results"
  /usr/bin/python3 -m pytest tests/sdk -q -n "${AIMASTER_TEST_JOBS:-4}" --junitxml "$results/sdk.xml" "$@"
}

case ${1:-all} in
  all)
    tools/install_packages.sh build test sdk
    unit && sdk && e2e
    ;;
  sdk)
    tools/install_packages.sh test sdk
    sdk
    ;;
  unit)
    tools/install_packages.sh build
    unit
    ;;
  e2e)
    tools/install_packages.sh build test
    e2e
    ;;
  *)
    tools/install_packages.sh build test sdk
    pattern=$(IFS='|' && echo "$*")
    failed=0 found=0
    build_tree "$variant" all
    if [[ $(ctest --test-dir "$tree" -N -R "$pattern") == *"Test  "*"#"* ]]; then
      found=1
      unit -R "$pattern" || failed=1
    fi
    note() {
      if (($1 == 5)); then return; fi # pytest found no such test
      found=1
      if (($1 != 0)); then failed=1; fi
    }
    status=0
    sdk -k "${pattern//|/ or }" || status=$?
    note "$status"
    status=0
    e2e -k "${pattern//|/ or }" || status=$?
    note "$status"
    if ((!found)); then
      echo "./dev test: no test's name contains: $*" >&2
      exit 2
    fi
    exit "$failed"
    ;;
esac
