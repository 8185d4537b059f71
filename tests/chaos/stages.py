"""kill -9 of the master at each stage of a restart. The end has to be the one of a run in which nothing was killed.

    AIMASTER_CHAOS_SEED=N AIMASTER_BIN=DIR unshare --pid --fork --mount-proc --kill-child \\
        /usr/bin/python3 tests/chaos/stages.py STORY FOLDER STAGE TIMES

Most stages last a millisecond or less. So the master is let run in slices: stopped, looked at through its journal, and
let go on for a fraction of a millisecond, until the stage is there; then it is killed, half of the times after another
slice. Which stage it was that it died in is read afterwards from the last input that was durable under its epoch; a
kill that missed the stage is a try and no hit (its end is checked all the same). Isolating is one step with the request
for another node, so the journal can't tell the two apart: `isolate` is a kill at the first look that shows that step,
`acquire` one slice later with still nothing that follows.
"""
import json
import os
import signal
import subprocess
import time

from world import (AIMASTER, RANK, World, check, check_training, kill, processes, read, seed_and_random, send, start,
                   tell, wait_for)

STAGES = ("detect", "collect", "decide", "stop", "isolate", "acquire", "start", "ready")
# A rule of severity 1: the node is isolated, and the pretended machine has no other one, so both ranks share the rest.
HARDWARE = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."
WINDOW_NS = 100_000_000
STEPS, STEP_SECONDS = 16, 0.05
FLAGS = ["--workers", 2, "--local-nodes", 2, "--enable-job-restart=True", "--stop-grace", 2, "--collect-window",
         WINDOW_NS / 1e9]
SLICE = 0.0005
TRIES_PER_HIT = 8


class Case:
    """One job, whose rank 1 fails when told to."""

    def __init__(self, folder, steps=STEPS):
        self.world, self.steps = World(folder), steps
        self.follower = self.world.follow("run", *FLAGS, "--", *RANK, self.world.work, steps, STEP_SECONDS)
        self.job = self.world.new_job(self.follower)
        self.journal = self.world.journal(self.job)
        wait_for(lambda: self.count("InstanceReady", 0) == 2, "the first round")

    def inputs(self, epoch=None):
        query = "SELECT kind, body FROM input" + (f" WHERE epoch = {epoch}" if epoch else "") + " ORDER BY seq"
        return [(kind, json.loads(body)) for kind, body in self.journal.rows(query)]

    def count(self, kind, attempt):
        return len({body["instance"] for name, body in self.inputs() if name == kind and body["attempt"] == attempt})

    def fail(self):
        # Before the name is there, the whole text has to be.
        (self.world.work / "new").write_text(HARDWARE)
        os.rename(self.world.work / "new", self.world.work / "1.fail-0")

    def rank_has_ended(self):
        for file in self.world.directory(self.job).glob("nodes/*/*-worker-1/0/rank0.exit.json"):
            return '"pid"' in file.read_text()
        return False

    def stage(self, epoch=None):
        """The stage that the inputs up to now have led to; `isolate` stands for acquire too."""
        failed = closed = judged = placed = False
        ended, started, ready, first = set(), set(), set(), 0
        for kind, body in self.inputs(epoch):
            attempt = body.get("attempt")
            if kind == "RankFailed" and body["failure"]["attempt"] == 0 and not failed:
                failed, first = True, body["at"]["monotonic_ns"]
            elif kind in ("Tick", "EvidenceCollected") and failed:
                closed = closed or body["at"]["monotonic_ns"] - first >= WINDOW_NS
            elif kind == "FailureJudged":
                judged = True
            elif kind == "InstanceEnded" and attempt == 0:
                ended.add(body["instance"])
            elif kind == "NodeDenied" and judged:
                placed = True
            elif kind == "InstanceStarted" and attempt == 1:
                started.add(body["instance"])
            elif kind == "InstanceReady" and attempt == 1:
                ready.add(body["instance"])
        if not failed:
            return "detect" if self.rank_has_ended() else "before"
        if not judged:
            return "decide" if closed else "collect"
        if len(ended) < 2:
            return "stop"
        if not placed:
            return "isolate"
        if len(started) < 2:
            return "start"
        return "ready" if len(ready) < 2 else "after"

    def master(self):
        return wait_for(lambda: next(iter(processes("master")), None), "a master", every=0.001)

    def kill_at(self, stage, random, supervisor_too):
        """True when the master died in that stage."""
        master = self.master()
        looked_for = "isolate" if stage == "acquire" else stage
        epoch = self.journal.job().get("epoch")
        if supervisor_too:
            for supervisor in processes("supervisor"):
                kill(supervisor)
        further = stage == "acquire" or (stage != "isolate" and random.random() < 0.5)
        if stage == "detect":  # it lasts until the master has heard of it
            hold(master)
            self.fail()
            wait_for(self.rank_has_ended, "the rank's end")
        else:
            self.fail()
        while True:
            hold(master)
            now = self.stage()
            if now == looked_for or now == "after":
                break
            send(master, signal.SIGCONT)
            time.sleep(random.uniform(0, SLICE))
        if further and now == looked_for:
            send(master, signal.SIGCONT)
            time.sleep(random.uniform(0, SLICE / 2))
        kill(master)
        wait_for(lambda: (left := read(master.pid)) is None or left.identity != master.identity, "the master's end",
                 every=0.001)
        return self.stage(epoch) == looked_for

    def end(self, followers):
        """What the job has come to, without what differs from run to run."""
        codes = [follower.wait(60) for follower in followers]
        self.follower.wait(60)
        state = self.world.query("get", self.job)
        records = self.world.query("records", self.job)
        rounds = self.world.query("rounds", self.job)
        decisions = self.world.query("explain", self.job)
        last = check_training(self.world.work, 2, self.steps)
        left = self.world.everything_gone()
        check(not left, f"left behind: {left}")
        self.journal.close()
        return {
            "codes": sorted(set(codes)), "status": state["status"], "reason": state["reason_message"],
            "restarts": state["restarts"], "last attempts": last,
            "isolated": [node["name"] for node in state["nodes"] if node["isolated"]],
            "instances": [(one["status"], one["attempt"]) for one in state["instances"] if one["role"] != "aimaster"],
            "records": [[one[name] for name in ("restarts", "result", "fault", "error_code", "error_message", "rank",
                                                "node_name", "isolated", "reason", "round")] for one in records],
            # Nobody has seen the last round get ready where its ranks were done before a master was back.
            "rounds": [(one["round"], one["result"], one["reason"],
                        sorted({stage["name"] for stage in one["stages"] if one is not rounds[-1] or
                                stage["name"] != "ready"})) for one in rounds],
            "decisions": [(one["decision"], one["summary"], one["reasons"]) for one in decisions],
        }


