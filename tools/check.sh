#!/usr/bin/env bash
# ./dev check: what CI runs, word for word. Named checks, each one line with its time; a check that fails says what to
# do and shows its log. The others still run, so that one push shows all that is wrong.
set -euo pipefail
shopt -s nullglob
cd "$(dirname "$0")/.."
export CI=true # warnings are errors
export AIMASTER_TREE=check
export AIMASTER_TEST_FULL=1 # as often as the promises say; AIMASTER_TEST_LONG=1 adds what takes many minutes
export AIMASTER_TEST_JOBS=3 # they mostly wait, but those that wait must not wait for all others too
check_tree=$PWD/build-check
logs=$check_tree/logs
mkdir -p "$logs"
failed=()

# check NAME REMEDY COMMAND...
check() {
  local name=$1 remedy=$2 began=$SECONDS
  shift 2
  if "$@" >"$logs/$name.log" 2>&1 </dev/null; then
    printf 'ok      %-12s %4d s\n' "$name" $((SECONDS - began))
    return
  fi
  failed+=("$name")
  printf 'FAILED  %-12s %4d s\n' "$name" $((SECONDS - began))
  echo "---- log of '$name' (its last 300 lines)"
  tail -n 300 "$logs/$name.log"
  echo "---- '$name' failed. What to do: $remedy"
}

build() { (source tools/build_tree.sh && build_tree check all); }
format() { (source tools/build_tree.sh && source_files | xargs -0 clang-format-19 --dry-run -Werror); }
shell() { shellcheck -x dev .ci/run tools/*.sh; }
sanitizers() {
  (source tools/build_tree.sh && build_tree asan all) &&
    ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
      ctest --test-dir build-asan --output-on-failure -j "$(nproc)" --output-junit "$check_tree/results/sanitizers.xml"
}

threads() {
  (source tools/build_tree.sh && build_tree tsan agent_test agent_unit_test master_test wire_test programs) &&
    TSAN_OPTIONS=halt_on_error=1 ctest --test-dir build-tsan --output-on-failure -j "$(nproc)" \
      -R '^(agent_test|agent_unit_test|master_test|wire_test)$' --output-junit "$check_tree/results/threads.xml" &&
    AIMASTER_BIN=$PWD/build-tsan/bin TSAN_OPTIONS=halt_on_error=1 AIMASTER_TEST_FULL=0 /usr/bin/python3 -m pytest \
      tests/e2e -q -n 2 -k 'test_exit_status or test_crashes' --junitxml "$check_tree/results/threads-e2e.xml"
}
# What has to do with whose processes and files they are. The rest is the same for everybody: it ran as root.
ordinary_user() {
  local same=(async completion complaints elasticbatch goodput hangs judge limits_and_records link_loss listings notify
    policies pytorch_failures reading replay rules stories tensorflow tf_config torchrun) names
  printf -v names 'test_%s or ' "${same[@]}"
  AIMASTER_BIN=$check_tree/bin AIMASTER_RESULTS=$check_tree/results/ordinary-user.xml AIMASTER_TEST_FULL=0 \
    tests/e2e/run_unprivileged.sh -m 'not training and not alone' -k "not (${names% or })"
}
simulation() { "$check_tree/bin/aimaster-sim" --regressions src/sim/regressions.txt --seeds 20000; }
collectives() { "$check_tree/bin/aimaster-c4d-sim" --regressions src/sim/collectives/regressions.txt --seeds 400; }

rm -rf "$check_tree/results"
mkdir -p "$check_tree/results"
check packages "the log names what could not be installed" tools/install_packages.sh build test sdk check
check format "run ./dev fmt" format
check layering "each line says which include to move, and where" tools/check_layering.py
check shell "shellcheck explains each finding under its SC number" shell
check build "warnings are errors here: CI=true ./dev build all shows the same" build
check repository "each line says what to change" tools/check_repo.py --bin "$check_tree/bin"
check unit "run one test alone with ./dev test NAME" tools/test.sh unit
if [[ -n ${AIMASTER_TEST_TENSORFLOW:-} ]]; then
  check tensorflow "the log says what pip could not install" tools/install_tensorflow.sh
fi
check sdk "tests/sdk says which interpreter failed; ./dev test sdk runs them all" tools/test.sh sdk
check e2e "run one test alone with ./dev test NAME; -k and -x work as in pytest" tools/test.sh e2e
check user "AIMASTER_BIN=build/bin tests/e2e/run_unprivileged.sh -k NAME runs one as an ordinary user" ordinary_user
check simulation "./dev sim --seed N --trace tells the story of the seed that is named" simulation
check collectives "./dev sim collectives --seed N --trace tells the story of the seed that is named" collectives
check fuzzers "add the input to tests/corpus/NAME; build-asan/fuzz/NAME FILE shows what it does" tools/fuzz.sh 12
check threads "./dev build --tsan all, then run the test in build-tsan/tests" threads
check sanitizers "./dev build --asan all, then run the test in build-asan/tests" sanitizers

if ((${#failed[@]} > 0)); then echo "checks failed: ${failed[*]}"; fi
tools/sum_tests.py "$check_tree"/results/*.xml || failed+=(tests) # the last line says how many, whatever else happened
((${#failed[@]} == 0))
