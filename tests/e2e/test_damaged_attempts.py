"""An agent dies, and what it has written down of an attempt is missing, damaged or can't be read. Nothing is doubled,
nothing is forgotten: it goes on where that can be, and is a failure with an honest reason where it can't."""
import os
import random
import re
import shutil
import signal
from pathlib import Path

import pytest

import harness
from harness import BIN, FULL, PYTHON, ROOT, is_alive, kill, shell, start_ticks, wait_for

RANK = [PYTHON, "-S", str(ROOT / "tests" / "chaos" / "rank.py")]  # shows whether it was doubled
RESTARTS = ["--enable-job-restart=True", "--fault-tolerant-policy=OnFailure", "--stop-grace", "1"]


class Job:
    """Two workers on one node, in a run that the test damages."""

    def __init__(self, home, steps=40, workers=2):
        self.home, self.work, self.workers = home, home.folder / "work", workers
        self.work.mkdir()
        self.running = home.start("run", "--workers", workers, *RESTARTS, "--", *RANK, self.work, steps, 0.1)
        self.id = home.job_of(self.running)
        self.ranks = home.wait_for_ranks(workers, self.id)
        home.wait_for_status("Running", self.id)
        wait_for(lambda: all((self.work / f"{rank}.log").exists() for rank in range(workers)), "the ranks to begin")
        self.before = self.identities()

    def identities(self):
        return {rank: (pid, start_ticks(pid)) for rank, pid in self.home.rank_processes(self.id).items()}

    def attempt(self, worker=1, number=0):
        found, = self.home.directory(self.id).glob(f"nodes/*/*-worker-{worker}/{number}")
        return found

    def damage(self, names, how, worker=1):
        for name in names:
            path = self.attempt(worker) / name
            if how == "missing":
                path.unlink()
            else:
                path.write_bytes(b"{ this is no document")

    def kill_agent(self):
        (name, pid), = self.home.agent_pids(self.id).items()
        kill(pid)
        wait_for(lambda: (new := self.home.agent_pids(self.id)[name]) != pid and is_alive(new), "another agent")

    def end(self):
        finished = self.running.wait(90)
        assert not (self.work / "doubled").exists(), (self.work / "doubled").read_text()
        assert finished.code == 0, finished
        return self.home.records(self.id)


@pytest.mark.parametrize("how", ["missing", "garbage"])
def test_without_its_claim_an_attempt_goes_on(home, how):
    job = Job(home)
    job.damage(["claim.json"], how)
    job.kill_agent()
    assert job.end() == []
    assert set(job.before) == {0, 1}
    for rank in (0, 1):
        assert (job.work / f"{rank}.log").read_text().count("begins") == 1, "the ranks are others"


@pytest.mark.parametrize("how", ["missing", "garbage"])
@pytest.mark.parametrize("names", [["claim.json", "launch"], ["claim.json", "launch", "started.json"]],
                         ids=["the ranks are known", "nothing is known"])
def test_an_attempt_that_nobody_knows_is_lost_and_restarted_once(home, how, names):
    job = Job(home)
    job.damage(names, how)
    job.kill_agent()
    record, = job.end()
    assert record["instance_name"] == f"{job.id}-worker-1", record
    assert re.search("claim is lost or damaged|finds no record of it", record["error_message"]), record


def test_an_attempt_whose_directory_is_gone_is_lost_and_restarted_once(home):
    job = Job(home)
    shutil.rmtree(job.attempt())
    job.kill_agent()
    record, = job.end()
    assert record["instance_name"] == f"{job.id}-worker-1", record


def test_a_lock_that_is_gone_costs_nothing(home):
    job = Job(home)
    job.damage(["lock"], "missing")
    job.kill_agent()
    assert job.end() == []
    assert (job.work / "1.log").read_text().count("begins") == 1, "the rank is another"


def test_a_directory_in_anothers_place_doubles_nobody(home):
    job = Job(home)
    place, other = job.attempt(1), job.attempt(0)
    place.rename(place.with_name("0x"))
    other.rename(place)
    job.kill_agent()
    records = job.end()
    assert records and all("claim is lost or damaged" in record["error_message"]
                           or "finds no record" in record["error_message"] for record in records), records


def test_a_stop_reaches_whom_nobody_knows(home):
    job = Job(home, steps=600)
    for worker in (0, 1):
        job.damage(["claim.json", "launch"], "garbage", worker)
    (pid,) = home.agent_pids(job.id).values()
    kill(pid)
    job.running.signal(signal.SIGINT)
    finished = job.running.wait(60)
    assert finished.code == 130, finished
    assert home.get(job.id)["status"] == "Stopped"
    assert not any(is_alive(rank) for rank in job.ranks.values()), "said to be stopped, and alive"


