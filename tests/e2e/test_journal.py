"""The journal under bad resources, with the real programs: whatever its disk does, training goes on, and what is known
is never thrown away."""
import os
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from harness import kill, python, wait_for

RESTART = ["--enable-job-restart=True", "--fault-tolerant-policy=OnFailure", "--stop-grace=1"]
TICKING = python("import os, sys, time\nfor i in range(600):\n  print(os.environ['RANK'], i, flush=True)\n"
                 "  time.sleep(0.1)\n  if os.path.exists(os.environ.get('END', '-')): sys.exit(0)\n"
                 "  if os.path.exists(os.environ.get('FAIL', '-')) and os.environ['RANK'] == '0' "
                 "and os.environ['AIMASTER_ROUND'] == '0': sys.exit(5)\n")


def ticking_job(home, *flags, **options):
    end, fail = home.folder / "end", home.folder / "fail"
    running = home.start("run", "--workers", "2", *RESTART, *flags, "--", *TICKING,
                         env={"END": str(end), "FAIL": str(fail), **options.pop("env", {})}, **options)
    home.wait_for_output(running, " 3")
    return running, end, fail


def log(home, job):
    return (home.directory(job) / "aimaster.log").read_text(errors="replace")


def progress(running):
    return running.stdout.count("\n")


def assert_training_goes_on(running):
    before = progress(running)
    wait_for(lambda: progress(running) > before + 4, "training to go on")


@pytest.mark.parametrize("damage, says", [
    (lambda path: os.rename(path, f"{path}.kept"), "was deleted"),
    (lambda path: os.truncate(path, 0), "was cut short"),
])
def test_a_journal_that_is_damaged_while_the_job_runs_is_noticed(home, damage, says):
    running, end, fail = ticking_job(home)
    job = home.job()
    (output,) = home.directory(job).glob("nodes/*/*-worker-1/0/rank0.out")
    path = home.directory(job) / "journal.db"
    damage(path)
    fail.touch()  # something has to be decided
    wait_for(lambda: says in log(home, job), f"the log to say {says!r}")
    assert not path.exists() or path.stat().st_size == 0, "a new history was begun"
    before = output.stat().st_size
    wait_for(lambda: output.stat().st_size > before, "the other rank to go on")
    running.signal(signal.SIGKILL)
    wait_for(lambda: not [kill(pid) for pid in home.leftovers()], "everything to be gone")


def test_a_job_whose_journal_is_gone_is_not_begun_anew(home):
    running, end, _ = ticking_job(home)
    job = home.job()
    end.touch()
    running.wait()
    os.remove(home.directory(job) / "journal.db")
    resumed = home.call("resume", job)
    assert resumed.code != 0, resumed
    assert not (home.directory(job) / "journal.db").exists() or "journal" in resumed.stderr, resumed


SLOW_FSYNC = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
static void wait_long(void) { usleep(300000); }
int fsync(int fd) { wait_long(); return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd); }
int fdatasync(int fd) { wait_long(); return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd); }
"""


def test_with_a_disk_that_syncs_slowly_the_job_is_still_commanded(home):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = home.folder / "slow.c", home.folder / "slow.so"
    source.write_text(SLOW_FSYNC)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    began = time.monotonic()
    running, end, fail = ticking_job(home, env={"LD_PRELOAD": str(library)})
    started = time.monotonic() - began
    fail.touch()
    home.wait_for_status("Running", timeout=60)
    wait_for(lambda: len(home.records()) == 1 and home.records()[0]["result"] == "Restarted", "the restart", timeout=60)
    asked = time.monotonic()
    assert home.call("stop", home.job()).code == 0
    ended = running.wait(60)
    print(f"start {started:.1f} s, stop {time.monotonic() - asked:.1f} s with 0.3 s per sync")
    assert home.get()["status"] == "Stopped", ended


def test_a_master_whose_clock_jumps_an_hour_does_not_notice(home):
    """Wall clocks jump; deadlines follow the monotonic one. The jump is played in the journal's last moment."""
    running, end, fail = ticking_job(home)
    job = home.job()
    kill(home.supervisor_pid(job)), kill(home.master_pid(job))
    connection = sqlite3.connect(home.directory(job) / "journal.db", isolation_level=None)
    (last,) = connection.execute("SELECT max(seq) FROM input").fetchone()
    for hours in (-1, 1):
        connection.execute("UPDATE input SET body = json_set(body, '$.at.wall_ns', "
                           "json_extract(body, '$.at.wall_ns') + ?) WHERE seq = ?", (hours * 3600 * 10**9, last))
        resumed = home.start("resume", job)
        wait_for(lambda: "aimaster.master.started" in log(home, job), "another master")
        assert_training_goes_on(running) if running.process.poll() is None else None
        kill(home.supervisor_pid(job)), kill(home.master_pid(job))
        resumed.signal(signal.SIGKILL)
    resumed = home.start("resume", job)
    end.touch()
    wait_for(lambda: home.get(job)["status"] == "Succeeded", "the end", timeout=40)
    resumed.wait()
