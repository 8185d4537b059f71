"""A journal from which something was taken: its log, a piece of it, all of it, or all that was newer than a copy. The
ranks go on, nothing is decided on what is left, people are told, and a stop works."""
import json
import os
import shutil
import signal
import time

import pytest

from harness import kill, one_line_error, python, wait_for

TICKING = python("import os, signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
                 "for i in range(1200):\n  print(os.environ['RANK'], i, flush=True)\n  time.sleep(0.1)\n"
                 "  if os.path.exists(os.environ.get('END', '-')): sys.exit(0)\n"
                 "  if os.path.exists(os.environ.get('FAIL', '-')) and os.environ['AIMASTER_ROUND'] == '0':\n"
                 "    sys.exit(5)\n")
RESTART = ["--enable-job-restart=True", "--fault-tolerant-policy=OnFailure"]


def ticking_job(home, *flags):
    home.run("--detach", "--workers", "2", "--stop-grace=2", *RESTART, *flags, "--", *TICKING,
             env={"END": str(home.folder / "end"), "FAIL": str(home.folder / "fail")})
    job = home.job()
    home.wait_for_ranks(2, job)
    home.wait_for_status("Running", job)
    return job


def log(home, job):
    return (home.directory(job) / "aimaster.log").read_text(errors="replace")


def between_two_masters(home, job, damage):
    """The master is killed, and `damage` done before its supervisor starts another one."""
    supervisor = home.supervisor_pid(job)
    os.kill(supervisor, signal.SIGSTOP)
    former = home.master_pid(job)
    kill(former)
    time.sleep(0.1)
    damage(home.directory(job))
    os.kill(supervisor, signal.SIGCONT)


def remove_log(directory):
    (directory / "journal.db-wal").unlink()


