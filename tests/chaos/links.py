"""A network namespace whose only link goes down. Ranks that use no network must not notice; what they did meanwhile
must be known afterwards.

    AIMASTER_BIN=DIR unshare --pid --fork --mount-proc --kill-child --net \\
        /usr/bin/python3 tests/chaos/links.py STORY FOLDER ARGUMENTS…
"""
import os
import signal
import time

from faults import Job
from world import World, check, processes, rank_processes, send, set_link, tell, wait_for


def identities():
    return {rank: process.identity for rank, process in rank_processes().items()}


def checkpoints(world):
    return [int((world.work / f"{rank}.checkpoint").read_text()) for rank in range(2)]


def cut(folder, seconds, node_lost_timeout):
    set_link(True)
    job = Job(World(folder), steps=int((float(seconds) + 5) * 10), flags=["--node-lost-timeout", node_lost_timeout])
    before = job.all_run()
    wait_for(lambda: (job.world.work / "1.checkpoint").exists() and (job.world.work / "0.checkpoint").exists(),
             "the first steps")
    set_link(False)
    first = checkpoints(job.world)
    time.sleep(float(seconds))
    steps = [now - then for now, then in zip(checkpoints(job.world), first)]
    check(min(steps) >= float(seconds) * 10 * 0.5, f"in {seconds} s without link the ranks made {steps} steps")
    state = job.get()
    check(state["status"] == "Running", f"without link the job is {state['status']}")
    set_link(True)
    time.sleep(1)
    check(identities() == before, "the ranks are others")
    job.end(restarts=0)
    return {"lost": [node["name"] for node in job.get()["nodes"] if node["lost"]]}


def rank_fails_meanwhile(folder):
    set_link(True)
    job = Job(World(folder), steps=80)
    job.all_run()
    set_link(False)
    send(rank_processes()[1], signal.SIGKILL)
    time.sleep(2)
    check(job.get()["restarts"] == 0, "a restart that nobody can have asked for")
    set_link(True)
    job.all_run(restarts=1)
    record, = job.world.query("records", job.job)
    check((record["rank"], record["error_code"]) == (1, 137), f"the record says {record}")
    job.end(restarts=1)
    return {"restarts": 1}


def cut_in_a_restart(folder):
    """The link goes at some moment of a restart, for a second; five moments."""
    set_link(True)
    job = Job(World(folder), steps=250, flags=["--max-num-of-job-restart", 9])
    for restarts, moment in enumerate((0.0, 0.1, 0.26, 0.3, 0.35), 1):
        send(rank_processes()[restarts % 2], signal.SIGKILL)
        time.sleep(moment)
        set_link(False)
        time.sleep(1)
        set_link(True)
        job.all_run(restarts)
    job.end(restarts=5)
    return {"restarts": 5}


def longer_than_the_orphan_timeout(folder):
    """Agents that no master can reach stop their ranks in the end. The master is not dead, and restarts the job."""
    set_link(True)
    world = World(folder)
    job = Job(world, steps=250, flags=["--orphan-timeout", 3, "--node-lost-timeout", 60])
    set_link(False)
    wait_for(lambda: not rank_processes(), "the ranks to be stopped", timeout=20)
    set_link(True)
    job.all_run(restarts=1)
    record, = world.query("records", job.job)
    job.end(restarts=1)
    return {"restarts": 1, "message": record["error_message"]}


def no_link_at_the_start(folder):
    """lo comes up two seconds after the job was started."""
    world = World(folder)
    follower = world.follow("run", "--workers", 2, "--", "/bin/true")
    time.sleep(2)
    check(follower.code is None, f"run has given up: {follower.code} {follower.err.read_text()}")
    set_link(True)
    code = follower.wait(30)
    left = world.everything_gone()
    check(not left, f"left behind: {left}")
    return {"code": code}


def stop_without_link(folder):
    """A stop that the master can't be told of is told when the link is back."""
    set_link(True)
    world = World(folder)
    job = Job(world, steps=600)
    set_link(False)
    job.follower.process.send_signal(signal.SIGINT)
    time.sleep(2)
    check(len(processes("rank")) == 2, "the ranks are gone")
    set_link(True)
    code = job.follower.wait(30)
    left = world.everything_gone()
    check(not left, f"left behind: {left}")
    return {"code": code, "status": job.get()["status"]}


if __name__ == "__main__":
    os.environ.pop("AIMASTER_TEST_MARKER", None)
    tell({story.__name__: story for story in (cut, rank_fails_meanwhile, cut_in_a_restart, no_link_at_the_start,
                                              longer_than_the_orphan_timeout, stop_without_link)})
