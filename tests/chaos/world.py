"""The world of a story: the first process of a pid namespace, everything that exists in it, and jobs of `aimaster`.

In here every process is ours, so nothing can hide: not by another session, not by an empty environment, not by a
second fork. The first process also inherits orphans; a thread reaps them as any init does.
"""
import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

BIN = Path(os.environ["AIMASTER_BIN"])
AIMASTER = str(BIN / "aimaster")
HERE = Path(__file__).resolve().parent
RANK = ["/usr/bin/python3", "-S", str(HERE / "rank.py")]
ENDS = {"Succeeded", "Failed", "Stopped"}


class Violation(Exception):
    """A promise was broken; the text says which."""


def check(holds, text):
    if not holds:
        raise Violation(text)


def wait_for(condition, what, timeout=30.0, every=0.02):
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Violation(f"waited {timeout:g} s in vain for {what}; there is: {describe(processes())}")
        time.sleep(every)


# -- processes ---------------------------------------------------------------------------------------------------------


class Process:
    def __init__(self, pid, parent, state, start_ticks, arguments):
        self.pid, self.parent, self.state, self.start_ticks, self.arguments = pid, parent, state, start_ticks, arguments

    @property
    def identity(self):
        return self.pid, self.start_ticks

    @property
    def kind(self):
        """What it is, by its own words; other programs are `other`, as is what a rank has started."""
        name = os.path.basename(self.arguments[0]) if self.arguments else ""
        if name == "aimaster-agent":
            return "agent"
        if name == "aimaster-shim":
            return "supervisor" if "--supervise" in self.arguments else "shim"
        if name == "aimaster":
            return "master" if self.arguments[1:2] == ["master"] else "command"
        return "rank" if str(HERE / "rank.py") in self.arguments else "other"


def read(pid):
    """None when there is no such process, or only its zombie: that one has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = [os.fsdecode(part) for part in file.read().split(b"\0")[:-1]]
    except OSError:
        return None
    if fields[0] in "ZX":
        return None
    return Process(int(pid), int(fields[1]), fields[0], int(fields[19]), arguments)


def processes(*kinds):
    found = (read(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid())
    found = [process for process in found if process]
    if not kinds:
        return found
    # A child that has not executed its program yet still looks like its parent.
    programs = {process.pid: process.kind for process in found}
    return [process for process in found if process.kind in kinds and programs.get(process.parent) != process.kind]


def describe(found):
    return [f"{process.pid} ({process.state}) {' '.join(process.arguments)[:200]}" for process in found]


def environment_of(pid):
    with contextlib.suppress(OSError):
        pairs = (entry.partition(b"=") for entry in Path("/proc", str(pid), "environ").read_bytes().split(b"\0"))
        return {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}
    return {}


def rank_processes():
    return {int(environment_of(process.pid).get("RANK", -1)): process for process in processes("rank")}


def send(process, number):
    """To this very process, not to one that got its number since."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(process.pid)
        try:
            now = read(process.pid)
            if now and now.start_ticks == process.start_ticks:
                signal.pidfd_send_signal(handle, number)
                return True
        finally:
            os.close(handle)
    return False


def kill(process):
    return send(process, signal.SIGKILL)


OWN = {os.getpid()}        # this process and the children that subprocess collects
REAPING = threading.Lock()  # held while such a child is made


def start(command, **options):
    with REAPING:
        child = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, start_new_session=True, **options)
        OWN.add(child.pid)
    return child


def reap_for_ever():
    """As process 1: orphans that end are collected."""
    while True:
        time.sleep(0.05)
        with REAPING:
            for name in os.listdir("/proc"):
                if name.isdigit() and int(name) not in OWN:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(int(name), os.WNOHANG)


# -- jobs --------------------------------------------------------------------------------------------------------------


class Follower:
    """`aimaster run`, `resume` or `attach`, in the background; its output lies in files of the home's neighbour."""

    def __init__(self, world, *arguments, env=None):
        number = len(world.followers)
        self.arguments = list(map(str, arguments))
        self.out, self.err = world.notes / f"follower{number}.out", world.notes / f"follower{number}.err"
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = start([*world.prefix, world.aimaster, *self.arguments], stdout=out, stderr=err, env=env)
        world.followers.append(self)

    @property
    def code(self):
        return self.process.poll()

    def wait(self, timeout):
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Violation(f"{self.arguments[0]} did not end within {timeout} s: {self.err.read_text()[-2000:]}"
                            ) from None


