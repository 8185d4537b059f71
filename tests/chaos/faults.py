"""A job in a world that is not as it should be: other rights, another clock, a slow disk, an init that does not reap.

    AIMASTER_BIN=DIR unshare --pid --fork --mount-proc --kill-child --mount \\
        /usr/bin/python3 tests/chaos/faults.py STORY FOLDER ARGUMENTS…

In each of them the same happens: an agent and a master are killed, then a shim. Training has to be complete, with one
restart, and nothing left.
"""
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from world import (HERE, RANK, Violation, World, check, check_training, describe, fill, kill, processes,
                   rank_processes, read, send, start, tell, wait_for)

USER = 61234  # no account has it
WITHOUT_PTRACE = ["/usr/bin/python3", str(HERE / "without_ptrace.py")]
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
           "--no-new-privs"]
FLAGS = ["--workers", 2, "--local-nodes", 2, "--stop-grace", 1, "--enable-job-restart=True",
         "--fault-tolerant-policy=OnFailure"]


class Job:
    def __init__(self, world, steps=40, flags=(), env=None, before=()):
        self.world, self.steps = world, steps
        self.follower = world.follow("run", *FLAGS, *flags, "--", *before, *RANK, world.work, steps, 0.1, env=env)
        self.job = world.new_job(self.follower)
        self.journal = world.journal(self.job)
        self.all_run()

    def all_run(self, restarts=0):
        """Until both ranks are at work in the round after so many restarts."""
        def there():
            now = self.get()
            return now["status"] == "Running" and now["restarts"] == restarts and self.have_begun(restarts)

        wait_for(there, f"all ranks to run after {restarts} restarts", timeout=40)
        return {rank: process.identity for rank, process in rank_processes().items()}

    def have_begun(self, attempt):
        return all((log := self.world.work / f"{rank}.log").exists() and f"{attempt} begins" in log.read_text()
                   for rank in range(2))

    def get(self):
        return self.world.query("get", self.job)

    def replace(self, kind):
        """Kills what is of that kind, and waits for others."""
        gone = {process.identity for process in processes(kind)}
        check(gone, f"there is no {kind}")
        for process in processes(kind):
            kill(process)
        wait_for(lambda: len(found := processes(kind)) == len(gone) and not gone & {one.identity for one in found},
                 f"another {kind}")

    def log(self):
        return (self.world.directory(self.job) / "aimaster.log").read_text()

    def end(self, restarts, followers=()):
        codes = [follower.wait(90) for follower in (followers or [self.follower])]
        state = self.get()
        said = self.follower.err.read_text()[-3000:]
        check(codes == [0] * len(codes) and state["status"] == "Succeeded", f"{codes} {state['status']}: {said}")
        check(state["restarts"] == restarts, f"{state['restarts']} restarts, not {restarts}: {said}")
        check_training(self.world.work, 2, self.steps)
        left = self.world.everything_gone()
        check(not left, f"left behind: {left}")


def trouble(world, **options):
    job = Job(world, **options)
    before = job.all_run()
    for kind in ("agent", "master", "agent"):
        job.replace(kind)
    now = {rank: process.identity for rank, process in rank_processes().items()}
    check(now == before, f"the ranks were {before} and are {now}")
    time.sleep(1)  # until the agents have found their ranks again, or lost them
    check(job.get()["restarts"] == 0, "a restart though no rank has ended")
    shim = read(rank_processes()[1].parent)
    check(shim is not None and shim.kind == "shim", f"rank 1 is the child of {shim and describe([shim])}")
    kill(shim)
    job.all_run(restarts=1)
    job.end(restarts=1)
    return {"restarts": 1}


# -- rights ------------------------------------------------------------------------------------------------------------


def for_user(folder):
    os.chown(folder, USER, USER)
    for name in ("home", "work", "notes"):
        os.mkdir(f"{folder}/{name}")
        os.chown(f"{folder}/{name}", USER, USER)
    for parent in Path(folder).parents:  # the tests' own folders let nobody else in
        if parent.stat().st_uid == 0 and parent != Path("/") and not parent.stat().st_mode & 0o001:
            raise Violation(f"{parent} lets nobody in")


def unprivileged(folder):
    for_user(folder)
    return trouble(World(folder, prefix=AS_USER + WITHOUT_PTRACE))


