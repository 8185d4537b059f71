"""What can go wrong before a job runs: one line that says what, where and what to do; nothing started, nothing half
written."""
import os
import sqlite3
import subprocess

import pytest

from harness import AIMASTER, one_line_error, shell

AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def skip_unless_nobody_reaches_us():
    tried = subprocess.run([*AS_NOBODY, AIMASTER, "--version"], capture_output=True, stdin=subprocess.DEVNULL)
    if tried.returncode != 0:
        pytest.skip(f"{AIMASTER} can't be reached without privileges")


def no_job_was_made(home):
    jobs = home.path / "jobs"
    return not jobs.exists() or not list(jobs.iterdir())


@pytest.mark.parametrize("arguments, parts", [
    (["--wrokers", "2", "--", "/bin/true"], ["--wrokers", "--workers"]),
    (["--workers", "2"], ["command"]),
    (["--workers", "2", "--"], ["command"]),
    (["--workers", "0", "--", "/bin/true"], ["workers", "0"]),
    (["--workers", "many", "--", "/bin/true"], ["workers", "many"]),
    (["--nproc-per-node", "0", "--", "/bin/true"], ["nproc-per-node", "0"]),
    (["--framework", "caffe", "--", "/bin/true"], ["framework", "caffe", "pytorch"]),
    (["--stop-grace", "-3", "--", "/bin/true"], ["stop-grace", "-3"]),
    (["--env", "NOVALUE", "--", "/bin/true"], ["NOVALUE"]),
    (["--tee", "some", "--", "/bin/true"], ["tee", "some"]),
])
def test_usage_errors_exit_with_2(home, arguments, parts):
    finished = home.run(*arguments)
    assert finished.code == 2, finished
    one_line_error(finished, *parts)
    assert no_job_was_made(home)


def test_an_unknown_command_of_ours(home):
    finished = home.call("rnu")
    assert finished.code == 2, finished
    one_line_error(finished, "rnu", "run")


def test_a_command_that_is_not_there_is_127(home):
    finished = home.run("--enable-job-restart=True", "--", "no-such-program", "--flag")
    assert finished.code == 127, finished
    one_line_error(finished, "no-such-program")
    assert no_job_was_made(home)


@pytest.mark.parametrize("kind", ["no permission to execute", "a directory"])
def test_a_command_that_can_not_be_executed_is_126(home, tmp_path, kind):
    path = tmp_path / "program"
    if kind == "a directory":
        path.mkdir()
    else:
        path.write_text("#!/bin/sh\n")
    finished = home.run("--enable-job-restart=True", "--", path)
    assert finished.code == 126, finished
    one_line_error(finished, str(path))
    assert no_job_was_made(home)


def test_a_command_that_only_the_kernel_refuses_is_126_and_not_retried(home, tmp_path):
    """It looks like a program; that its interpreter is missing is known when it is executed."""
    path = tmp_path / "program"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    finished = home.run("--enable-job-restart=True", "--fault-tolerant-policy=OnFailure", "--", path)
    assert finished.code in (126, 127), finished
    assert home.get()["restarts"] == 0
    assert str(path) in home.get()["reason_message"] or str(path) in finished.stderr, finished


def test_a_working_directory_that_is_not_there(home):
    finished = home.run("--workdir", "/no/such/folder", "--", "/bin/true")
    assert finished.code in (1, 2), finished
    one_line_error(finished, "/no/such/folder")
    assert no_job_was_made(home)


def test_a_home_that_can_not_be_made(home):
    blocker = home.folder / "a-file"
    blocker.write_text("")
    finished = home.run("--", "/bin/true", env={"AIMASTER_HOME": str(blocker / "home")})
    assert finished.code == 1, finished
    one_line_error(finished, str(blocker), "AIMASTER_HOME")
    assert blocker.read_text() == ""


def test_a_home_of_somebody_else(home):
    """The same for a person without privileges, who is refused by permissions."""
    locked = home.folder / "locked"
    locked.mkdir(mode=0o755)
    if os.geteuid() == 0:
        skip_unless_nobody_reaches_us()
        prefix = AS_NOBODY
    else:
        locked.chmod(0o555)
        prefix = []
    finished = home.start("run", "--", "/bin/true", env={"AIMASTER_HOME": str(locked / "home")}, prefix=prefix,
                          cwd="/").wait()
    assert finished.code == 1, finished
    one_line_error(finished, str(locked), "AIMASTER_HOME")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to mount a file system")
def test_a_home_on_a_full_disk(home):
    """Nothing half written: the job is refused, and its directory is not there."""
    home.path.mkdir()
    script = (f'mount -t tmpfs -o size=64k tmpfs "$AIMASTER_HOME" && head -c 64k /dev/zero > "$AIMASTER_HOME/filler"; '
              f'"{AIMASTER}" run -- /bin/true; echo "code $?"; find "$AIMASTER_HOME" -mindepth 1 -path "*/jobs/*"')
    finished = subprocess.run(["unshare", "--mount", *shell(script)], env=home.environment, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=60, cwd=home.folder)
    assert finished.stdout.splitlines() == ["code 1"], finished
    lines = [line for line in finished.stderr.splitlines() if line.startswith("aimaster")]
    assert len(lines) == 1 and "space" in lines[0], finished


def test_a_journal_of_a_newer_version_is_left_alone(home):
    assert home.run("--", "/bin/true").code == 0
    newer = home.job()
    database = sqlite3.connect(home.directory(newer) / "journal.db")
    database.execute("PRAGMA user_version = 999")
    database.commit()
    database.close()
    for command in ("get", "records", "explain", "resume", "attach"):
        finished = home.call(command, newer)
        assert finished.code == 1, finished
        one_line_error(finished, "newer")
    assert home.run("--", "/bin/true").code == 0
    jobs = home.list()
    assert len(jobs) == 2 and jobs[1]["job_id"] == newer, "one that can't be read does not hide the others"


def test_a_person_without_privileges_runs_jobs_too(home):
    if os.geteuid() != 0:
        pytest.skip("the other tests run without privileges already")
    skip_unless_nobody_reaches_us()
    own = subprocess.run([*AS_NOBODY, "mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip()
    try:
        finished = home.start("run", "--workers", 2, "--enable-job-restart=True", "--stop-grace", 1, "--",
                              "/usr/bin/python3", "-S", "-c", "import os; k = os.environ\n"
                              "if k['RANK'] == '1' and k['AIMASTER_ROUND'] == '0': os.kill(os.getpid(), 9)\n"
                              "import time; time.sleep(0.2)",
                              env={"AIMASTER_HOME": own, "HOME": own}, prefix=AS_NOBODY, cwd="/").wait()
        assert finished.code == 0, finished
    finally:
        subprocess.run(["rm", "-r", own], check=True)


def test_an_option_value_that_is_missing(home):
    finished = home.run("--workers")
    assert finished.code == 2, finished
    one_line_error(finished, "--workers")
