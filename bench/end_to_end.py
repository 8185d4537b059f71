#!/usr/bin/env python3
"""Times of whole jobs, beside torchrun's: until the first rank runs, and from a rank's death until all new ranks run.

Both launchers start the same static program (stamp.c), which notes the moment in which it began to run. They take turns
in one session of measuring, so that whatever else the machine does meets both; what is compared is medians. Memory is
read from the kernel while a job runs.

torchrun looks at its workers once per --monitor_interval, five seconds unless told otherwise; a second line therefore
shows it with 0.1 s, so that the comparison is not one of a default.
"""
import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TORCHRUN = "/usr/bin/torchrun"


def wait_for(condition, what, timeout=120.0):
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            sys.exit(f"end_to_end: waited {timeout:g} s in vain for {what}")
        time.sleep(0.002)
    return value


def stamps(folder, restarts):
    """rank → (nanoseconds, pid) of the ranks that began to run in this life of the job."""
    found = {}
    for path in Path(folder).glob(f"[0-9]*.{restarts}"):
        moment, pid = path.read_text().split()
        found[int(path.name.split(".")[0])] = (int(moment), int(pid))
    return found


class Aimaster:
    name = "aimaster"

    def __init__(self, programs):
        self.program = str(Path(programs).resolve() / "aimaster")

    def command(self, ranks, stamp, folder):
        return [self.program, "run", "--workers", str(ranks), "--enable-job-restart=True", "--stop-grace", "5", "--tee",
                "none", "--", stamp, folder]

    def stop(self, process):
        process.send_signal(signal.SIGTERM)  # not SIGINT, which what a script starts in the background ignores


class Torchrun:
    def __init__(self, monitor_interval):
        self.monitor_interval = monitor_interval
        self.name = "torchrun" if monitor_interval is None else f"torchrun --monitor_interval {monitor_interval}"

    def command(self, ranks, stamp, folder):
        interval = [] if self.monitor_interval is None else ["--monitor_interval", str(self.monitor_interval)]
        # -r 1 -t 2: stdout goes to a file, stderr to a file and to the terminal, which is closest to what we do.
        return [TORCHRUN, "--standalone", "--nproc_per_node", str(ranks), "--max_restarts", "3", "-r", "1", "-t", "2",
                "--log_dir", f"{folder}/torchrun-logs", *interval, "--no_python", stamp, folder]

    def stop(self, process):
        process.send_signal(signal.SIGTERM)