class World:
    """A home, a folder that the ranks share, a folder for notes; all below `folder`. Commands run behind `prefix`."""

    def __init__(self, folder, home=None, prefix=(), aimaster=AIMASTER):
        self.folder, self.prefix, self.aimaster = Path(folder), list(prefix), str(aimaster)
        self.home = Path(home or self.folder / "home")
        self.work, self.notes = self.folder / "work", self.folder / "notes"
        for path in (self.work, self.notes):
            path.mkdir(parents=True, exist_ok=True)
        os.environ["AIMASTER_HOME"] = str(self.home)
        self.followers = []

    def follow(self, *arguments, **options):
        return Follower(self, *arguments, **options)

    def call(self, *arguments, timeout=30, codes=(0,)):
        finished = Follower(self, *arguments)
        code = finished.wait(timeout)
        check(code in codes, f"aimaster {' '.join(finished.arguments)} ended with {code}: {finished.err.read_text()}")
        return finished.out.read_text()

    def query(self, command, job, *flags):
        return json.loads(self.call(command, *flags, "--json", job))

    def query_all(self):
        """The ids of all jobs."""
        return self.call("list", "--ids").split()

    def directory(self, job):
        return self.home / "jobs" / job

    def new_job(self, follower, known=(), timeout=30.0):
        """The id of the job that this `run` has made."""
        def there():
            check(follower.code is None, f"run ended early with {follower.code}: {follower.err.read_text()[-2000:]}")
            with contextlib.suppress(OSError):
                for line in follower.err.read_text().splitlines():
                    words = line.split()
                    if words[2:3] == ["job"] and words[3].startswith("dlc") and words[3] not in known:
                        return words[3]
            return None

        return wait_for(there, "the job to be told of", timeout)

    def journal(self, job):
        """A reader of the journal that sees each commit at once; cheaper by far than a command."""
        return Journal(self.directory(job) / "journal.db")

    def everything_gone(self, timeout=8.0):
        """What is left of us, after time enough to say goodbye. Commands that the story itself runs don't count."""
        deadline = time.monotonic() + timeout
        while True:
            left = [process for process in processes() if process.pid not in OWN]
            if not left or time.monotonic() > deadline:
                return describe(left)
            time.sleep(0.02)


class Journal:
    def __init__(self, path):
        self.path = path
        self.connection = None

    def rows(self, query, *values):
        """Empty while there is no journal yet, or while it can't be read."""
        try:
            if self.connection is None:
                self.connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=2,
                                                  isolation_level=None, check_same_thread=False)
            return self.connection.execute(query, values).fetchall()
        except sqlite3.Error:
            self.close()
            return []

    def job(self):
        for body, in self.rows("SELECT body FROM job"):
            return json.loads(body)
        return {}

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


# -- what the ranks have written ---------------------------------------------------------------------------------------


def lives_of_rank(work, rank):
    """[(attempt, [steps])] in the order in which the lines were written."""
    lives = []
    for line in (work / f"{rank}.log").read_text().splitlines():
        attempt, step = line.split()
        if not lives or lives[-1][0] != int(attempt):
            lives.append((int(attempt), []))
        if step != "begins":
            lives[-1][1].append(int(step))
    return lives


def check_training(work, ranks, steps):
    """Every step was done, each exactly once per life, lives one after the other; returns each rank's last attempt."""
    check(not (work / "doubled").exists(), "two lives of one rank at once: "
          + ((work / "doubled").read_text() if (work / "doubled").exists() else ""))
    last = []
    for rank in range(ranks):
        lives, done = lives_of_rank(work, rank), -1
        attempts = [attempt for attempt, _ in lives]
        check(attempts == sorted(set(attempts)), f"rank {rank}: attempts that mix or go back: {attempts}")
        for attempt, life in lives:
            if not life:  # stopped before its first step, or there was none left to do
                continue
            # The line is written before the checkpoint, so a life that was killed in between did its last step twice.
            check(life[0] in (done, done + 1), f"rank {rank} attempt {attempt} begins at {life[0]} after step {done}")
            check(life == list(range(life[0], life[-1] + 1)), f"rank {rank} attempt {attempt} has a gap: {life}")
            done = life[-1]
        check(done == steps - 1, f"rank {rank} ended at step {done} of {steps - 1}")
        last.append(attempts[-1])
    return last


def check_output(directory, ranks, ranks_each, work, complete=True):
    """What lies in the rank's own output files is what the rank said, in every life."""
    for rank in range(ranks):
        for attempt, life in lives_of_rank(work, rank):
            instance, local = divmod(rank, ranks_each)
            found = list(directory.glob(f"nodes/*/*-worker-{instance}/{attempt}/rank{local}.out"))
            check(len(found) == 1, f"rank {rank} attempt {attempt} has {len(found)} output files")
            lines = found[0].read_text().split("\n")[:-1]  # on a full disk a line may be cut short, and said again
            said = [int(line[5:]) for line in lines if re.fullmatch("step [0-9]+", line)]
            # Killed between the line in the log and the word on standard output, it said one step less.
            if complete:
                check(said in (life, life[:-1]), f"rank {rank} attempt {attempt} did {life} and its output has {said}")
            check(set(said) <= set(life), f"rank {rank} attempt {attempt} said {said} and did {life}")


def fill(path):
    """To the last byte of its file system."""
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size):
                    pass


def set_link(up):
    """The only one of a network namespace."""
    subprocess.run(["ip", "link", "set", "lo", "up" if up else "down"], check=True)


def seed_and_random():
    """The seed decides what is done and for how long; when the kernel lets whom run is not ours to repeat."""
    seed = int(os.environ.get("AIMASTER_CHAOS_SEED") or random.SystemRandom().randrange(10 ** 9))
    print(f"AIMASTER_CHAOS_SEED={seed}", file=sys.stderr, flush=True)
    return seed, random.Random(seed)


def tell(stories, reap=True):
    """Runs the story that the command line names, and prints what it tells, or which promise was broken. Orphans are
    reaped meanwhile."""
    name, *arguments = sys.argv[1:]
    if reap:
        threading.Thread(target=reap_for_ever, daemon=True).start()
    try:
        told = stories[name](*arguments)
    except Violation as violation:
        print(json.dumps({"violation": str(violation)}))
        sys.exit(1)
    print(json.dumps(told))
