"""Call stacks of jobs that hang: who is alone, and where. The programs hang for real, and the tools are real; where a
tool has to misbehave it is a script."""
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

from harness import PYTHON, ROOT, Home, one_line_error, python, stat_fields, wait_for

TOOLS = ROOT / "build-stack-tools" / "bin"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WITHOUT_PTRACE = [sys.executable, str(ROOT / "tests" / "chaos" / "without_ptrace.py")]
USER = 61234
AS_USER = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--inh-caps=-all",
           "--bounding-set=-all", "--no-new-privs"]
REFUSED = os.environ.get("AIMASTER_TEST_UNPRIVILEGED") == "1"  # the filter there refuses ptrace to everybody

needs_tools = pytest.mark.skipif(not (TOOLS / "py-spy").exists(), reason="tools/install_stack_tools.sh was not run")
needs_ptrace = pytest.mark.skipif(REFUSED, reason="ptrace is refused here")
needs_eu_stack = pytest.mark.skipif(not shutil.which("eu-stack", path=PATH), reason="eu-stack is not installed")

# Rank 2 loads for ever; the others wait for it, each with a thread in the background.
TRAINING = """
import os, sys, threading, time
def pool():
    threading.Event().wait()
def load_batch():
    time.sleep(1000)
def wait_for_peers():
    threading.Event().wait()
def step(rank):
    if rank == 2:
        load_batch()
    wait_for_peers()
threading.Thread(target=pool, daemon=True).start()
print("ready", flush=True)
step(int(os.environ["RANK"]))
"""


@pytest.fixture
def train(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    return [PYTHON, "-S", str(script)]


def with_tools(*folders):
    return {"PATH": ":".join([*map(str, folders), str(TOOLS), PATH])}


def line_of(function):
    """Where the body of a function begins."""
    lines = TRAINING.splitlines()
    return lines.index(f"def {function}():") + 2


@contextlib.contextmanager
def running(home, count, *arguments, env=None, prefix=(), ready=None):
    """A job in the background, whose ranks have all got to where they hang."""
    run = home.start("run", "--tee", "all", "--stop-grace", "0", *arguments, env=env or with_tools(), prefix=prefix)
    job = home.job_of(run)
    home.wait_for_ranks(count, job)
    if ready is not None:
        home.wait_for_output(run, ready, count)
    time.sleep(0.3)  # from its last word into its sleep
    yield job
    home.call("stop", "--now", job)
    run.wait()


def stacks(home, job, *arguments, code=0):
    """1: no stack at all could be taken."""
    told = home.call("stacks", job, *arguments)
    assert told.code == code, told
    return json.loads(told.stdout)


def functions(group):
    return [frame["function"] for frame in group["stack"]]


@needs_tools
@needs_ptrace
def test_the_rank_that_is_alone_is_in_the_first_line(home, train):
    with running(home, 4, "--workers", "4", "--local-nodes", "2", "--", *train, ready="ready") as job:
        shown = home.call("stacks", "--now", job)
        assert shown.code == 0, shown
        first = shown.stdout.splitlines()[0]
        assert first == f"Rank 2 is alone at load_batch (train.py:{line_of('load_batch')})", shown

        told = stacks(home, job, "--json")
        assert told["ranks"] == told["ranks_answered"] == "0-3"
        culprit, victims, *background = told["groups"]
        assert (culprit["count"], culprit["ranks"]) == (1, "2")
        assert "load_batch" in functions(culprit)
        assert any(frame["language"] == "native" for frame in culprit["stack"]), culprit
        thread, = culprit["threads"]
        pids = home.rank_processes(job)
        assert thread["pid"] == thread["thread"] == pids[2]
        assert thread["instance"] == f"{job}-worker-2"
        assert len({thread["node"] for thread in victims["threads"]}) == 2, "from both nodes"
        assert victims["ranks"] == "0-1,3"
        assert background[-1]["folded"] and "pool" in functions(background[-1])

        tree = home.call("stacks", job, "--format", "tree").stdout
        assert "[2]  step" in tree and "[0-1,3]  step" in tree, tree
        folded = home.call("stacks", job, "--format", "folded").stdout
        assert folded.splitlines()[0].endswith(" 1") and ";load_batch (train.py" in folded, folded
        assert home.call("stacks", job, "--format", "dot").stdout.startswith("digraph")
        events = home.call("events", job, "--json").stdout
        assert "aimaster.hang.stacks" in events and "rank 2 is alone at load_batch" in events
    # Nothing of the job runs any more.
    after = home.call("stacks", job)
    assert after.stdout.splitlines()[0] == first, after
    assert stacks(home, job, "--json", "--capture", "1")["capture"] == 1


@needs_tools
@needs_ptrace
def test_a_rank_that_a_signal_has_stopped_is_told_and_stays_stopped(home, train):
    with running(home, 3, "--workers", "3", "--", *train, ready="ready") as job:
        pid = home.rank_processes(job)[1]
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: stat_fields(pid)[0] == "T", "it to stop")
        shown = home.call("stacks", "--now", job)
        assert shown.stdout.startswith("Rank 1 does not run: stopped by a signal"), shown
        assert "wait_for_peers" in shown.stdout.splitlines()[0], "where it was"
        assert stat_fields(pid)[0] == "T"


