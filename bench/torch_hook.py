#!/usr/bin/env python3
"""What the hook over torch.distributed costs: an operation by itself, and a step of a training.

Processor time of the calling thread, the best tenth of each run, since on a machine that does other things the clock on
the wall tells of those. The same two ranks run with it and without it in turn; the figures are medians over the pairs.
"""
import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OPERATIONS, STEPS = 1500, 40


def as_rank():
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    small = torch.ones(4)

    def microseconds(what, times):
        best = None
        for _ in range(10):
            began = time.thread_time()
            for _ in range(times // 10):
                what()
            taken = (time.thread_time() - began) / (times // 10) * 1e6
            best = taken if best is None else min(best, taken)
        return best

    alone = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]
    figures = {"all_reduce, group of 1": microseconds(lambda: dist.all_reduce(small, group=alone), OPERATIONS),
               "the same, async and wait": microseconds(
                   lambda: dist.all_reduce(small, group=alone, async_op=True).wait(), OPERATIONS),
               "all_reduce, group of 2": microseconds(lambda: dist.all_reduce(small), OPERATIONS // 4)}
    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 256) for _ in range(12)]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.5)
    optimizer, data = torch.optim.SGD(model.parameters(), lr=1e-4), torch.randn(64, 256)

    def step():
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()

    figures["step of a training, 7 buckets"] = microseconds(step, STEPS)
    dist.barrier()
    if dist.get_rank() == 0:
        print("FIGURES", figures, flush=True)


def run(arguments, is_traced):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="aimaster-bench-", dir="/dev/shm")
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2",
                   "OMP_NUM_THREADS": "1", "TORCH_HOOK_BENCH_RANK": "1"}
    if is_traced:
        environment.update(AIMASTER_C4D_DIR=folder, AIMASTER_C4D_RECORDER=f"{arguments.bin}/libaimaster-recorder.so",
                           PYTHONPATH=str(ROOT / "sdk" / "python" / "aimaster" / "_preload"))
    try:
        ranks = [subprocess.Popen([arguments.python, __file__], env={**environment, "RANK": str(rank)},
                                  stdout=subprocess.PIPE, text=True) for rank in range(2)]
        output = ranks[0].communicate()[0]
        if any(rank.wait() for rank in ranks) or is_traced != bool(os.listdir(folder)):
            sys.exit("a rank failed, or left no record")
    finally:
        shutil.rmtree(folder)
    return eval(output.split("FIGURES ")[1])  # pylint: disable=eval-used


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="folder with the programs")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has torch")
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    arguments.bin = os.path.abspath(arguments.bin)
    pairs = [(run(arguments, False), run(arguments, True)) for _ in range(arguments.pairs)]
    print(f"{'microseconds of the calling thread':42}{'without':>10}{'with':>10}{'added':>10}")
    for name in pairs[0][0]:
        without, traced = ([pair[one][name] for pair in pairs] for one in (0, 1))
        added = statistics.median(b - a for a, b in zip(without, traced))
        print(f"{name:42}{statistics.median(without):10.1f}{statistics.median(traced):10.1f}{added:10.1f}")


if __name__ == "__main__":
    if os.environ.get("TORCH_HOOK_BENCH_RANK"):
        as_rank()
    else:
        main()