def hold(process):
    """Stops it, and waits until it stands."""
    if send(process, signal.SIGSTOP):
        while (now := read(process.pid)) and now.state != "T":
            time.sleep(0.00005)


def undisturbed(folder):
    case = Case(f"{folder}/undisturbed")
    case.fail()
    return case.end([case.follower])


def difference(found, expected):
    return {name: (found[name], expected[name]) for name in expected if found[name] != expected[name]}


def each(folder, stage, times, supervisor_too):
    seed, random = seed_and_random()
    expected = undisturbed(folder)
    check(expected["restarts"] == 1 and expected["status"] == "Succeeded" and expected["isolated"],
          f"the undisturbed run is not what it should be: {expected}")
    hits = tries = 0
    while hits < int(times):
        check(tries < int(times) * TRIES_PER_HIT + 10, f"{tries} tries have hit {stage} {hits} times")
        case = Case(f"{folder}/{tries}")
        hit = case.kill_at(stage, random, supervisor_too)
        follower = case.follower
        if supervisor_too:
            follower = case.world.follow("resume", case.job)
        found = case.end([follower])
        # After a second without anybody it says so and ends; on a loaded machine, resume takes longer than that.
        code = case.follower.wait(20)
        check(code == 0 or supervisor_too and code == 1, f"run has ended with {code}")
        differing = difference(found, expected)
        check(not differing, f"try {tries}, killed at {stage}, job {case.job}: (found, expected) {differing}")
        tries += 1
        hits += hit
    return {"seed": seed, "stage": stage, "hits": hits, "tries": tries}


def rank_fails_without_master(folder):
    """Supervisor and master are gone, the rank fails, then comes resume: as if a master had been there."""
    expected = undisturbed(folder)
    case = Case(f"{folder}/alone", steps=60)  # its peer is to have something left to do in the next round
    for process in (*processes("supervisor"), *processes("master")):
        kill(process)
    wait_for(lambda: not processes("master"), "no master")
    case.fail()
    wait_for(case.rank_has_ended, "the rank's end")
    code = case.follower.wait(20)
    check(code == 1, f"run has not said that nobody looks after the job, but: {code} {case.follower.err.read_text()}")
    return {"differs": difference(case.end([case.world.follow("resume", case.job)]), expected)}


def ranks_succeed_without_master(folder):
    case = Case(f"{folder}/alone")
    for process in (*processes("supervisor"), *processes("master")):
        kill(process)
    wait_for(lambda: not processes("rank"), "the ranks' end")
    case.follower.wait(20)
    found = case.end([case.world.follow("resume", case.job)])
    return {name: found[name] for name in ("codes", "status", "restarts", "last attempts")}


def old_master_comes_back(folder):
    """The old master stands still (a suspended machine, say) while another takes over; then it wakes up."""
    expected = undisturbed(folder)
    case = Case(f"{folder}/two")
    for supervisor in processes("supervisor"):
        kill(supervisor)
    old = case.master()
    hold(old)
    successor = start([AIMASTER, "master", "--job-dir", case.world.directory(case.job)], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL)
    wait_for(lambda: case.journal.job().get("epoch") == 2, "the successor")
    case.fail()
    wait_for(case.rank_has_ended, "the rank's end")
    send(old, signal.SIGCONT)
    wait_for(lambda: (now := read(old.pid)) is None or now.identity != old.identity, "the old master's end", 10)
    check(successor.poll() is None, "the successor has ended too")
    found = case.end([case.follower])
    successor.wait(10)
    epochs = [epoch for epoch, in case.journal.rows("SELECT epoch FROM input ORDER BY seq")]
    case.journal.close()
    return {"differs": difference(found, expected), "epochs in order": epochs == sorted(epochs),
            "epochs": sorted(set(epochs))}


def supervised(folder, stage, times):
    return each(folder, stage, times, supervisor_too=False)


def resumed(folder, stage, times):
    return each(folder, stage, times, supervisor_too=True)


if __name__ == "__main__":
    tell({story.__name__: story for story in (supervised, resumed, rank_fails_without_master,
                                              ranks_succeed_without_master, old_master_comes_back)})
