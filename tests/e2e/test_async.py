"""Async jobs: a worker fails and is restarted alone, while the others run on and do not notice."""
import signal

from harness import kill, python, wait_for

ASYNC = ["--job-execution-mode=Async", "--fault-tolerant-policy=OnFailure"]
# Prints what it was started as, and lives until the file `go` is there. Reports every signal that it can.
LIVES = python("""
import os, signal, sys, time
e = os.environ
def told(number, frame):
    print("SIGNAL", number, flush=True)
    sys.exit(128 + number)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, told)
print("UP", e["RANK"], e["ROLE_NAME"], e["AIMASTER_ATTEMPT"], e["TORCHELASTIC_RESTART_COUNT"], e["MASTER_PORT"],
      e["LOCAL_RANK"], flush=True)
while e["ROLE_NAME"] == "ps" or not os.path.exists("go"): time.sleep(0.02)
print("DONE", e["RANK"], flush=True)
""")


def start(home, *flags, ranks, command=LIVES, grace=1):
    running = home.start("run", *ASYNC, "--tee", "all", "--stop-grace", grace, *flags, "--", *command)
    job = home.job_of(running)
    home.wait_for_output(running, "UP ", times=ranks)
    home.wait_for_status("Running", job)
    return running, job


def restarted(home, job, rank, before):
    """The process of this rank that has taken the place of the one before."""
    return wait_for(lambda: (pid := home.rank_processes(job).get(rank)) not in (None, before) and pid,
                    f"rank {rank} to be restarted")


def finish(home, running):
    (home.folder / "go").touch()
    return running.wait()


def up_lines(running, rank):
    return [line.split("UP ")[1].split() for line in running.stdout.splitlines() if f"UP {rank} " in line]


def test_a_worker_dies_and_it_alone_is_restarted(home):
    running, job = start(home, "--workers", 3, ranks=3)
    before = home.rank_processes(job)
    kill(before[1])
    after = restarted(home, job, 1, before[1])
    home.wait_for_output(running, "UP 1 ", times=2)
    now = home.rank_processes(job)
    assert (now[0], now[1], now[2]) == (before[0], after, before[2])
    first, second = up_lines(running, 1)
    assert first == ["1", "worker", "0", "0", first[4], "1"]
    assert second == ["1", "worker", "1", "1", first[4], "1"], "same rank, next attempt, the port the others know"
    finished = finish(home, running)
    assert finished.code == 0, finished
    assert "SIGNAL" not in running.stdout
    state = home.get(job)
    assert (state["status"], state["restarts"], state["round"]) == ("Succeeded", 0, 0)
    assert [one["attempt"] for one in home.workers(job)] == [0, 1, 0]
    record, = home.records(job)
    assert (record["scope"], record["restarts"], record["result"]) == ("instance", 1, "Restarted")
    assert (record["instance_name"], record["error_code"]) == (f"{job}-worker-1", 137)
    assert record["duration_ms"] > 0
    assert [detail["rank"] for detail in record["details"]] == [1]
    assert len(home.rounds(job)) == 1
    assert [one["decision"] for one in home.explain(job)] == ["RestartInstance", "Succeed"]
    assert home.call("replay", job).code == 0


def test_two_workers_die_together_and_each_is_judged_and_restarted(home):
    running, job = start(home, "--workers", 4, "--local-nodes", 2, "--collect-window", "0.5", ranks=4)
    before = home.rank_processes(job)
    for rank in (1, 2):
        kill(before[rank])
    for rank in (1, 2):
        restarted(home, job, rank, before[rank])
    home.wait_for_output(running, "UP ", times=6)
    now = home.rank_processes(job)
    assert (now[0], now[3]) == (before[0], before[3])
    assert finish(home, running).code == 0
    assert sorted(record["rank"] for record in home.records(job)) == [1, 2]
    assert [one["attempt"] for one in home.workers(job)] == [0, 1, 1, 0]


def test_a_worker_dies_while_another_is_still_being_stopped(home):
    """Two ranks per worker; the second rank of the first worker takes its time to go."""
    stubborn = python("""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("UP", os.environ["RANK"], os.environ["AIMASTER_ATTEMPT"], flush=True)
while not os.path.exists("go"): time.sleep(0.02)
""")
    running, job = start(home, "--workers", 3, "--nproc-per-node", 2, ranks=6, command=stubborn, grace=2)
    before = home.rank_processes(job)
    kill(before[0])
    wait_for(lambda: home.records(job), "the first to be decided")
    kill(before[3])
    for rank in (0, 3):
        restarted(home, job, rank, before[rank])
    home.wait_for_ranks(6, job)
    now = home.rank_processes(job)
    assert (now[4], now[5]) == (before[4], before[5])
    home.wait_for_output(running, "UP ", times=10)
    assert finish(home, running).code == 0
    assert [one["attempt"] for one in home.workers(job)] == [1, 1, 0]


