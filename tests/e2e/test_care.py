"""Who looks after a job, and whether they can: what people are told, and what sets it right."""
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import time

import pytest

from harness import WORKER, Home, kill, one_line_error, wait_for


def job_of_one(home, *flags):
    home.run("--detach", "--workers", "1", "--stop-grace=1", *flags, "--", *WORKER, "--steps", "600")
    job = home.job()
    home.wait_for_ranks(1, job)
    home.wait_for_status("Running", job)
    return job


def test_resume_brings_a_lost_supervisor_back_while_the_master_lives(home):
    job = job_of_one(home)
    ranks, master = home.rank_processes(job), home.master_pid(job)
    kill(home.supervisor_pid(job))
    wait_for(lambda: "supervisor is gone" in home.call("get", job).stdout, "get to tell of it")
    resumed = home.call("resume", "--detach", job)
    assert resumed.code == 0 and "is looked after again" in resumed.stdout, resumed
    wait_for(lambda: home.get(job)["master_pid"] not in (None, master), "a master of the new supervisor")
    kill(home.master_pid(job))  # and whoever dies now is replaced
    wait_for(lambda: home.get(job)["trouble"] == "" and home.get(job)["supervisor_pid"], "another master")
    assert home.rank_processes(job) == ranks
    assert home.call("stop", job).code == 0


def test_stop_brings_a_lost_supervisor_back_too(home):
    job = job_of_one(home)
    kill(home.supervisor_pid(job))
    stopped = home.call("stop", job)
    assert stopped.code == 0 and "had no supervisor any more" in stopped.stderr, stopped
    assert home.get(job)["status"] == "Stopped"


