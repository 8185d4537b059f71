#!/usr/bin/env python3
"""How long it takes to have the stacks of 64 Python processes: as an agent takes them, and as one who has only py-spy
does, one process after the other. With native frames on both sides, and without on the other's.

The processes are real: each imports numpy, where it is there, and has four threads in the background.
"""
import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "build-stack-tools" / "bin"

RANK = r"""
import sys, threading, time
try:
    import numpy
except ImportError:
    pass
def wait_for_work():
    threading.Event().wait()
for _ in range(4):
    threading.Thread(target=wait_for_work, daemon=True).start()
def load_batch():
    time.sleep(1000)
def train():
    load_batch()
print("ready", flush=True)
train()
"""


def start(count):
    ranks = [subprocess.Popen(["/usr/bin/python3", "-c", RANK], stdout=subprocess.PIPE) for _ in range(count)]
    for rank in ranks:
        rank.stdout.readline()
    return ranks


def start_ticks(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def together(agent, ranks):
    order = {"capture": 1, "tool": "auto", "timeout_ms": 120000, "node": "here", "tool_path": [str(TOOLS)],
             "targets": [{"pid": rank.pid, "start_ticks": start_ticks(rank.pid), "rank": number, "instance": "w",
                          "error_output": ""} for number, rank in enumerate(ranks)]}
    began = time.monotonic()
    done = subprocess.run([agent, "--take-stacks"], input=json.dumps(order), capture_output=True, text=True, check=True)
    seconds = time.monotonic() - began
    document = json.loads(done.stdout)
    answered = {document["processes"][thread[0]][2] for thread in document["threads"]}
    assert len(answered) == len(ranks), f"stacks of {len(answered)} of {len(ranks)}"
    return seconds


def one_by_one(ranks, *flags):
    began = time.monotonic()
    for rank in ranks:
        subprocess.run([TOOLS / "py-spy", "dump", *flags, "--pid", str(rank.pid)], check=True, capture_output=True)
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=str(ROOT / "build-release" / "bin"))
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    if not (TOOLS / "py-spy").exists():
        sys.exit("stack_capture: py-spy is not there: run tools/install_stack_tools.sh")
    ranks = start(arguments.ranks)
    try:
        agent = os.path.join(arguments.bin, "aimaster-agent")
        measured = [(together(agent, ranks), one_by_one(ranks, "--native"), one_by_one(ranks))
                    for _ in range(arguments.times)]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    ours, native, plain = (sorted(column)[arguments.times // 2] for column in zip(*measured))
    print(f"{arguments.ranks} processes, median of {arguments.times}: together, native frames {ours:.2f} s; "
          f"py-spy one by one, native frames {native:.2f} s ({native / ours:.2f} times as long), "
          f"without {plain:.2f} s ({plain / ours:.2f} times)")


main()
