#!/usr/bin/env python3
"""What an agent costs beside ranks that print: its processor time over a minute, from the kernel, with a real job.

Each rank prints lines of a training at a steady pace. The agent reads them all, against all rules; a job whose ranks
print nothing shows what it costs anyway.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

RANK = r"""
import os, sys, time
pace = int(float(os.environ["PACE"]) * 100_000)
lines, step = [], 0
while sum(map(len, lines)) < pace:
    step += 1
    lines.append(f" [2025-03-01 10:00:{step % 60:02}] iteration {step:8}/  500000 | "
                 f"consumed samples: {step * 512:12} | "
                 f"elapsed time per iteration (ms): {8100 + step % 97}.4 | "
                 f"lm loss: 2.1{step:04}E+00 | grad norm: 0.412 |\n")
    if step % 6 == 0:
        lines.append(f"\x1b[32m10:00:{step % 60:02}\x1b[0m | \x1b[1mINFO\x1b[0m | trainer:fit - epoch 3 batch {step}\n")
block = "".join(lines)
began, ticks = time.monotonic(), 0
while True:
    if block:
        os.write(1, block.encode())
    ticks += 1
    time.sleep(max(0, began + ticks / 10 - time.monotonic()))
"""


def agent_of(home):
    for path in Path(home).glob("jobs/*/nodes/*/agent.json"):
        found = re.search(r'"pid": *(\d+)', path.read_text())
        if found:
            return int(found[1])
    return None


def processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(aimaster, ranks, pace, seconds):
    """Percent of one core that the agent takes, and its resident memory in megabytes."""
    folder = tempfile.mkdtemp(prefix="aimaster-bench-")
    environment = {**os.environ, "AIMASTER_HOME": f"{folder}/home", "PACE": str(pace)}
    job = subprocess.Popen([aimaster, "run", "--workers", str(ranks), "--tee", "none", "--log-max-bytes", "64M",
                            "--stop-grace", "2", "--", "/usr/bin/python3", "-S", "-c", RANK], env=environment,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           start_new_session=True)
    try:
        deadline = time.monotonic() + 20
        while (pid := agent_of(f"{folder}/home")) is None and time.monotonic() < deadline:
            time.sleep(0.05)
        if pid is None:
            sys.exit(f"agent_cpu: no agent: {job.stderr.read1(2000) if job.poll() is not None else 'too slow'}")
        time.sleep(3)  # a start is another case
        before, began = processor_seconds(pid), time.monotonic()
        time.sleep(seconds)
        spent, lasted = processor_seconds(pid) - before, time.monotonic() - began
        resident = re.search(r"^VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        return 100 * spent / lasted, int(resident[1]) / 1024
    finally:
        job.send_signal(signal.SIGTERM)
        job.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=str(ROOT / "build" / "bin"), help="folder with the programs")
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    aimaster = str(Path(arguments.bin).resolve() / "aimaster")
    print(f"{'ranks':>6}{'each prints':>14}{'agent':>14}{'resident':>12}")
    for ranks, pace in ((1, 0), (1, 1), (8, 1), (1, 10)):
        percent, megabytes = measure(aimaster, ranks, pace, arguments.seconds)
        print(f"{ranks:>6}{pace:>9} MB/s{percent:>9.2f} % CPU{megabytes:>9.1f} MB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