@needs_tools
def test_a_rank_that_is_stuck_in_the_kernel_is_told_from_proc(home):
    # Who has called vfork sleeps uninterruptibly until its child is another program, or has ended.
    code = """
import ctypes, os, sys, time
print("ready", flush=True)
if os.environ["RANK"] == "1":
    ctypes.CDLL(None).vfork()
time.sleep(1000)
"""
    with running(home, 2, "--workers", "2", "--", *python(code), ready="ready") as job:
        pid = home.rank_processes(job)[1]
        wait_for(lambda: stat_fields(pid)[0] == "D", "it to be stuck")
        began = time.monotonic()
        told = stacks(home, job, "--now", "--json")
        assert time.monotonic() - began < 10
        assert "rank 1 does not run: uninterruptible sleep" in told["summary"], told["summary"]
        assert told["groups"][0]["stack"][-1]["language"] == "kernel"


@needs_tools
@needs_ptrace
def test_a_process_that_a_rank_has_started_is_found_with_its_place(home, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    code = f"""
import multiprocessing, os, time
rank = os.environ["RANK"]
def read_sample(path):
    with open(path) as file:
        return file.read()
def loader(path):
    print("loading", flush=True)
    read_sample(path)
def train():
    child.join()
multiprocessing.set_start_method("fork")
child = multiprocessing.Process(target=loader, args=({str(fifo)!r},) if rank == "1" else ("/dev/null",))
child.start()
if rank == "0":
    child.join()
    time.sleep(1000)
train()
"""
    with running(home, 2, "--workers", "2", "--", *python(code), ready="loading") as job:
        told = stacks(home, job, "--now", "--json")
        group = next(group for group in told["groups"] if "read_sample" in functions(group))
        thread, = group["threads"]
        assert thread["rank"] == 1 and thread["is_child"] and thread["pid"] != home.rank_processes(job)[1]


@needs_eu_stack
@needs_ptrace
def test_a_program_that_is_no_python_is_read_too(home):
    with running(home, 2, "--workers", "2", "--", "/bin/sleep", "1000") as job:
        told = stacks(home, job, "--now", "--json")
        assert told["ranks_answered"] == "0-1"
        assert any("nanosleep" in name for name in functions(told["groups"][0])), told["groups"][0]


def script(folder, name, text):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\nfor pid; do case $pid in [0-9]*) break;; esac; done\n" + text + "\n")
    path.chmod(0o755)
    return folder


def test_a_tool_that_hangs_costs_its_time_and_leaves_nobody_stopped(home, train, tmp_path):
    tools = script(tmp_path / "tools", "py-spy", "kill -STOP $pid; exec sleep 1000")
    with running(home, 3, "--workers", "3", "--stack-timeout", "3", "--stack-tool", "py-spy", "--", *train,
                 env=with_tools(tools), ready="ready") as job:
        began = time.monotonic()
        told = stacks(home, job, "--now", "--json", code=1)
        assert time.monotonic() - began < 8
        assert all("did not answer in time" in one["reason"] for one in told["without_stacks"]), told
        assert [one["rank"] for one in told["without_stacks"]] == [0, 1, 2]
        for pid in home.rank_processes(job).values():
            wait_for(lambda pid=pid: stat_fields(pid)[0] in "SR", "it to go on")
        assert home.get(job)["status"] == "Running"


def test_the_process_that_takes_stacks_is_killed_and_nobody_stays_stopped(home, train, tmp_path):
    tools = script(tmp_path / "tools", "py-spy", f"kill -STOP $pid; echo $PPID > {tmp_path}/helper; exec sleep 1000")
    with running(home, 2, "--workers", "2", "--stack-tool", "py-spy", "--", *train, env=with_tools(tools),
                 ready="ready") as job:
        asked = home.start("stacks", "--now", "--json", job)
        helper = int(wait_for(lambda: (tmp_path / "helper").exists() and (tmp_path / "helper").read_text(), "a tool"))
        os.kill(helper, signal.SIGKILL)
        answer = asked.wait()
        assert answer.code == 1, answer
        told = json.loads(answer.stdout)
        assert "ended without an answer" in told["without_stacks"][0]["reason"], told
        for pid in home.rank_processes(job).values():
            wait_for(lambda pid=pid: stat_fields(pid)[0] in "SR", "it to go on")


