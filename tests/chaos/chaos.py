"""Chaos: a job of some ranks runs while whatever is ours is killed and stopped at random, and its disk or its link
fails. Run in a pid namespace of its own (tests/e2e/test_chaos.py does); prints what happened as JSON.

    AIMASTER_CHAOS_SEED=N AIMASTER_BIN=DIR unshare --pid --fork --mount-proc --kill-child \\
        /usr/bin/python3 tests/chaos/chaos.py STORY FOLDER SECONDS KILLS

What must hold in the end, whatever happened: each rank has done each step, once per life and one life at a time; its
output file has what it said; there were as many restarts as shims were killed, and each record names such an instance;
the job Succeeded and the follower says so with 0; nothing of ours is left.
"""
import os
import signal
import subprocess
import time
from pathlib import Path

from world import (ENDS, RANK, World, check, check_output, check_training, environment_of, fill, kill, processes,
                   rank_processes, read, seed_and_random, send, set_link, tell, wait_for)

STEP_SECONDS = 0.1
LAST_SHIM = 0.8  # of the steps: a rank whose shim is killed later may have ended before the news arrives


class Chaos:
    def __init__(self, world, random, ranks, seconds, flags=()):
        self.world, self.random, self.ranks = world, random, ranks
        self.ranks_each = random.choice((1, 1, 2, 4))  # of an instance
        self.steps = int(seconds / STEP_SECONDS)
        self.kills = dict.fromkeys(("master", "agent", "shim", "supervisor"), 0)
        self.pauses = self.resumes = 0
        self.shot = []  # (instance, attempt) of each killed shim
        self.stopped = {}  # identity → when it goes on
        self.restarts_expected = 0
        self.hooks = []  # called in each turn: the disk, the link
        self.calm = False  # no shim is killed now
        self.follower = world.follow("run", "--workers", ranks // self.ranks_each, "--nproc-per-node",
                                     self.ranks_each, "--local-nodes", 3, "--stop-grace", 1,
                                     "--enable-job-restart=True", "--fault-tolerant-policy=OnFailure",
                                     "--max-num-of-job-restart", 1000, "--max-num-of-same-error", 1000, *flags, "--",
                                     *RANK, world.work, self.steps, STEP_SECONDS)
        self.job = world.new_job(self.follower)
        self.journal = world.journal(self.job)
        self.first_follower = self.follower

    def progress(self):
        """The step of the slowest rank."""
        slowest = self.steps
        for rank in range(self.ranks):
            try:
                slowest = min(slowest, int((self.world.work / f"{rank}.checkpoint").read_text()))
            except (OSError, ValueError):
                return 0
        return slowest

    def run(self, kills):
        """Makes trouble until so much has been killed, or the job has ended; then waits for the end."""
        deadline = time.monotonic() + self.steps * STEP_SECONDS * 4 + 120
        began = time.monotonic()
        pause = self.steps * STEP_SECONDS / kills * 0.7
        while not self.ended():
            check(time.monotonic() < deadline, f"job {self.job} never ended: {self.journal.job()}, {self.counts()}, "
                  f"step {self.progress()}")
            self.turn()
            time.sleep(self.random.uniform(0, 2 * pause))
        self.seconds = time.monotonic() - began
        self.go_on(everything=True)

    def turn(self):
        self.go_on()
        for hook in self.hooks:
            hook()
        what = self.random.choices(("agent", "agents", "master", "everything", "pause", "shim", "supervisor", "both"),
                                   (50, 6, 18, 3, 10, 6, 2, 2))[0]
        getattr(self, "turn_" + what)()

    # -- what may happen -----------------------------------------------------------------------------------------------

    def shoot(self, kind, process):
        self.kills[kind] += kill(process)

    def turn_agent(self):
        if agents := processes("agent"):
            self.shoot("agent", self.random.choice(agents))

    def turn_agents(self):
        for agent in processes("agent"):
            self.shoot("agent", agent)

    def turn_master(self):
        for master in processes("master"):
            self.shoot("master", master)

    def turn_everything(self):
        self.turn_master()
        self.turn_agents()

    def turn_pause(self):
        if found := [process for process in processes("master", "agent") if process.identity not in self.stopped]:
            process = self.random.choice(found)
            if send(process, signal.SIGSTOP):
                self.pauses += 1
                self.stopped[process.identity] = (process, time.monotonic() + self.random.uniform(0.1, 3))

    def turn_supervisor(self):
        """It alone: nothing is to be noticed, until the master dies too."""
        for supervisor in processes("supervisor"):
            self.shoot("supervisor", supervisor)

    def turn_both(self):
        self.turn_supervisor()
        self.turn_master()

    def turn_shim(self):
        """Only while all ranks run in a round that is ready, and not near the end: so one shim is one restart."""
        ranks = rank_processes()
        if self.calm or len(ranks) < self.ranks or self.journal.job().get("restarts") != self.restarts_expected:
            return
        if self.journal.job().get("status") != "Running" or self.progress() > LAST_SHIM * self.steps:
            return
        rank = self.random.choice(sorted(ranks))
        shim = read(ranks[rank].parent)
        if shim is None or shim.kind != "shim":
            return
        environment = environment_of(ranks[rank].pid)
        if kill(shim):
            self.kills["shim"] += 1
            self.restarts_expected += 1
            self.shot.append((environment["AIMASTER_INSTANCE"], int(environment["AIMASTER_ATTEMPT"])))

    def go_on(self, everything=False):
        for identity, (process, until) in list(self.stopped.items()):
            if everything or time.monotonic() > until:
                send(process, signal.SIGCONT)
                del self.stopped[identity]

    # -- how it ends ---------------------------------------------------------------------------------------------------

    def ended(self):
        """True when a follower has told the end. One that says that nobody is there any more is followed by resume."""
        code = self.follower.code
        if code is None:
            return False
        status = self.journal.job().get("status")
        if status in ENDS:
            return True
        said = self.follower.err.read_text()
        check(code == 1 and "aimaster resume" in said, f"the follower ended with {code} at {status}: {said[-1000:]}")
        self.follower = self.world.follow("resume", self.job)
        self.resumes += 1
        return False

    def counts(self):
        return {"kills": self.kills, "total": sum(self.kills.values()), "pauses": self.pauses, "resumes": self.resumes}

    def judge(self, complete=True):
        code, state = self.follower.code, self.world.query("get", self.job)
        records = self.world.query("records", self.job)
        check(state["status"] == "Succeeded" and code == 0,
              f"{state['status']} ({state['reason_message']}), the follower ended with {code}")
        blamed = [(one["instance_name"], one["error_message"]) for one in records]
        wanted = [instance for instance, _ in self.shot]
        check([instance for instance, _ in blamed] == wanted, f"killed the shims of {self.shot}: {blamed}")
        restarts = len(records)
        check(state["restarts"] == restarts, f"{state['restarts']} restarts and {restarts} records")
        last = check_training(self.world.work, self.ranks, self.steps)
        check(set(last) == {restarts}, f"the ranks' last attempts are {last} after {restarts} restarts")
        check_output(self.world.directory(self.job), self.ranks, self.ranks_each, self.world.work, complete)
        if self.resumes == 0 and complete:
            said = [line for line in self.first_follower.out.read_text().splitlines() if line.startswith("step ")]
            check(said and said[-1] == f"step {self.steps - 1}" and len(said) >= self.steps - len(self.shot),
                  f"run has shown {len(said)} of {self.steps} steps of rank 0")
        if complete:  # on a full disk the log may lack what was said there
            gave_up = (self.world.directory(self.job) / "aimaster.log").read_text().count("giving up")
            check(self.resumes <= self.kills["supervisor"] + gave_up,
                  f"{self.resumes} times nobody was there, for {self.kills} and {gave_up} crash loops")
        left = self.world.everything_gone()
        check(not left, f"left behind: {left}")
        return {**self.counts(), "ranks of an instance": self.ranks_each, "restarts": state["restarts"],
                "epochs": state["epoch"], "seconds": round(self.seconds, 1), "status": state["status"]}