def hidepid(folder):
    """Nobody sees the processes of others, nor any that is not dumpable."""
    subprocess.run(["mount", "-o", "remount,hidepid=2", "/proc"], check=True)
    for_user(folder)
    seen = subprocess.run([*AS_USER, "ls", "/proc/1"], capture_output=True)
    check(seen.returncode != 0, "hidepid=2 has no effect here")
    return trouble(World(folder, prefix=AS_USER))


def small_shared_memory(folder, *train):
    """As in a container: 64 MB of /dev/shm, and nobody may trace. A real training does not need more."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", "/dev/shm"], check=True)
    world = World(folder, prefix=WITHOUT_PTRACE)
    follower = world.follow("run", "--workers", 2, "--enable-job-restart=True", "--", *train, "--checkpoint-dir",
                            world.work)
    code = follower.wait(240)
    check(code == 0, f"the training ended with {code}: {follower.err.read_text()[-3000:]}")
    final = re.findall(r"^final .*$", follower.out.read_text(), re.MULTILINE)
    job, = world.query_all()
    left = world.everything_gone()
    check(not left, f"left behind: {left}")
    return {"final": final[-1:], "restarts": world.query("get", job)["restarts"]}


def init_that_does_not_reap(folder):
    """The first process of a container often is the user's own program, which has never heard of orphans."""
    told = trouble(World(folder))
    zombies = [name for name in os.listdir("/proc") if name.isdigit() and read(name) is None]
    return {**told, "few zombies": len(zombies) < 20}


# -- clocks ------------------------------------------------------------------------------------------------------------


