"""Which failures are worth a restart: each policy with each kind of failure, the limits, and what is nobody's fault."""
import json

import pytest

from harness import python, wait_for

# What rank 1 of two dies of in the first round; rank 0 waits for it, as in a collective. In later rounds both end well.
DEATHS = {
    "user exception": "raise KeyError('tokens_per_batch')",
    "ECC error": "sys.stderr.write('RuntimeError: CUDA error: uncorrectable ECC error encountered\\n'); os._exit(1)",
    "exit 137": "os._exit(137)",
}
EXIT_CODES = {"user exception": 1, "ECC error": 1, "exit 137": 137}
MESSAGES = {"user exception": "KeyError: 'tokens_per_batch'", "ECC error": "uncorrectable ECC error", "exit 137": "137"}
RETRIED = {
    "OnFailure": {"user exception", "ECC error", "exit 137"},
    "ExitCodeAndErrorMsg": {"ECC error", "exit 137"},
    "Never": set(),
}


def events(home):
    told = [json.loads(line) for line in home.call("events", home.job(), "--json").stdout.splitlines()]
    return [{**event, **event["data"]} for event in told]


def dies_in_round_0(how):
    return python("import os, sys, time\n"
                  "if os.environ['AIMASTER_ROUND'] == '0':\n"
                  f"    if os.environ['RANK'] == '1': {how}\n"
                  "    time.sleep(60)\n")


@pytest.mark.parametrize("policy", list(RETRIED))
@pytest.mark.parametrize("death", list(DEATHS))
def test_each_policy_with_each_kind_of_failure(home, policy, death):
    finished = home.run("--workers", 2, "--enable-job-restart=True", f"--fault-tolerant-policy={policy}",
                        "--stop-grace", 1, "--", *dies_in_round_0(DEATHS[death]))
    state, records = home.get(), home.records()
    decision = home.explain()[0]
    reasons = "\n".join(decision["reasons"])
    assert f"--fault-tolerant-policy={policy}" in reasons, reasons
    assert MESSAGES[death] in decision["summary"], decision
    if death in RETRIED[policy]:
        assert finished.code == 0, finished
        assert (state["status"], state["restarts"], decision["decision"]) == ("Succeeded", 1, "Restart")
        record, = records
        assert (record["rank"], record["error_code"]) == (1, EXIT_CODES[death])
        assert record["instance_name"].endswith("-worker-1")
        assert MESSAGES[death] in record["error_message"]
        assert record["result"] == "Restarted"
    else:
        assert finished.code == EXIT_CODES[death], finished
        assert (state["status"], state["restarts"], decision["decision"]) == ("Failed", 0, "Fail")
        assert records == []
        assert MESSAGES[death] in state["reason_message"]


def test_the_same_error_may_come_twice_and_ends_the_job_the_third_time(home):
    code = "import os, time\nif os.environ['RANK'] == '1': os._exit(9)\ntime.sleep(60)"
    finished = home.run("--workers", 2, "--enable-job-restart=True", "--fault-tolerant-policy=OnFailure",
                        "--max-num-of-same-error=2", "--max-num-of-job-restart=9", "--stop-grace", 1, "--",
                        *python(code))
    assert finished.code == 9, finished
    state = home.get()
    assert (state["status"], state["restarts"]) == ("Failed", 2)
    assert "for the 3. time, over --max-num-of-same-error=2" in state["reason_message"]


def test_three_of_ten_workers_may_fail_and_the_fourth_ends_the_job(home):
    """Also one that fails again: it has been counted."""
    code = ("import os, time\n"
            "who = [3, 7, 3, 1, 8][int(os.environ['AIMASTER_ROUND'])]\n"
            "if int(os.environ['RANK']) == who: os._exit(5)\n"
            "time.sleep(60)")
    finished = home.run("--workers", 10, "--enable-job-restart=True", "--fault-tolerant-policy=OnFailure",
                        "--max-tolerated-failure-rate=0.3", "--max-num-of-job-restart=20", "--stop-grace", 1, "--",
                        *python(code))
    assert finished.code == 5, finished
    state = home.get()
    assert (state["status"], state["restarts"]) == ("Failed", 4)
    assert "4 of 10 workers failed by their own fault, over --max-tolerated-failure-rate=0.3" in state["reason_message"]
    assert [record["rank"] for record in home.records()] == [3, 7, 3, 1]


def test_a_job_that_makes_no_progress_ends_at_its_third_failure(home):
    finished = home.run("--enable-job-restart=True", "--fault-tolerant-policy=OnFailure", "--no-progress-limit=3",
                        "--max-num-of-job-restart=20", "--", *python("import os; os._exit(4)"))
    assert finished.code == 4, finished
    state = home.get()
    assert (state["status"], state["restarts"]) == ("Failed", 2)
    assert "no progress: the same root cause for the 3. time within the first minute" in state["reason_message"]