def test_an_agent_whose_lock_was_removed_gives_way_to_the_next(home):
    job = Job(home, steps=80)
    lock, = home.directory(job.id).glob("nodes/*/agent.lock")
    (name, former), = home.agent_pids(job.id).items()
    lock.unlink()
    kill(home.master_pid(job.id))  # the next one finds the lock free, and starts another agent
    wait_for(lambda: home.agent_pids(job.id).get(name) not in (None, former), "another agent")
    wait_for(lambda: not is_alive(former), "the former agent to leave")
    assert job.end() == []
    assert job.identities().keys() <= job.before.keys()


# -- an agent is killed over a start -----------------------------------------------------------------------------------

@pytest.fixture
def fragile(home, tmp_path, monkeypatch):
    """Programs whose first shims kill their agent, and die before they have begun."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("aimaster", "aimaster-agent"):
        try:
            os.link(BIN / name, folder / name)
        except OSError:
            shutil.copy2(BIN / name, folder / name)
    wrapper = folder / "aimaster-shim"
    counter = tmp_path / "shims"
    wrapper.write_text("#!/bin/sh\n"
                       f"if [ \"$1\" != --supervise ] && [ \"$(wc -l 2>/dev/null < {counter})\" != 3 ]; then\n"
                       f"  echo >> {counter}; kill -9 $PPID; exit 1\nfi\nexec {BIN}/aimaster-shim \"$@\"\n")
    wrapper.chmod(0o755)
    counter.touch()
    monkeypatch.setattr(harness, "AIMASTER", str(folder / "aimaster"))
    return counter


def test_an_agent_killed_over_a_start_costs_no_restart(home, fragile):
    finished = home.run(*RESTARTS, "--", *shell("exit 0"))
    assert finished.code == 0, finished
    assert len(fragile.read_text()) == 3, "the agent was not killed three times"
    assert (home.get()["restarts"], home.records()) == (0, [])
    claims = list(home.directory().glob("nodes/*/*-worker-0/*/claim.json"))
    assert [path.parent.name for path in claims] == ["0"], "it was started in place"


def test_an_agent_killed_at_any_moment_of_a_start_costs_no_restart(home):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for i in range(40 if FULL else 6):
        work = home.folder / f"work{i}"
        work.mkdir()
        running = home.start("run", "--workers", 3, *RESTARTS, "--", *RANK, work, 5, 0.05)
        job = home.job_of(running)
        pause = chance.choice(("agent.json", "claim.json", "launch", "lock", "started.json"))
        wait_for(lambda: list(home.directory(job).glob(f"nodes/*/**/{pause}")), pause, every=0.0002)
        for pid in home.agent_pids(job).values():
            kill(pid)
        finished = running.wait(60)
        assert finished.code == 0, finished
        assert home.records(job) == []
        assert not (work / "doubled").exists()


# -- too few descriptors -----------------------------------------------------------------------------------------------

def test_a_resumed_agent_with_few_descriptors_hears_of_every_death(home):
    """It may have 64 files open, and 40 ranks to look after."""
    work = home.folder / "work"
    work.mkdir()
    running = home.start("run", "--workers", 40, "--stop-grace", 1, "--", *shell("exec sleep 600"))
    job = home.job_of(running)
    ranks = home.wait_for_ranks(40, job, timeout=60)
    home.wait_for_status("Running", job, timeout=60)
    for pid in (home.supervisor_pid(job), home.master_pid(job), *home.agent_pids(job).values()):
        kill(pid)
    running.wait(30)
    resumed = home.start("resume", job, prefix=["prlimit", "--nofile=64:64"])
    log = home.directory(job) / "aimaster.log"
    wait_for(lambda: "may have 64 files open and would need" in log.read_text(), "the limit to be named", timeout=30)
    home.wait_for_status("Running", job)
    assert set(home.rank_processes(job).values()) == set(ranks.values())
    assert not list(home.directory(job).glob("nodes/*/*/0/tombstone")), "for a living attempt"
    kill(ranks[37])
    finished = resumed.wait(60)
    assert finished.code == 137, finished
    failed, = [one["name"] for one in home.workers(job) if one["signal"] == 9 and one["status"] == "Failed"]
    assert failed.endswith("-worker-37")
