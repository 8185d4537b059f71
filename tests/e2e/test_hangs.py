"""Jobs that stand still: found in time, restarted or failed, and none that is not there.

How long it took is read from the journal, whose times are the master's own: a test on a busy machine is late itself.
"""
import json
import os
import signal
import sqlite3
import time

import pytest

from harness import kill, python, shell

RESTART = ["--enable-job-restart=True", "--stop-grace", 1]
SILENCE = ["--enable-job-hang-detection=True"]
EXIT = ["--enable-job-exit-hang-detection=True"]

# Hangs in round 0, and has its work done in any other. `before` is what it does until then.
HANG_ONCE = """
import os, signal, sys, time
{before}
while os.environ['AIMASTER_ROUND'] == '0': time.sleep(60)
print('done', flush=True)
"""


def inputs(home, kind, job=None):
    """The findings and facts of this kind that the journal holds, in order."""
    with sqlite3.connect(f"file:{home.directory(job)}/journal.db?mode=ro", uri=True) as journal:
        rows = journal.execute("SELECT body FROM input WHERE kind = ? ORDER BY seq", (kind,)).fetchall()
    return [json.loads(row[0]) for row in rows]


def the_hang(home, job=None):
    found = inputs(home, "HangFound", job)
    assert len(found) == 1, found
    return found[0]


def assert_found_in_time(hang, interval):
    assert interval <= hang["lasts_ns"] / 1e9 <= interval + 1, hang


def stage(home, round_, name):
    return next(one for one in home.rounds()[round_]["stages"] if one["name"] == name)


def events(home, kind, job=None):
    listed = home.call("events", job or home.job(), "--json")
    assert listed.code == 0, listed
    return [event for line in listed.stdout.splitlines() if (event := json.loads(line))["type"] == kind]


def test_a_job_that_falls_silent_is_restarted_and_finishes(home):
    code = HANG_ONCE.format(before="for step in range(3): print('step', step, flush=True); time.sleep(0.3)")
    finished = home.run("--workers", 3, "--local-nodes", 2, *RESTART, *SILENCE, "--job-hang-interval=3", "--",
                        *python(code), timeout=120)
    assert finished.code == 0, finished
    assert_found_in_time(the_hang(home), 3)
    state = home.get()
    assert (state["status"], state["restarts"], state["round"]) == ("Succeeded", 1, 1)
    record, = home.records()
    assert record["error_source"] == "hang"
    assert record["error_code"] == record["fault"] == "JobHang"
    assert record["error_message"].startswith("the job hangs: all 3 ranks silent for 3."), record
    assert record["result"] == "Restarted"
    assert record["duration_ms"] >= 3000, "it counts from the last sign of life"
    assert [one["name"] for one in home.rounds()[1]["stages"]][:4] == ["detect", "collect", "decide", "stop"]
    assert 3000 <= stage(home, 1, "detect")["duration_ms"] <= 4000
    restart = next(one for one in home.explain() if one["decision"] == "Restart")
    assert any("of --job-hang-interval" in reason for reason in restart["reasons"]), restart
    assert any("restarts used" in reason for reason in restart["reasons"]), restart
    assert len(events(home, "aimaster.hang.found")) == 1


def test_sleeping_shells_hang_and_one_that_prints_is_enough(home):
    """Rank 0 alone prints, for two intervals; then it stops, and all are silent."""
    script = ("[ $AIMASTER_ROUND = 0 ] || exit 0\n"
              "if [ $RANK = 0 ]; then for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.8; done; fi\nexec sleep 600")
    finished = home.run("--workers", 2, *RESTART, *SILENCE, "--job-hang-interval=3", "--", *shell(script), timeout=120)
    assert finished.code == 0, finished
    hang = the_hang(home)
    assert_found_in_time(hang, 3)
    assert hang["quietest"] == 1
    assert "longest silent: rank 1" in home.records()[0]["error_message"]


def test_a_start_that_never_says_anything_is_a_hang(home):
    """As a rendezvous that never completes; nothing waits for `ready`."""
    finished = home.run("--workers", 2, *RESTART, *SILENCE, "--job-hang-interval=2", "--start-timeout", 600, "--",
                        *shell("[ $AIMASTER_ROUND = 1 ] || exec sleep 600"), timeout=120)
    assert finished.code == 0, finished
    assert_found_in_time(the_hang(home), 2)
    assert home.records()[0]["result"] == "Restarted"


@pytest.mark.parametrize("sign", [
    r"printf '\r%s' $i",                       # a progress bar
    r"printf '%s' $i > /dev/stderr",           # truncates, and is as long as before
    r"printf x >&2",
])
def test_what_is_a_sign_of_life(home, sign):
    script = f"for i in 1 2 3 4 5 6 7 8 9; do {sign}; sleep 0.9; done"
    finished = home.run(*SILENCE, "--job-hang-interval=4", "--", *shell(script), timeout=120)
    assert finished.code == 0, finished
    assert inputs(home, "HangFound") == []


