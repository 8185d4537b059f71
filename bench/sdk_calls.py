#!/usr/bin/env python3
"""What a call of the SDK costs the training: within a real job, by the state of the agent.

Each call is timed by itself. `stopped` is an agent under SIGSTOP, `dead` a socket whose owner is gone, `none` a program
outside of any job.
"""
import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def calls():
    from aimaster import _state
    from aimaster import job_monitor as jm
    _state.STATES._states.clear()  # what is the environment now?
    monitor = jm.Monitor()

    def section():
        with jm.hang_detect(600):
            pass

    @jm.hang_detect(600)
    def decorated():
        pass

    numbers = iter(range(1 << 40))
    return {"report_step": lambda: jm.report_step(next(numbers), loss=0.5),
            "report_checkpoint": lambda: jm.report_checkpoint(next(numbers)),
            "hang_detect, in and out": section,
            "decorated function": decorated,
            "reset_config": lambda: monitor.reset_config(job_hang_interval=600),
            "set_retryable_errors": lambda: monitor.set_retryable_errors(["connect timeout"]),
            "send_custom_message": lambda: monitor.send_custom_message("loss is NaN")}


def measure(call, times, pause):
    """Microseconds: median, 99th percentile, longest."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        taken.append((time.perf_counter() - began) * 1e6)
        time.sleep(pause)  # a training does something in between
    taken.sort()
    return [taken[len(taken) // 2], taken[min(len(taken) - 1, len(taken) * 99 // 100)], taken[-1]]


def processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def as_rank():
    path = os.environ["AIMASTER_SOCKET"]
    directory = Path(os.environ["AIMASTER_HOME"]) / "jobs" / os.environ["AIMASTER_JOB_ID"]
    agent = json.loads(next(directory.glob("nodes/*/agent.json")).read_text())["pid"]
    found = {"agent answers": {}, "agent stopped": {}, "agent dead": {}, "no job": {}}
    for name, call in calls().items():
        found["agent answers"][name] = measure(call, 2000, 0.002)
    before, began = processor_seconds(agent), time.monotonic()
    steps = calls()["report_step"]
    while time.monotonic() - began < 10:
        steps()
        time.sleep(0.0099)
    found["agent, percent of a core, at 100 steps a second"] = (
        (processor_seconds(agent) - before) / (time.monotonic() - began) * 100)
    os.kill(agent, signal.SIGSTOP)
    for name, call in calls().items():
        found["agent stopped"][name] = measure(call, 100, 0.0)
    os.kill(agent, signal.SIGCONT)
    deserted = tempfile.mktemp()
    with socket.socket(socket.AF_UNIX) as owner:
        owner.bind(deserted)
    os.environ["AIMASTER_SOCKET"] = deserted
    for name, call in calls().items():
        found["agent dead"][name] = measure(call, 500, 0.001)
    os.unlink(deserted)
    del os.environ["AIMASTER_SOCKET"]
    for name, call in calls().items():
        found["no job"][name] = measure(call, 2000, 0.0)
    os.environ["AIMASTER_SOCKET"] = path
    print("FIGURES", json.dumps(found), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="folder with the programs")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the rank")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="aimaster-bench-")
    environment = {**os.environ, "AIMASTER_HOME": f"{folder}/home", "PYTHONPATH": str(ROOT / "sdk" / "python"),
                   "SDK_BENCH_RANK": "1"}
    try:
        job = subprocess.run([f"{arguments.bin}/aimaster", "run", "--", arguments.python, __file__], env=environment,
                             stdout=subprocess.PIPE, text=True, check=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = json.loads(job.stdout.split("FIGURES ")[1].splitlines()[0])
    print("microseconds a call: median, 99 %, longest")
    for state, figures in found.items():
        if isinstance(figures, float):
            print(f"{state}: {figures:.1f}")
            continue
        print(state)
        for name, taken in figures.items():
            print(f"  {name:26}" + "".join(f"{value:10.1f}" for value in taken))


if __name__ == "__main__":
    if os.environ.get("SDK_BENCH_RANK"):
        as_rank()
    else:
        main()
