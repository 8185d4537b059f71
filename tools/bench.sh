#!/usr/bin/env bash
# ./dev bench [NAME...]: micro benchmarks (programs *_bench), the times of whole jobs beside torchrun's (end_to_end),
# what an agent costs beside ranks that print (agent_cpu), how fast stacks are taken (stack_capture), and what a call of
# the SDK costs a rank (sdk_calls), a call of MPI with the probe (probe_mpi), and of PyTorch with the hook (torch_hook).
# Figures are only worth something from an optimised build on a quiet machine, so this builds and uses build-release.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/build_tree.sh

tools/install_packages.sh build test
mapfile -t micro < <(find bench -name '*_bench.c*' | sed 's/.*\///;s/\.cc*$//' | sort)
chosen=("$@")
if ((${#chosen[@]} == 0)); then
  chosen=("${micro[@]}" end_to_end agent_cpu stack_capture sdk_calls probe_mpi torch_hook)
fi
programs=("${chosen[@]/#end_to_end/aimaster}")
programs=("${programs[@]/#agent_cpu/aimaster}")
programs=("${programs[@]/#sdk_calls/aimaster}")
programs=("${programs[@]/#probe_mpi/aimaster-pmpi}")
programs=("${programs[@]/#torch_hook/aimaster-recorder}")
build_tree release programs "${programs[@]/#stack_capture/aimaster-agent}"
export AIMASTER_BIN=$PWD/build-release/bin AIMASTER_SOURCE=$PWD

for name in "${chosen[@]}"; do
  echo "== $name"
  if [[ $name == end_to_end ]]; then
    /usr/bin/python3 bench/end_to_end.py --bin "$AIMASTER_BIN" --json build-release/end_to_end.json
  elif [[ $name == stack_capture ]]; then
    tools/install_stack_tools.sh
    /usr/bin/python3 bench/stack_capture.py --bin "$AIMASTER_BIN"
  elif [[ $name == agent_cpu ]]; then
    /usr/bin/python3 bench/agent_cpu.py --bin "$AIMASTER_BIN"
  elif [[ $name == sdk_calls ]]; then
    /usr/bin/python3 bench/sdk_calls.py --bin "$AIMASTER_BIN"
  elif [[ $name == torch_hook ]]; then
    /usr/bin/python3 bench/torch_hook.py --bin "$AIMASTER_BIN"
  elif [[ $name == probe_mpi ]]; then
    records=$(mktemp -d /dev/shm/probe_mpi-XXXXXX)
    for library in "$AIMASTER_BIN"/libaimaster-pmpi-*.so; do
      mpi=${library##*-pmpi-} && mpi=${mpi%.so}
      "mpicc.$mpi" -O2 -w -o "$records/probe_mpi" bench/probe_mpi.c
      echo "$mpi, without the probe" && "$records/probe_mpi"
      echo "$mpi, with it" && AIMASTER_C4D_DIR=$records LD_PRELOAD=$library "$records/probe_mpi"
    done
    rm -r "$records"
  else
    "build-release/bench/$name"
  fi
done