def test_without_permission_it_fails_with_a_record(home):
    finished = home.run("--workers", 2, *SILENCE, "--job-hang-interval=2", "--stop-grace", 1, "--",
                        *shell("echo up; exec sleep 600"), timeout=120)
    assert finished.code == 1, finished
    assert_found_in_time(the_hang(home), 2)
    state = home.get()
    assert (state["status"], state["restarts"], state["reason_code"]) == ("Failed", 0, "JobHang")
    assert "--enable-job-restart=False" in state["reason_message"]
    record, = home.records()
    assert (record["result"], record["error_source"], record["restarts"]) == ("Failed", "hang", 0)


def test_restarts_by_hangs_are_limited_and_no_policy_is_asked(home):
    finished = home.run("--workers", 2, *RESTART, *SILENCE, "--job-hang-interval=1", "--max-num-of-job-restart=1",
                        "--fault-tolerant-policy=Never", "--", *shell("echo up; exec sleep 600"), timeout=120)
    assert finished.code == 1, finished
    state = home.get()
    assert (state["status"], state["restarts"], state["reason_code"]) == ("Failed", 1, "JobHang")
    assert "--max-num-of-job-restart=1" in state["reason_message"]
    assert [record["result"] for record in home.records()] == ["Restarted", "Failed"]


def test_an_exit_that_hangs(home):
    """Rank 0 ends with 0, rank 1 sits in a destructor; both print up to then."""
    code = ("import os, time\n"
            "class Group:\n"
            "  hangs = os.environ['RANK'] == '1' and os.environ['AIMASTER_ROUND'] == '0'\n"
            "  def __del__(self, write=os.write, sleep=time.sleep):\n"
            "    while self.hangs: sleep(0.2); write(1, b'.')\n"
            "group = Group(); print('work is done', flush=True)")
    finished = home.run("--workers", 2, *RESTART, *EXIT, *SILENCE, "--job-exit-hang-interval=3", "--", *python(code),
                        timeout=120)
    assert finished.code == 0, finished
    hang = the_hang(home)
    assert hang["hang"] == "exit"
    assert_found_in_time(hang, 3)
    record, = home.records()
    assert (record["error_source"], record["error_code"], record["rank"]) == ("exit-hang", "JobExitHang", 1)
    assert "rank 1" in record["error_message"]


def test_an_exit_that_hangs_in_one_instance_and_may_not_be_restarted(home):
    script = "if [ $LOCAL_RANK = 0 ]; then exit 0; fi; exec sleep 600"
    finished = home.run("--nproc-per-node", 2, *EXIT, "--job-exit-hang-interval=2", "--stop-grace", 1, "--",
                        *shell(script), timeout=120)
    assert finished.code == 1, finished
    state = home.get()
    assert (state["status"], state["reason_code"]) == ("Failed", "JobExitHang")
    assert home.records()[0]["error_source"] == "exit-hang"


def test_a_ps_neither_ends_nor_is_waited_for(home):
    script = "case $ROLE_NAME in ps) exit 0;; *) for i in 1 2 3 4 5 6; do echo $i; sleep 0.7; done;; esac"
    finished = home.run("--workers", 2, "--ps", 1, *EXIT, "--job-exit-hang-interval=3", "--", *shell(script),
                        timeout=120)
    assert finished.code == 0, finished
    assert inputs(home, "HangFound") == []


def test_a_restart_that_takes_longer_than_the_interval_is_no_hang(home):
    """Rank 0 fails; rank 1 takes its whole grace to go, silently, and the interval passes meanwhile."""
    code = ("import os, signal, sys, time\n"
            "if os.environ['AIMASTER_ROUND'] == '1': print('done'); sys.exit()\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\n"
            "time.sleep(0.5)\n"
            "if os.environ['RANK'] == '0': os._exit(3)\n"
            "time.sleep(600)")
    finished = home.run("--workers", 2, "--enable-job-restart=True", "--fault-tolerant-policy=OnFailure", *SILENCE,
                        "--job-hang-interval=2", "--stop-grace", 6, "--", *python(code), timeout=120)
    assert finished.code == 0, finished
    assert inputs(home, "HangFound") == []
    assert stage(home, 1, "stop")["duration_ms"] > 5000


def test_a_master_that_is_killed_in_the_middle_of_the_silence_finds_it_still_and_once(home):
    running = home.start("run", "--workers", 2, *RESTART, *SILENCE, "--job-hang-interval=8", "--",
                         *python(HANG_ONCE.format(before="print('up', flush=True)")))
    home.wait_for_output(running, "up")
    job = home.job_of(running)
    time.sleep(4)
    kill(home.master_pid(job))
    finished = running.wait(120)
    assert finished.code == 0, finished
    hang = the_hang(home, job)
    assert_found_in_time(hang, 8)
    assert len(inputs(home, "MasterStarted", job)) == 2
    assert len(home.records(job)) == 1