def test_a_preemption_is_charged_to_no_limit(home):
    """Two pre-emptions, and one restart that is allowed: it is still there for the failure that follows."""
    code = ("import os, sys\n"
            "round = int(os.environ['AIMASTER_ROUND'])\n"
            "if round < 2:\n"
            "    print('received a preemption notice, this node will be terminated', flush=True); os._exit(143)\n"
            "if round == 2: os._exit(3)\n")
    finished = home.run("--enable-job-restart=True", "--fault-tolerant-policy=OnFailure", "--max-num-of-job-restart=1",
                        "--max-num-of-same-error=1", "--max-tolerated-failure-rate=1", "--", *python(code))
    assert finished.code == 0, finished
    assert home.get()["restarts"] == 3
    records = home.records()
    assert ["counts for no limit" in record["reason"] for record in records] == [True, True, False]
    restarts = [one for one in home.explain() if one["decision"] == "Restart"]
    assert "pre-emption" in "\n".join(restarts[0]["reasons"])
    assert "0 of at most 1 restarts used (2 after pre-emptions are not counted)" in restarts[2]["reasons"]
    assert home.call("replay", home.job()).code == 0


KILLED = python("import os\nif int(os.environ['AIMASTER_ROUND']) < 3: os.kill(os.getpid(), 9)")


def test_who_is_killed_again_and_again_waits_longer_each_time(home):
    finished = home.run("--enable-job-restart=True", "--max-num-of-job-restart=9", "--", *KILLED)
    assert finished.code == 0, finished
    said = [event["data"]["message"] for event in events(home)
            if event["type"] == "aimaster.round.waiting"]
    assert said == ["waits 1.0 s before restart 2", "waits 2.0 s before restart 3"]
    waits = [next((stage["duration_ms"] for stage in one["stages"] if stage["name"] == "wait"), 0)
             for one in home.rounds()]
    assert waits[:2] == [0, 0]
    assert 0 < waits[2] <= 1100 and 0 < waits[3] <= 2100, "counted from the decision, less what the stop took"
    assert finished.seconds > 3


def test_a_stop_while_it_waits_is_carried_out_at_once(home):
    running = home.start("run", "--enable-job-restart=True", "--max-num-of-job-restart=99",
                         "--max-num-of-same-error=99", "--", *python("import os; os.kill(os.getpid(), 9)"))
    job = home.job_of(running)
    wait_for(lambda: "waits 8.0 s before restart 5" in running.stderr, "a long wait", 40)
    stopped = home.call("stop", job)
    assert stopped.code == 0, stopped
    assert stopped.seconds < 4
    assert home.get(job)["status"] == "Stopped"
    running.wait()


def test_a_worker_that_crashes_in_a_loop_waits_and_the_other_runs_on(home):
    code = ("import os, time\n"
            "if os.environ['RANK'] == '1' and int(os.environ['AIMASTER_ATTEMPT']) < 3: os._exit(3)\n"
            "time.sleep(4 if os.environ['RANK'] == '0' else 0)")
    finished = home.run("--workers", 2, "--job-execution-mode=Async", "--fault-tolerant-policy=OnFailure", "--",
                        *python(code))
    assert finished.code == 0, finished
    said = [event["data"]["message"].partition(" ")[2] for event in events(home)
            if event["type"] == "aimaster.instance.waiting"]
    assert said == ["waits 1.0 s before restart 2", "waits 2.0 s before restart 3"]
    assert {one["name"][-1]: one["attempt"] for one in home.workers()} == {"0": 0, "1": 3}


def test_a_node_with_an_ecc_error_is_left_behind(home):
    """Two pretend nodes: afterwards both instances share the one that is well."""
    code = ("import os, time\n"
            "print(os.environ['RANK'], os.environ['AIMASTER_NODE'], os.environ['LOCAL_RANK'], file=open('seen', 'a'))\n"
            "while open('seen').read().count('\\n') < 2: time.sleep(0.02)\n"
            + dies_in_round_0(DEATHS["ECC error"])[-1])
    finished = home.run("--workers", 2, "--local-nodes", 2, "--enable-job-restart=True", "--stop-grace", 1,
                        "--workdir", home.folder, "--", *python(code))
    assert finished.code == 0, finished
    seen = [line.split() for line in (home.folder / "seen").read_text().splitlines()]
    assert sorted(seen[:2]) == [["0", "node-0", "0"], ["1", "node-1", "0"]]
    assert sorted(seen[2:]) == [["0", "node-0", "0"], ["1", "node-0", "1"]]
    record, = home.records()
    assert (record["isolated"], record["node_name"]) == (True, "node-1")
    told = {event["type"]: event["data"]["message"] for event in events(home)}
    assert told["aimaster.node.isolated"].startswith("node node-1 is isolated: ")
    assert [stage["name"] for stage in home.rounds()[1]["stages"]].count("isolate") == 1


def test_the_last_node_is_kept_and_that_is_said(home):
    finished = home.run("--workers", 2, "--local-nodes", 1, "--enable-job-restart=True", "--stop-grace", 1, "--",
                        *dies_in_round_0(DEATHS["ECC error"]))
    assert finished.code == 0, finished
    record, = home.records()
    assert record["isolated"] is False
    told = {event["type"]: event["data"]["message"] for event in events(home)}
    assert "it is the last one and is kept" in told["aimaster.node.kept"]
    assert "it is the last one and is kept" in "\n".join(home.explain()[0]["reasons"])