class Clock:
    """The wall clock of all that is dynamically linked; a shim keeps the true time, as another machine might."""

    def __init__(self, folder):
        library, = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))[:1]
        self.file = Path(folder) / "clock"
        self.set(0)
        self.environment = {**os.environ, "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(self.file),
                            "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                            "FAKETIME_DONT_RESET": "1"}

    def set(self, seconds):
        new = self.file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        os.rename(new, self.file)

    def is_believed(self):
        said = subprocess.run(["date", "+%s"], env=self.environment, capture_output=True, text=True, check=True)
        return int(said.stdout) - time.time()


def clock_jumps(folder):
    world, clock = World(folder), Clock(folder)
    # The library can't sleep while its clock jumps, so the ranks have the true time.
    job = Job(world, steps=200, flags=["--node-lost-timeout", 5, "--orphan-timeout", 30, "--max-num-of-job-restart", 9],
              env=clock.environment, before=["/usr/bin/env", "-u", "LD_PRELOAD"])
    clock.set(3600)
    check(abs(clock.is_believed() - 3600) < 5, "the clock does not jump")
    took = []
    for restarts, jumps_to in enumerate((3600, -3600, 0, 3600), 1):
        began = time.monotonic()
        kill(rank_processes()[restarts % 2])
        time.sleep(0.1)
        clock.set(jumps_to)
        job.all_run(restarts)
        took.append(time.monotonic() - began)
        time.sleep(1.5)
    check(max(took) < 8, f"the restarts took {took} s")
    check(job.get()["restarts"] == 4, f"restarts: {job.get()['restarts']}")
    now = job.all_run(4)
    # Nobody is above the agents, and the clock says that they have waited for an hour.
    for process in (*processes("supervisor"), *processes("master")):
        kill(process)
    clock.set(-3600)
    time.sleep(1)
    clock.set(3600)
    time.sleep(2)
    check({rank: process.identity for rank, process in rank_processes().items()} == now, "an early orphan timeout")
    job.follower.wait(20)
    resumed = world.follow("resume", job.job, env=clock.environment)
    wait_for(lambda: processes("master"), "the master")
    time.sleep(2)
    clock.set(0)
    job.end(restarts=4, followers=[resumed])
    check("has been silent" not in job.log(), "a node was taken for lost: " + job.log()[-2000:])
    durations = [record["duration_ms"] for record in world.query("records", job.job)]
    stages = [stage["duration_ms"] for one in world.query("rounds", job.job) for stage in one["stages"]]
    return {"restarts": 4, "longest restart ms": max(durations), "longest stage ms": max(filter(None, stages)),
            "shortest stage ms": min(duration for duration in stages if duration is not None)}


# -- a slow home -------------------------------------------------------------------------------------------------------


class SlowHome:
    def __init__(self, folder, milliseconds):
        self.source, self.target, self.stall_file = (Path(folder) / name for name in ("source", "slow", "stall"))
        self.source.mkdir()
        self.target.mkdir()
        self.server = start(["/usr/bin/python3", HERE / "slow_files.py", self.source, self.target, milliseconds],
                            stdout=sys.stderr, stderr=sys.stderr)
        wait_for(lambda: os.path.ismount(self.target), "the slow file system")

    def stall(self, seconds):
        self.stall_file.touch()
        time.sleep(seconds)
        self.stall_file.unlink()

    def close(self):
        subprocess.run(["umount", "-l", self.target], check=True)
        self.server.wait(10)


def slow_home(folder, milliseconds):
    slow = SlowHome(folder, milliseconds)
    world = World(folder, home=slow.target / "home")
    told = trouble(world, steps=100)
    job, = world.query_all()
    mode = subprocess.run(["stat", "-f", "-c", "%t", slow.target], capture_output=True, text=True).stdout.strip()
    wal = (slow.source / "home" / "jobs" / job / "journal.db-wal").exists()
    slow.close()
    return {**told, "type": mode, "write-ahead log": wal}


def stalled_home(folder, seconds, node_lost_timeout):
    """The server of the home is away for some time; who waits for it is not dead."""
    slow = SlowHome(folder, 1)
    world = World(folder, home=slow.target / "home")
    job = Job(world, steps=60, flags=["--node-lost-timeout", node_lost_timeout])
    before = job.all_run()
    agents = {process.identity for process in processes("agent")}
    slow.stall(float(seconds))
    time.sleep(2)
    check({rank: process.identity for rank, process in rank_processes().items()} == before, "the ranks are others")
    same = agents == {process.identity for process in processes("agent")}
    job.end(restarts=0)
    lost = [node["name"] for node in job.get()["nodes"] if node["lost"]]
    noted = "has been silent" in job.log()
    slow.close()
    return {"lost": lost, "same agents": same, "silence noted": noted}


# -- a full disk -------------------------------------------------------------------------------------------------------


def small_disk(folder):
    small = Path(folder) / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", small], check=True)
    return small


def master_dies_on_full_disk(folder, seconds):
    """Its successors can't open the journal; the supervisor goes on trying until one can."""
    small = small_disk(folder)
    job = Job(World(folder, home=small / "home"), steps=80)
    before = job.all_run()
    fill(small / "filler")
    for master in processes("master"):
        kill(master)
    time.sleep(float(seconds))
    check(processes("supervisor"), "the supervisor has given up")
    (small / "filler").unlink()
    wait_for(lambda: job.journal.job().get("epoch", 1) > 1, "another master", timeout=15)
    check({rank: process.identity for rank, process in rank_processes().items()} == before, "the ranks are others")
    job.end(restarts=0)
    return {"restarts": 0}


def shim_dies_on_full_disk(folder, seconds):
    """What follows from a death waits until there is room to write it down; then it happens once."""
    small = small_disk(folder)
    world = World(folder, home=small / "home")
    job = Job(world, steps=60)
    fill(small / "filler")
    kill(read(rank_processes()[1].parent))
    time.sleep(float(seconds))
    while_full = job.get()["status"]
    (small / "filler").unlink()
    job.all_run(restarts=1)
    job.end(restarts=1)
    record, = world.query("records", job.job)
    return {"restarts": 1, "while full": while_full, "message": record["error_message"], "rank": record["rank"]}


# -- a master that stands still ----------------------------------------------------------------------------------------


def suspended_master(folder, seconds, node_lost_timeout):
    """It has heard of nobody for longer than the limit, but it was the one that did not listen."""
    job = Job(World(folder), steps=100, flags=["--node-lost-timeout", node_lost_timeout])
    before, agents = job.all_run(), {process.identity for process in processes("agent")}
    master, = processes("master")
    send(master, signal.SIGSTOP)
    time.sleep(float(seconds))
    send(master, signal.SIGCONT)
    time.sleep(2)
    same = agents == {process.identity for process in processes("agent")}
    check({rank: process.identity for rank, process in rank_processes().items()} == before, "the ranks are others")
    job.end(restarts=0)
    return {"same agents": same, "silence noted": "has been silent" in job.log()}


STORIES = (unprivileged, hidepid, small_shared_memory, clock_jumps, slow_home, stalled_home, suspended_master,
           shim_dies_on_full_disk, master_dies_on_full_disk)

if __name__ == "__main__":
    if sys.argv[1] == init_that_does_not_reap.__name__:
        tell({sys.argv[1]: init_that_does_not_reap}, reap=False)
    else:
        tell({story.__name__: story for story in STORIES})