def cut_log(directory):
    os.truncate(directory / "journal.db-wal", (directory / "journal.db-wal").stat().st_size // 2)


def remove_all(directory):
    for path in directory.glob("journal.db*"):
        path.unlink()


def state(home, job):
    """Nothing while the journal can't be read."""
    told = home.call("get", job, "--json")
    return told.json() if told.code == 0 else {"trouble": "", "restarts": 0, "status": ""}


def trouble(home, job):
    return state(home, job)["trouble"]


def epoch(home, job):
    return json.loads((home.directory(job) / "master.json").read_text())["epoch"]


def is_led(home, job):
    told = home.call("get", job, "--json")
    return told.code == 0 and told.json()["trouble"] == ""


def remove_log_and_mark(directory):
    remove_log(directory)
    (directory / "durable_mark").unlink()


def remove_all_and_mark(directory):
    remove_all(directory)
    (directory / "durable_mark").unlink()


@pytest.mark.parametrize("damage", [remove_log, cut_log, remove_all, remove_log_and_mark, remove_all_and_mark])
def test_ranks_outlive_a_journal_that_is_damaged_between_two_masters(home, damage):
    job = ticking_job(home)
    ranks = home.rank_processes(job)
    between_two_masters(home, job, damage)
    wait_for(lambda: "ends with input" in trouble(home, job), "the damage to be told")
    wait_for(lambda: "live attempts that go on" in log(home, job), "the agent to be welcome")
    time.sleep(2)  # a stray would be dead by now
    assert home.rank_processes(job) == ranks
    assert "which has been given up" not in log(home, job)
    attached = home.start("attach", job)
    wait_for(lambda: "nothing is decided" in attached.stderr, "attach to tell of it")
    stopped = home.call("stop", job)
    assert stopped.code == 0, stopped
    attached.wait()
    assert home.get(job)["status"] == "Stopped"
    assert not home.rank_processes(job)
    assert "rank 0 (instance 0, attempt 0) has ended with code 0; it is not recorded" in log(home, job)


def test_the_master_after_that_does_not_believe_it_either_and_epochs_go_on(home):
    job = ticking_job(home)
    ranks = home.rank_processes(job)
    between_two_masters(home, job, remove_log)
    for life in (2, 3):
        wait_for(lambda: "were durable" in trouble(home, job), "the damage to be told")
        assert epoch(home, job) == life
        if life == 2:
            kill(home.master_pid(job))
            wait_for(lambda: epoch(home, job) == 3, "the next master")
    assert home.rank_processes(job) == ranks
    assert home.call("stop", "--now", job).code == 0


def test_an_older_copy_that_is_restored_is_told_from_the_journal(home):
    job = ticking_job(home)
    copies = home.folder / "copy"

    def copy(directory):
        copies.mkdir()
        for path in directory.glob("journal.db*"):
            shutil.copy(path, copies)

    between_two_masters(home, job, copy)
    (home.folder / "fail").touch()  # a restart, of which the copy knows nothing
    home.wait_for_status("Running", job)
    wait_for(lambda: home.get(job)["restarts"] == 1 and home.get(job)["status"] == "Running", "a restart")
    ranks = home.wait_for_ranks(2, job)

    def restore(directory):
        remove_all(directory)
        for path in copies.iterdir():
            shutil.copy(path, directory)

    between_two_masters(home, job, restore)
    wait_for(lambda: "an older copy was restored" in trouble(home, job), "the damage to be told")
    time.sleep(2)
    assert home.rank_processes(job) == ranks, "ranks of the second round were taken for strays"
    assert home.call("stop", job).code == 0
    assert not home.rank_processes(job)


def test_a_journal_that_is_put_back_is_gone_on_with(home):
    job = ticking_job(home)
    kept = home.folder / "kept"
    between_two_masters(home, job, lambda directory: os.rename(directory / "journal.db-wal", kept))
    wait_for(lambda: "were durable" in trouble(home, job), "the damage to be told")

    def put_back(directory):
        remove_log(directory)
        os.rename(kept, directory / "journal.db-wal")

    between_two_masters(home, job, put_back)
    wait_for(lambda: is_led(home, job), "the job to be led again")
    (home.folder / "end").touch()
    wait_for(lambda: home.get(job)["status"] == "Succeeded", "the end")


def test_a_log_that_is_removed_under_a_living_master_costs_nothing(home):
    job = ticking_job(home)
    watching = home.start("attach", job)
    home.wait_for_output(watching, "0 ")
    remove_log(home.directory(job))
    wait_for(lambda: "all that it held has been saved" in log(home, job), "the log to be saved")
    (home.folder / "fail").touch()
    wait_for(lambda: (now := state(home, job))["restarts"] == 1 and now["status"] == "Running", "a restart", timeout=40)
    (home.folder / "end").touch()
    finished = watching.wait(40)
    assert finished.code == 0, finished
    assert home.call("replay", job).code == 0


def test_a_log_that_is_cut_short_under_a_living_master_is_noticed(home):
    job = ticking_job(home)
    watching = home.start("attach", job)
    home.wait_for_output(watching, "0 ")
    os.truncate(home.directory(job) / "journal.db-wal", 4096)
    wait_for(lambda: "was cut short" in log(home, job), "the damage to be noticed")
    wait_for(lambda: "nothing is decided" in watching.stderr, "people to be told", timeout=40)
    assert home.call("stop", job, timeout=90).code == 0
    watching.wait(30)
    assert home.get(job)["status"] == "Stopped"


def test_a_job_whose_journal_was_removed_can_be_stopped(home):
    job = ticking_job(home)
    remove_all(home.directory(job))
    for command in ("get", "records", "explain"):
        one_line_error(home.call(command, job), "has run, but its journal", "is gone", "its master (process",
                       "2 instances", f"aimaster stop {job}")
    stopped = home.call("stop", job)
    assert stopped.code == 0, stopped
    assert "is gone" in stopped.stderr, stopped
    assert not home.rank_processes(job)
    assert home.get(job)["status"] == "Stopped"


def test_a_job_that_ended_without_its_journal_can_be_stopped_too(home):
    job = ticking_job(home)
    remove_all(home.directory(job))
    (home.folder / "end").touch()
    wait_for(lambda: not home.rank_processes(job), "the ranks to end")
    time.sleep(1)  # the master hears of it
    stopped = home.call("stop", job)
    assert stopped.code == 0, stopped
    told = home.get(job)
    assert told["status"] == "Stopped" and "its journal had been lost" in told["reason_message"], told
    assert "without grace" not in home.call("explain", job).stdout


def test_ctrl_c_in_run_ends_a_job_whose_journal_was_removed(home):
    running = home.start("run", "--workers", "1", "--stop-grace=2", "--", *TICKING)
    home.wait_for_output(running, "0 3")
    remove_all(home.directory())
    running.signal(signal.SIGINT)
    time.sleep(0.3)
    running.signal(signal.SIGINT)
    assert running.wait(20).code == 130


def test_a_second_ctrl_c_leaves_whatever_the_master_does(home):
    running = home.start("run", "--workers", "1", "--", *TICKING)
    home.wait_for_output(running, "0 3")
    job = home.job()
    supervisor, master = home.supervisor_pid(job), home.master_pid(job)
    os.kill(supervisor, signal.SIGSTOP), os.kill(master, signal.SIGSTOP)
    running.signal(signal.SIGINT)
    time.sleep(0.3)
    running.signal(signal.SIGINT)
    finished = running.wait(20)
    assert finished.code == 130, finished
    assert f"process {master}, is stopped: `kill -CONT {master}`" in finished.stderr, finished
    assert f"aimaster stop --now {job}" in finished.stderr, finished
    os.kill(supervisor, signal.SIGCONT), os.kill(master, signal.SIGCONT)
    assert home.call("stop", "--now", job).code == 0


def test_a_lost_journal_of_a_job_that_is_over_says_what_to_do(home):
    assert home.run("--", "true").code == 0
    job = home.job()
    remove_all(home.directory(job))
    for command in ("get", "attach", "resume", "stop"):
        one_line_error(home.call(command, job), "has run, but its journal", "nothing of the job runs any more",
                       "submit the job anew")
