"""The inside of test_leftovers.py: the first process of a pid namespace. It runs jobs, looks at every process there is,
and prints what it saw as JSON. Being process 1, it also reaps orphans, so that a dead one is not taken for a living
one.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

AIMASTER = os.environ["AIMASTER"]
FLAGS = ["--workers", "2", "--stop-grace", "0.3", "--enable-job-restart=True", "--fault-tolerant-policy=OnFailure",
         "--tee", "none"]


def processes():
    """(pid, start time) → command line of every process but this one. Zombies have ended; they wait to be reaped."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            with open(f"/proc/{name}/cmdline", "rb") as file:
                command = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
            if fields[0] not in "ZX":
                found[(int(name), int(fields[19]))] = command
    return found


def of_ranks(found):
    """Without `aimaster run` and what started it, whose command lines hold the ranks' command line too."""
    return {key: command for key, command in found.items()
            if command.startswith("/usr/bin/python3") and ("worker.py" in command or "left-behind" in command)}


def wait_for(condition, what, timeout=30.0):
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            sys.exit(f"waited in vain for {what}; there is: {list(processes().values())}")
        time.sleep(0.02)
    return value


def start(command):
    return subprocess.Popen([AIMASTER, "run", *FLAGS, "--", *command], stdin=subprocess.DEVNULL, stdout=sys.stderr)


def main_process_of_rank(rank):
    """The one of that rank's processes that is a child of the shim."""
    for pid, _ in of_ranks(processes()):
        with open(f"/proc/{pid}/environ", "rb") as file:
            is_of_rank = f"RANK={rank}".encode() in file.read().split(b"\0")
        with open(f"/proc/{pid}/stat") as file:
            parent = file.read().rpartition(")")[2].split()[1]
        with open(f"/proc/{parent}/comm") as file:
            if is_of_rank and file.read().strip() == "aimaster-shim":
                return pid
    sys.exit(f"rank {rank} has no main process: {list(processes().values())}")


def newest_job():
    jobs = json.loads(subprocess.run([AIMASTER, "list", "--json"], capture_output=True, check=True).stdout)
    return jobs[0] if jobs else None


def reap_orphans(except_for):
    """Children of ours by adoption; the job's own process is left to subprocess."""
    for key in list(os.listdir("/proc")):
        if key.isdigit() and int(key) not in (os.getpid(), except_for):
            with contextlib.suppress(ChildProcessError, OSError):
                os.waitpid(int(key), os.WNOHANG)


def everything_gone(run):
    """What is left, after time enough for a master and an agent to say goodbye."""
    deadline = time.monotonic() + 5
    while True:
        reap_orphans(run.pid)
        left = list(processes().values())
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


# Six processes in a full set: two ranks, each with a grandchild and a daemon.
FULL_SET = 6


def restart_then_stop(times, *command):
    after_restart, after_stop = [], []
    for number in range(int(times)):
        run = start(command)
        first = wait_for(lambda: len(found := of_ranks(processes())) == FULL_SET and found, "the first round")
        os.kill(main_process_of_rank("1"), signal.SIGKILL)
        wait_for(lambda: not set(first) & set(found := of_ranks(processes())) and len(found) == FULL_SET,
                 f"a second round without any of the first's processes: {list(first.values())}")
        reap_orphans(run.pid)
        after_restart += [first[key] for key in set(first) & set(processes())]
        run.send_signal(signal.SIGINT)
        if run.wait(30) != 130:
            sys.exit(f"run {number} exited with {run.returncode}")
        after_stop += everything_gone(run)
    return {"times": int(times), "left_after_restart": after_restart, "left_after_stop": after_stop}


def run_to_the_end(times, *command):
    codes, left = [], []
    for _ in range(int(times)):
        run = start(command)
        codes.append(run.wait(30))
        left += everything_gone(run)
    return {"codes": codes, "left": left}


def kill_the_shim(times, *command):
    """What a shim that is gone left behind is found and swept; without permission to restart the job then fails."""
    statuses, left = [], []
    for _ in range(int(times)):
        run = subprocess.Popen([AIMASTER, "run", "--stop-grace", "0.3", "--tee", "none", "--", *command],
                               stdin=subprocess.DEVNULL, stdout=sys.stderr)
        wait_for(lambda: len(of_ranks(processes())) == FULL_SET / 2, "a full set")
        shims = [key[0] for key, line in processes().items() if "aimaster-shim" in line and "--supervise" not in line]
        if len(shims) != 1:
            sys.exit(f"expected one shim: {list(processes().values())}")
        os.kill(shims[0], signal.SIGKILL)
        run.wait(60)
        statuses.append(newest_job()["status"])
        left += everything_gone(run)
    return {"statuses": statuses, "left": left}


if __name__ == "__main__":
    stories = {story.__name__: story for story in (restart_then_stop, run_to_the_end, kill_the_shim)}
    print(json.dumps(stories[sys.argv[1]](*sys.argv[2:])))