def test_who_holds_the_start_lock_holds_nobody_up_for_ever(home):
    job = job_of_one(home)
    kill(home.supervisor_pid(job)), kill(home.master_pid(job))
    with open(home.directory(job) / "supervisor" / "start.lock", "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        stopped = home.call("stop", "--timeout", "1", job)
        assert stopped.code == 1 and stopped.seconds < 5, stopped
        one_line_error(stopped, f"process {os.getpid()} is starting the job's supervisor", "start.lock")
        interrupted = home.start("stop", job)
        time.sleep(1)
        interrupted.signal(signal.SIGINT)
        assert interrupted.wait(3).code == 130
    assert home.call("stop", job).code == 0


def test_stopped_processes_of_ours_are_named_with_the_cure(home):
    job = job_of_one(home)
    supervisor, master = home.supervisor_pid(job), home.master_pid(job)
    attached = home.start("attach", job)
    os.kill(master, signal.SIGSTOP)
    assert f"its master, process {master}, is stopped: `kill -CONT {master}`" in home.get(job)["trouble"]
    wait_for(lambda: f"`kill -CONT {master}`" in attached.stderr, "attach to tell of it")
    late = home.call("stop", "--timeout", "1", job)
    assert late.code == 1 and f"`kill -CONT {master}`" in late.stderr, late
    os.kill(supervisor, signal.SIGSTOP)
    kill(master)
    wait_for(lambda: f"its supervisor, process {supervisor}, is stopped" in home.get(job)["trouble"], "the supervisor")
    os.kill(supervisor, signal.SIGCONT)
    assert home.call("stop", job).code == 0
    attached.wait()


def test_files_by_which_a_job_is_reached_are_put_back(home):
    job = job_of_one(home)
    for name in ("token", "spec.json"):
        path = home.directory(job) / name
        before = path.read_bytes()
        path.unlink()
        wait_for(path.exists, f"{name} to be put back")
        assert path.read_bytes() == before and path.stat().st_mode & 0o177 == 0
    assert home.get(job)["trouble"] == ""
    assert home.call("stop", job).code == 0


def test_a_stopped_agent_is_named_too_and_replaced_in_time(home):
    job = job_of_one(home, "--node-lost-timeout=12")
    (agent,) = home.agent_pids(job).values()
    os.kill(agent, signal.SIGSTOP)
    cure = f", process {agent}, is stopped: `kill -CONT {agent}`"
    wait_for(lambda: cure in home.call("get", job).stdout, "the cure in the description")
    wait_for(lambda: (late := home.call("stop", "--timeout", "1", job)).code == 1 and cure in late.stderr, "the cure")
    assert home.call("stop", job).code == 0  # the master has another one started, which finds what there is to stop
    assert home.get(job)["status"] == "Stopped" and not home.rank_processes(job)


def test_a_status_that_nobody_keeps_up_says_from_when_it_is(home):
    job = job_of_one(home)
    assert home.get(job)["status_as_of"] is None
    kill(home.supervisor_pid(job)), kill(home.master_pid(job))
    wait_for(lambda: home.get(job)["status_as_of"], "the status to be marked")
    shown = home.call("get", job).stdout
    assert "nobody leads" in shown and f"aimaster resume {job}" in shown, shown
    listed = home.call("list").stdout
    assert "nobody starts one" in listed, listed
    assert "nobody starts one" in home.list()[0]["trouble"]
    assert home.call("stop", job).code == 0


def test_files_that_are_missing_for_a_moment_are_waited_for(home):
    job = job_of_one(home)
    token = home.directory(job) / "token"
    token.rename(home.folder / "token")
    kill(home.master_pid(job))
    wait_for(lambda: "tried again and again" in home.get(job)["trouble"], "the reason to be told")
    shown = home.call("get", job).stdout
    assert "no master runs; its supervisor, process" in shown and "token" in shown, shown
    (home.folder / "token").rename(token)
    wait_for(lambda: home.get(job)["trouble"] == "", "a master", timeout=30)
    assert home.call("stop", job).code == 0


def test_a_spec_that_is_away_for_a_moment_is_waited_for_too(home):
    job = job_of_one(home)
    spec = home.directory(job) / "spec.json"
    spec.rename(home.folder / "spec.json")
    kill(json.loads((home.directory(job) / "master.json").read_text())["pid"])
    log = home.directory(job) / "aimaster.log"
    wait_for(lambda: log.read_text().count("tried again and again") > 10, "more tries than a crash loop has", 60)
    (home.folder / "spec.json").rename(spec)
    wait_for(lambda: home.get(job)["trouble"] == "", "a master", timeout=30)
    assert home.call("stop", job).code == 0


def test_a_limit_on_the_size_of_files_is_named(home):
    limited = home.start("run", "--", "true", prefix=("/bin/sh", "-c", 'ulimit -f 32; exec "$@"', "sh")).wait(60)
    assert limited.code == 1, limited
    assert "no file of this process may grow beyond 16384 bytes (ulimit -f)" in limited.stderr, limited


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", folder], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=False)


def home_on(disk, home):
    """All that is ours lies there, what the test itself writes does not."""
    full = Home(disk, home.marker)
    full.folder, full.numbers = home.folder, home.numbers
    return full


def fill(folder):
    with contextlib.suppress(OSError), open(folder / "filler", "ab", buffering=0) as out:
        while out.write(b"x" * 4096):
            pass


def test_a_job_whose_master_died_on_a_full_disk_can_be_stopped(home, small_disk):
    full = home_on(small_disk, home)
    job = job_of_one(full)
    assert (full.directory(job) / "reserve").exists()
    ranks = full.rank_processes(job)
    fill(small_disk)
    kill(full.master_pid(job))
    stopped = full.call("stop", "--timeout", "30", job)
    assert stopped.code == 0, stopped
    assert ranks and not full.rank_processes(job)
    assert full.get(job)["status"] == "Stopped"
    wait_for(lambda: not home.leftovers(), "all processes to be gone")


def test_a_master_that_finds_no_room_at_all_is_told_of(home, small_disk):
    full = home_on(small_disk, home)
    job = job_of_one(full)
    for reserve in list(full.directory(job).rglob("reserve")):  # the node's too, which its agent would give back
        reserve.unlink()
    fill(small_disk)
    kill(full.master_pid(job))
    wait_for(lambda: "full" in full.get(job)["trouble"], "the reason to be told")
    shown = full.call("get", job).stdout
    assert f"its supervisor, process {full.supervisor_pid(job)}, tries again and again" in shown, shown
    assert "free some space" in shown, shown
    (small_disk / "filler").unlink()
    wait_for(lambda: full.get(job)["trouble"] == "", "a master", timeout=30)
    assert full.call("stop", job).code == 0
    wait_for(lambda: not home.leftovers(), "all processes to be gone")
