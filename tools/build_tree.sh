# shellcheck shell=bash
# Build trees, to be sourced: each way of building has a folder of its own, so that going back and forth rebuilds
# nothing.

PROGRAMS=(aimaster aimaster-agent aimaster-notify aimaster-rules aimaster-shim aimaster-mpi aimaster-hydra
  aimaster-pmpi nccl-profiler-aimaster aimaster-recorder)

# The folder of a variant: default, release, asan, tsan, check. The fuzzers are in asan: what they need is what its
# tests need, and every parser is built once for both.
tree_of() {
  if [[ $1 == default ]]; then echo build; else echo "build-$1"; fi
}

# build_tree VARIANT TARGET...; the target `programs` stands for what we ship.
build_tree() {
  local variant=$1 tree options=() targets=()
  shift
  tree=$(tree_of "$variant")
  case $variant in
    release) options=(-DCMAKE_BUILD_TYPE=Release) ;;
    asan) options=("-DAIMASTER_SANITIZE=address,undefined" -DAIMASTER_FUZZ=ON
      -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19) ;;
    tsan) options=(-DAIMASTER_SANITIZE=thread) ;;
  esac
  local target
  for target in "$@"; do
    if [[ $target == programs ]]; then targets+=("${PROGRAMS[@]}"); else targets+=("$target"); fi
  done
  # An MPI that has been installed since gets its probe.
  if grep -qs '^AIMASTER_MPICC_.*-NOTFOUND' "$tree/CMakeCache.txt"; then rm -f "$tree/build.ninja"; fi
  if [[ ! -f $tree/build.ninja ]]; then
    echo "configuring $tree"
    mkdir -p "$tree"
    cmake -S . -B "$tree" -G Ninja "${options[@]}" >"$tree/configure.log" 2>&1 || {
      cat "$tree/configure.log" >&2
      rm -f "$tree/build.ninja"
      echo "configuring failed; its output is above. After a change of packages, ./dev clean helps" >&2
      return 1
    }
  fi
  echo "building ${*} in $tree"
  ninja -C "$tree" -j "$(nproc)" "${targets[@]}"
}

# Every file of ours that clang-format knows, NUL-terminated.
source_files() {
  find src bench -name '*.h' -print0 -o -name '*.cc' -print0 -o -name '*.c' -print0
  find cmake -name '*.cc' -print0
}