def test_who_prints_and_ends_has_lived_until_then(home):
    """Nobody asks the node of a rank that has ended for what it printed at last."""
    script = "if [ $RANK = 0 ]; then sleep 0.5; echo 1; sleep 3.8; echo 2; else sleep 6.5; fi"
    for nodes in (1, 2):
        finished = home.run("--workers", 2, "--local-nodes", nodes, *SILENCE, "--job-hang-interval=4", "--",
                            *shell(script), timeout=60)
        assert finished.code == 0, finished
        assert inputs(home, "HangFound") == []


def test_a_node_that_does_not_report_is_not_silent(home):
    """Its agent is stopped for longer than the interval, and its ranks print all the while."""
    script = "i=0; while [ $i -lt 16 ]; do echo $i; i=$((i + 1)); sleep 0.7; done"
    running = home.start("run", *SILENCE, "--job-hang-interval=3", "--node-lost-timeout", 60, "--", *shell(script))
    home.wait_for_output(running, "1")
    agent, = home.agent_pids(home.job_of(running)).values()
    os.kill(agent, signal.SIGSTOP)
    time.sleep(6)
    os.kill(agent, signal.SIGCONT)
    finished = running.wait(120)
    assert finished.code == 0, finished
    assert inputs(home, "HangFound") == []


def test_in_an_async_job_it_is_noted_and_has_no_effect(home):
    finished = home.run("--job-execution-mode=Async", *SILENCE, *EXIT, "--job-hang-interval=1",
                        "--job-exit-hang-interval=1", "--workers", 2, "--", *shell("[ $RANK = 0 ] || sleep 3"),
                        timeout=60)
    assert finished.code == 0, finished
    assert inputs(home, "HangFound") == []
    assert "hangs are detected in Sync jobs only" in finished.stderr


STEPS = """
import json, os, socket, sys, time
def step(number):
    body = json.dumps({'step': number})
    with socket.socket(socket.AF_UNIX) as agent:
        agent.connect(os.environ['AIMASTER_SOCKET'])
        agent.sendall(('POST /v1/step HTTP/1.1\\r\\nContent-Length: %d\\r\\n\\r\\n%s' % (len(body), body)).encode())
        assert b' 200 ' in agent.recv(4096)
if os.environ['AIMASTER_ROUND'] == '1': sys.exit()
print('up', flush=True)
for number in range(1, 13): step(number); time.sleep(0.5)
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("requires, idles, hangs", [("log", 0, 1), ("log+progress", 0, 0), ("log+progress", 60, 1)])
def test_a_job_that_is_silent_but_advancing(home, requires, idles, hangs):
    """Six seconds of steps without a word, by an interval of two."""
    finished = home.run(*RESTART, *SILENCE, "--job-hang-interval=2", f"--hang-requires={requires}", "--",
                        *python(STEPS), str(idles), timeout=120)
    assert finished.code == 0, finished
    found = inputs(home, "HangFound")
    assert home.get()["restarts"] == hangs
    assert found[0]["is_advancing"]
    if requires == "log":
        assert len(found) == 1
        reasons = next(one for one in home.explain() if one["decision"] == "Restart")["reasons"]
        assert any(reason.startswith("silent but advancing") for reason in reasons), reasons
        return
    told, = events(home, "aimaster.hang.advancing")
    assert "left running" in told["data"]["message"]
    assert [one["is_advancing"] for one in found] == [True, False][:1 + hangs], "said once"


def test_a_watchdog_that_was_faster_is_an_advice(home):
    line = ("[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=1800000) ran for 1800026 "
            "milliseconds before timing out.")
    finished = home.run(*RESTART, "--", *shell(f"[ $AIMASTER_ROUND = 1 ] && exit 0; echo '{line}' >&2; kill -ABRT $$"),
                        timeout=60)
    assert finished.code == 0, finished
    advice, = events(home, "aimaster.hang.advice")
    assert "--enable-job-hang-detection=True --job-hang-interval=1500" in advice["data"]["message"]
    record, = home.records()
    assert record["advised_job_hang_interval"] == 1500
    assert any("--job-hang-interval=1500" in reason for one in home.explain() for reason in one["reasons"])


def test_what_a_person_sees(home):
    finished = home.run("--workers", 2, *SILENCE, "--job-hang-interval=1", "--stop-grace", 1, "--",
                        *shell("echo up; exec sleep 600"), timeout=60)
    assert finished.code == 1, finished
    table = home.call("records", home.job()).stdout
    assert "JobHang" in table and "the job hangs: all 2 ranks silent for" in table
    assert "the job hangs" in finished.stderr, "and run says why it failed"
