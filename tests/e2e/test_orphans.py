"""Everyone above the ranks is gone, or stopped: nothing holds a GPU for ever, and a thaw kills nobody.

Three roads lead to the same end: an agent that lives without a master stops its ranks; where the agent is dead or
stopped too, the shims see it in the node's lease and do it themselves.
"""
import json
import os
import signal
import time

from harness import WORKER, is_alive, kill, python, shell, start_ticks, wait_for

TIMEOUT = 3
FLAGS = ["--orphan-timeout", TIMEOUT, "--stop-grace", 1]
RESTARTS = ["--enable-job-restart=True", "--fault-tolerant-policy=OnFailure"]
ENDS_WELL = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("up", flush=True)
signal.pause()
"""


def start(home, *flags, command=(*WORKER, "--steps", 600)):
    finished = home.run("--detach", *FLAGS, *flags, "--", *command)
    assert finished.code == 0, finished
    return home.job()


def attempts(home, job):
    return sorted(home.directory(job).glob("nodes/*/*-worker-*/0"))


def shim_pids(home, job):
    return [json.loads((path / "started.json").read_text())["shim"]["pid"] for path in attempts(home, job)]


def exits(home, job):
    return [json.loads(path.read_text()) for directory in attempts(home, job)
            for path in directory.glob("rank*.exit.json")]


def kill_leaders(home, job):
    kill(home.supervisor_pid(job))
    kill(home.master_pid(job))


def expect_orphaned(home, job, ranks):
    wait_for(lambda: len(exits(home, job)) == ranks, "their exit files")
    found = exits(home, job)
    for one in found:
        assert one["orphaned_ms"] >= TIMEOUT * 1000, one
        assert one["stopped_by_us"] is False, one


def test_without_a_master_the_agent_stops_its_ranks_and_says_so(home):
    job = start(home, "--workers", 2)
    home.wait_for_ranks(2, job)
    began = time.monotonic()
    kill_leaders(home, job)
    wait_for(lambda: not home.rank_processes(job), "the orphaned ranks to be stopped", timeout=30)
    assert time.monotonic() - began >= TIMEOUT - 1
    wait_for(lambda: not home.leftovers(), "the agent to leave", timeout=10)
    expect_orphaned(home, job, 2)
    log, = home.directory(job).glob("nodes/*/agent.log")
    assert "no master for " in log.read_text()


def test_with_the_agent_dead_too_the_shim_does_it(home):
    job = start(home, "--workers", 2)
    home.wait_for_ranks(2, job)
    kill_leaders(home, job)
    for pid in home.agent_pids(job).values():
        kill(pid)
    assert len(home.rank_processes(job)) == 2, "they run on, for a while"
    wait_for(lambda: not home.leftovers(), "nothing to be left", timeout=30)
    expect_orphaned(home, job, 2)
    for directory in attempts(home, job):
        assert "no master for " in (directory / "shim.log").read_text()
        assert json.loads((directory / "ended.json").read_text())["orphaned_ms"] >= TIMEOUT * 1000


def test_a_stopped_agent_is_no_better_than_a_dead_one(home):
    """And a master that comes back says what happened, and begins the next round."""
    job = start(home, *RESTARTS, command=shell('[ "$AIMASTER_ATTEMPT" = 0 ] && exec sleep 600; exit 0'))
    home.wait_for_ranks(1, job)
    agent, = home.agent_pids(job).values()
    os.kill(agent, signal.SIGSTOP)
    try:
        kill_leaders(home, job)
        wait_for(lambda: not home.rank_processes(job), "the orphaned rank to be stopped", timeout=30)
    finally:
        kill(agent)
    expect_orphaned(home, job, 1)
    finished = home.call("resume", job, timeout=90)
    assert finished.code == 0, finished
    record, = home.records(job)
    assert record["fault"] == "Orphaned", record
    assert "no master was there for " in json.dumps(record), record
    assert home.get(job)["restarts"] == 1


def test_a_rank_that_ends_well_when_it_is_stopped_has_not_succeeded(home):
    """It takes SIGTERM for the end of its work and exits with 0."""
    job = start(home, command=python(ENDS_WELL))
    home.wait_for_ranks(1, job)
    wait_for(lambda: any(path.stat().st_size for path in home.directory(job).glob("nodes/*/*/0/rank0.out")),
             "it to be up")
    kill_leaders(home, job)
    wait_for(lambda: not home.leftovers(), "nothing to be left", timeout=30)
    assert exits(home, job)[0]["code"] == 0
    finished = home.call("resume", job, timeout=60)
    assert finished.code != 0, finished
    state = home.get(job)
    assert (state["status"], state["reason_code"]) == ("Failed", "Orphaned"), state
    assert "--orphan-timeout" in state["reason_message"], state


def test_a_job_that_was_frozen_for_longer_than_the_timeout_goes_on(home):
    """All of its processes at once, as when a container is paused or a laptop's lid is closed."""
    job = start(home, "--workers", 2)
    ranks = home.wait_for_ranks(2, job)
    before = {rank: (pid, start_ticks(pid)) for rank, pid in ranks.items()}
    everyone = [home.supervisor_pid(job), home.master_pid(job), *home.agent_pids(job).values(),
                *shim_pids(home, job), *ranks.values()]
    for pid in everyone:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(TIMEOUT * 2 + 3)  # this is what the test is about
    for pid in reversed(everyone):
        os.kill(pid, signal.SIGCONT)
    time.sleep(TIMEOUT * 2)
    assert {rank: (pid, start_ticks(pid)) for rank, pid in home.rank_processes(job).items()} == before
    state = home.get(job)
    assert (state["status"], state["restarts"]) == ("Running", 0), state
    assert home.call("stop", job).code == 0
    wait_for(lambda: not any(is_alive(pid) for pid in ranks.values()), "the ranks to end")