def measure(launcher, ranks, stamp, look=None):
    """One job: (milliseconds to the first rank, milliseconds from a death to all new ranks)."""
    folder = tempfile.mkdtemp(prefix="aimaster-bench-")
    environment = {**os.environ, "AIMASTER_HOME": f"{folder}/home", "OMP_NUM_THREADS": "1"}
    process = None
    try:
        began = time.time_ns()
        process = subprocess.Popen(launcher.command(ranks, stamp, folder), env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        first_life = wait_for(lambda: len(found := stamps(folder, 0)) == ranks and found,
                              f"{ranks} ranks of {launcher.name}")
        to_first = (min(moment for moment, _ in first_life.values()) - began) / 1e6
        time.sleep(0.5)  # a death in the very moment of the start is another case
        if look is not None:
            look(f"{folder}/home")
        victim = first_life[ranks // 2][1]
        killed = time.time_ns()
        os.kill(victim, signal.SIGKILL)
        second_life = wait_for(lambda: len(found := stamps(folder, 1)) == ranks and found,
                               f"a restart by {launcher.name}")
        return to_first, (max(moment for moment, _ in second_life.values()) - killed) / 1e6
    finally:
        if process is not None:
            launcher.stop(process)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        end_all_of(launcher, folder)
        shutil.rmtree(folder, ignore_errors=True)


def end_all_of(launcher, folder):
    """A launcher that has ended may have left ranks behind; ours must not."""
    deadline = time.monotonic() + 30
    while running_in(folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    left = running_in(folder)
    if not left:
        return
    if launcher.name == "aimaster":
        sys.exit(f"end_to_end: {len(left)} processes of the job do not end")
    print(f"{launcher.name} has left {len(left)} processes behind, which are killed now", flush=True)
    for pid in left:
        os.kill(pid, signal.SIGKILL)


def running_in(folder):
    """Processes whose command line or environment names this job's folder."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            for file in ("cmdline", "environ"):
                if folder.encode() in Path("/proc", name, file).read_bytes():
                    found.append(int(name))
                    break
        except OSError:
            pass
    return [pid for pid in found if pid != os.getpid()]


def memory_of(home):
    """Kilobytes of each kind of process of ours: resident, and proportional (shared pages counted by share)."""
    found = {}
    for pid in running_in(home):
        try:
            command = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
            rollup = Path("/proc", str(pid), "smaps_rollup").read_text()
        except OSError:
            continue
        program = os.path.basename(os.fsdecode(command[0]))
        if program == "aimaster" and len(command) > 1:
            program = {b"master": "master", b"run": "run"}.get(command[1], program)
        if program == "aimaster-shim" and b"--supervise" in command:
            program = "supervisor"
        if program in ("master", "run", "aimaster-agent", "aimaster-shim", "supervisor"):
            numbers = {key: int(re.search(rf"^{key}:\s+(\d+)", rollup, re.MULTILINE)[1]) for key in ("Rss", "Pss")}
            found.setdefault(program, []).append(numbers)
    return {program: {key: max(one[key] for one in all_of_it) for key in ("Rss", "Pss")}
            for program, all_of_it in found.items()}


def summary(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values), "times": len(values)}


def print_table(rows, ours):
    print(f"\n{'':<44}{'ranks':>6}{'first rank':>14}{'after a death':>16}{'ratio':>16}")
    for name, ranks, start, restart in rows:
        base_start, base_restart = ours[ranks]
        ratio = f"{start['median'] / base_start:.1f} / {restart['median'] / base_restart:.1f}"
        print(f"{name:<44}{ranks:>6}{start['median']:>11.1f} ms{restart['median']:>13.1f} ms{ratio:>16}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=str(ROOT / "build" / "bin"), help="folder with the programs")
    parser.add_argument("--ranks", default="8,64", help="comma-separated numbers of ranks")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--without-torchrun", action="store_true")
    parser.add_argument("--json", help="write all figures to this file")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="aimaster-bench-") as folder:
        stamp = f"{folder}/stamp"
        subprocess.run(["musl-gcc", "-static", "-O2", "-Wall", "-Wextra", "-o", stamp, str(ROOT / "bench" / "stamp.c")],
                       check=True)
        launchers = [Aimaster(arguments.bin)]
        if not arguments.without_torchrun:
            launchers += [Torchrun(None), Torchrun(0.1)]
        rows, ours, memory, figures = [], {}, {}, []
        for ranks in map(int, arguments.ranks.split(",")):
            seen = {launcher.name: ([], []) for launcher in launchers}
            for number in range(arguments.repeat):
                for launcher in launchers:
                    look = None
                    if isinstance(launcher, Aimaster) and number == 0:
                        def look(home, ranks=ranks):
                            memory[ranks] = memory_of(home)
                    start, restart = measure(launcher, ranks, stamp, look)
                    seen[launcher.name][0].append(start)
                    seen[launcher.name][1].append(restart)
                    print(f"{ranks} ranks, {number + 1} of {arguments.repeat}, {launcher.name}: "
                          f"first rank {start:.1f} ms, after a death {restart:.1f} ms", flush=True)
            for name, (starts, restarts) in seen.items():
                rows.append((name, ranks, summary(starts), summary(restarts)))
                figures.append({"launcher": name, "ranks": ranks, "first_rank_ms": summary(starts),
                                "restart_ms": summary(restarts)})
                if name == Aimaster.name:
                    ours[ranks] = (rows[-1][2]["median"], rows[-1][3]["median"])

    print_table(rows, ours)
    for ranks, programs in memory.items():
        print(f"\nmemory with {ranks} ranks, the largest process of each kind")
        for program, numbers in sorted(programs.items()):
            resident, proportional = numbers["Rss"] / 1024, numbers["Pss"] / 1024
            print(f"  {program:<16} resident {resident:6.2f} MB   proportional {proportional:6.2f} MB")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"times": figures, "memory_kb": memory}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