def plain(folder, seconds, kills):
    seed, random = seed_and_random()
    chaos = Chaos(World(folder), random, ranks=8, seconds=float(seconds))
    chaos.run(int(kills))
    return {"seed": seed, **chaos.judge()}


class FullDisk:
    """The file system of the home is filled to the last byte now and then, and freed again. Nothing is started anew in
    that time (no shim is killed), since a start that finds no room is judged for itself elsewhere."""

    def __init__(self, home, chaos):
        self.home, self.chaos, self.until, self.times = home, chaos, time.monotonic() + 3, 0
        self.filler = home / "filler"

    def __call__(self):
        if time.monotonic() < self.until:
            return
        if self.filler.exists():
            self.filler.unlink()
            self.chaos.calm = False
            self.until = time.monotonic() + self.chaos.random.uniform(2, 5)
        elif not self.restarting():
            self.chaos.calm = True
            fill(self.filler)
            self.times += 1
            self.until = time.monotonic() + self.chaos.random.uniform(1, 4)

    def restarting(self):
        return len(rank_processes()) < self.chaos.ranks or self.chaos.journal.job().get("status") != "Running" or \
            self.chaos.journal.job().get("restarts") != self.chaos.restarts_expected


def full_disk(folder, seconds, kills):
    """Needs a mount namespace of its own besides."""
    seed, random = seed_and_random()
    home = Path(folder) / "small"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", home], check=True)
    chaos = Chaos(World(folder, home=home / "home"), random, ranks=8, seconds=float(seconds))
    disk = FullDisk(home, chaos)
    chaos.hooks.append(disk)
    wait_for(lambda: len(rank_processes()) == 8, "the ranks")
    chaos.run(int(kills))
    disk.filler.unlink(missing_ok=True)
    return {"seed": seed, "full": disk.times, **chaos.judge(complete=False)}


class Link:
    """lo goes down for some seconds, and comes back. Ranks that use no network are not to notice."""

    def __init__(self, chaos, longest):
        self.chaos, self.longest, self.until, self.times, self.is_up = chaos, longest, time.monotonic() + 2, 0, True

    def __call__(self):
        if time.monotonic() < self.until:
            return
        self.is_up = not self.is_up
        set_link(self.is_up)
        self.times += not self.is_up
        self.until = time.monotonic() + self.chaos.random.uniform(0.5, 4 if self.is_up else self.longest)


def link_loss(folder, seconds, kills):
    """Needs a network namespace of its own besides. Nodes count as lost after 3 s, the link is down for up to 6 s."""
    seed, random = seed_and_random()
    set_link(True)
    chaos = Chaos(World(folder), random, ranks=8, seconds=float(seconds), flags=["--node-lost-timeout", 3])
    link = Link(chaos, longest=6)
    chaos.hooks.append(link)
    chaos.run(int(kills))
    set_link(True)
    return {"seed": seed, "cuts": link.times, **chaos.judge()}


if __name__ == "__main__":
    os.environ.pop("AIMASTER_TEST_MARKER", None)
    tell({"plain": plain, "full_disk": full_disk, "link_loss": link_loss})