def test_a_ps_dies_and_the_job_restarts_where_it_may(home):
    running, job = start(home, "--workers", 2, "--ps", 1, "--enable-job-restart=True", ranks=3)
    before = home.rank_processes(job)
    kill(before[2])
    after = {rank: restarted(home, job, rank, before[rank]) for rank in before}
    assert not set(after.values()) & set(before.values())
    home.wait_for_output(running, "UP ", times=6)
    home.wait_for_status("Running", job)
    assert finish(home, running).code == 0
    state = home.get(job)
    assert (state["status"], state["restarts"], state["round"]) == ("Succeeded", 1, 1)
    record, = home.records(job)
    assert (record["scope"], record["instance_name"], record["error_code"]) == ("job", f"{job}-ps-0", 137)
    assert any("a ps can't be restarted alone" in reason for reason in home.explain(job)[0]["reasons"])
    assert [(one["role"], one["status"]) for one in home.workers(job)] == [
        ("worker", "Succeeded"), ("worker", "Succeeded"), ("ps", "Stopped")]


def test_a_ps_dies_and_the_job_fails_where_it_may_not_be_restarted(home):
    running, job = start(home, "--workers", 2, "--ps", 1, ranks=3)
    kill(home.rank_processes(job)[2])
    finished = running.wait()
    assert finished.code == 137, finished
    state = home.get(job)
    assert state["status"] == "Failed"
    assert "--enable-job-restart=False" in state["reason_message"]
    assert home.records(job) == []


def test_a_worker_that_fails_too_often_by_the_same_error_ends_the_job(home):
    code = ("import os, time\nprint('UP', os.environ['RANK'], flush=True)\n"
            "if os.environ['RANK'] == '1': os._exit(3)\ntime.sleep(600)")
    finished = home.run(*ASYNC, "--stop-grace", 1, "--workers", 3, "--max-num-of-same-error=2", "--", *python(code))
    assert finished.code == 3, finished
    assert "--max-num-of-same-error=2" in home.get()["reason_message"]
    assert [record["restarts"] for record in home.records()] == [1, 2]
    assert [one["attempt"] for one in home.workers()] == [0, 2, 0]


def test_a_mistake_in_the_program_ends_the_job_at_once(home):
    code = "import os, time\nif os.environ['RANK'] == '1': raise ValueError('no such column')\ntime.sleep(600)"
    finished = home.run("--job-execution-mode=Async", "--workers", 3, "--", *python(code))
    assert finished.code == 1, finished
    assert "no such column" in home.get()["reason_message"]
    assert home.records() == []


def test_the_master_is_killed_in_the_midst_of_a_restart(home):
    """While the worker's other rank is being stopped: the successor goes on with the stop, and starts it once."""
    stubborn = python("""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("UP", os.environ["RANK"], os.environ["AIMASTER_ATTEMPT"], flush=True)
while not os.path.exists("go"): time.sleep(0.02)
""")
    running, job = start(home, "--workers", 2, "--nproc-per-node", 2, ranks=4, command=stubborn, grace=3)
    before = home.rank_processes(job)
    kill(before[2])
    wait_for(lambda: home.records(job), "the restart to be decided")
    for _ in range(2):
        kill(home.master_pid(job))
        wait_for(lambda: home.get(job)["master_pid"], "the next master")
    for rank in (2, 3):
        restarted(home, job, rank, before[rank])
    home.wait_for_output(running, "UP ", times=6)
    now = home.rank_processes(job)
    assert (now[0], now[1]) == (before[0], before[1])
    wait_for(lambda: home.records(job)[0]["result"] == "Restarted", "the record to be closed")
    assert finish(home, running).code == 0
    assert len(home.records(job)) == 1
    assert [one["attempt"] for one in home.workers(job)] == [0, 1]
    assert running.stdout.count("UP ") == 6


def test_only_the_failed_worker_leaves_a_suspect_node(home):
    code = python("""
import os, sys, time
e = os.environ
print("UP", e["RANK"], e["AIMASTER_NODE"], e["LOCAL_RANK"], flush=True)
if e["RANK"] == "0" and e["AIMASTER_ATTEMPT"] == "0":
    while not os.path.exists("fail"): time.sleep(0.02)
    print("RuntimeError: CUDA error: uncorrectable ECC error encountered", file=sys.stderr, flush=True)
    sys.exit(1)
while not os.path.exists("go"): time.sleep(0.02)
""")
    running, job = start(home, "--workers", 4, "--local-nodes", 2, ranks=4, command=code)
    before = home.rank_processes(job)
    (home.folder / "fail").touch()
    restarted(home, job, 0, before[0])
    home.wait_for_output(running, "UP 0 ", times=2)
    assert up_lines(running, 0) == [["0", "node-0", "0"], ["0", "node-1", "2"]], "behind those who run there"
    now = home.rank_processes(job)
    assert [now[rank] for rank in (1, 2, 3)] == [before[rank] for rank in (1, 2, 3)]
    assert finish(home, running).code == 0
    record, = home.records(job)
    assert (record["isolated"], record["node_name"]) == (True, "node-0")
    assert [one["node"] for one in home.workers(job)] == ["node-1", "node-0", "node-1", "node-1"]


def test_a_stop_ends_a_job_in_the_midst_of_a_restart(home):
    running, job = start(home, "--workers", 2, ranks=2)
    kill(home.rank_processes(job)[0])
    wait_for(lambda: home.records(job), "the restart to be decided")
    running.signal(signal.SIGINT)
    assert running.wait().code == 130
    assert home.get(job)["status"] == "Stopped"