def test_without_a_tool_the_reason_says_what_to_install(home, train):
    with running(home, 3, "--workers", "3", "--stack-tool", "pystack", "--", *train, env={"PATH": PATH},
                 ready="ready") as job:
        shown = home.call("stacks", "--now", job)
        assert shown.code == 1, "no stack at all could be taken"
        assert "no stack of ranks 0-2: pystack was not found" in shown.stdout, shown
        assert "pip install pystack" in shown.stdout, shown


@needs_tools
@needs_ptrace
def test_where_ptrace_is_refused_the_reason_says_what_to_allow(home, train):
    with running(home, 3, "--workers", "3", "--", *train, ready="ready", prefix=WITHOUT_PTRACE) as job:
        told = stacks(home, job, "--now", "--json", code=1)
        assert told["ranks_answered"] == ""
        assert "SYS_PTRACE" in told["without_stacks"][0]["reason"], told


@needs_tools
def test_where_ptrace_is_refused_faulthandler_is_asked(home, tmp_path):
    script_path = tmp_path / "train.py"
    script_path.write_text("import faulthandler, signal\nfaulthandler.register(signal.SIGUSR2)\n" + TRAINING)
    with running(home, 3, "--workers", "3", "--env", "AIMASTER_STACK_SIGNAL=SIGUSR2", "--", PYTHON, "-S",
                 str(script_path), ready="ready", prefix=WITHOUT_PTRACE) as job:
        told = stacks(home, job, "--now", "--json")
        assert told["ranks_answered"] == "0-2", told
        assert told["summary"].startswith("rank 2 is alone at load_batch (train.py:"), told["summary"]
        assert home.get(job)["status"] == "Running"


@pytest.fixture
def users_home(home):
    """A home of an ordinary user, with a copy of py-spy."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    folder = Path(tempfile.mkdtemp(prefix="aimaster-user-"))
    shutil.copy(TOOLS / "py-spy", folder)
    (folder / "train.py").write_text(TRAINING)
    for path in [folder, *folder.iterdir()]:
        os.chown(path, USER, USER)
    yield Home(folder, home.marker, AS_USER)
    shutil.rmtree(folder, ignore_errors=True)


@needs_tools
@needs_ptrace
def test_an_ordinary_user_needs_nothing_special(users_home):
    home = users_home
    with running(home, 3, "--workers", "3", "--", PYTHON, "-S", str(home.folder / "train.py"),
                 env={"PATH": f"{home.folder}:{PATH}"}, ready="ready") as job:
        told = stacks(home, job, "--now", "--json")
        assert told["ranks_answered"] == "0-2", told
        assert "load_batch" in functions(told["groups"][0])


def test_dumps_of_other_tools_are_merged(home, tmp_path):
    for rank in range(4):
        function = "load_batch" if rank == 3 else "wait_for_peers"
        (tmp_path / f"rank{rank}.txt").write_text(
            f'Thread 0x{rank:016x} (most recent call first):\n  File "train.py", line 7 in {function}\n')
    files = sorted(map(str, tmp_path.glob("rank*.txt")))
    merged = home.call("stacks", "merge", *files)
    assert merged.stdout.splitlines()[0] == "Rank 3 is alone at load_batch (train.py:7)", merged
    assert json.loads(home.call("stacks", "merge", "--json", *files).stdout)["groups"][1]["ranks"] == "0-2"
    (tmp_path / "notes.txt").write_text("it hangs\n")
    one_line_error(home.call("stacks", "merge", *files, str(tmp_path / "notes.txt")), "notes.txt", "'it hangs'")


def test_what_can_not_be_had_is_said_in_one_line(home):
    assert home.run("--", "/bin/true").code == 0
    job = home.job()
    one_line_error(home.call("stacks", job), "no stacks of job", "--now")
    refused = home.call("stacks", "--now", job)
    assert refused.code == 1
    one_line_error(refused, "the job has ended, Succeeded")
    one_line_error(home.call("stacks", "merge"), "which files?")
    one_line_error(home.call("stacks", job, "other"), "'other' is one job too many", "merge")
    one_line_error(home.call("stacks", "--now", "--capture", "1", job), "--capture")
    one_line_error(home.call("stacks", "--format", "svg", job), "svg", "folded")
