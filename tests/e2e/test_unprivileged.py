"""Without the rights that root has: another user, no capabilities, ptrace refused, others' processes hidden.

run_unprivileged.sh runs all end-to-end tests so; here is what differs from it, and a look at whether it does so at all.
"""
import ctypes
import errno
import os
import subprocess
from pathlib import Path

import pytest

from harness import PYTHON, TRAIN
from namespaces import AS_ROOT, FOLDER, needs, tell

SAID_SO = os.environ.get("AIMASTER_TEST_UNPRIVILEGED") == "1"
SMALL = ["--limit", "1024", "--epochs", "1", "--checkpoint-every", "4", "--test-limit", "200", "--batch-size", "32"]
as_root = pytest.mark.skipif(not AS_ROOT, reason="only root can become another user or mount")


def status_of_ours(name):
    line, = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name + ":")]
    return line.split(":")[1].strip()


@pytest.fixture
def reachable(tmp_path_factory):
    """A folder that another user can reach; pytest keeps its own to ourselves."""
    folder = Path(subprocess.run(["mktemp", "-d", "/tmp/aimaster.XXXXXX"], capture_output=True, text=True,
                                 check=True).stdout.strip())
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


@pytest.mark.skipif(not SAID_SO, reason="this run is not said to be unprivileged")
def test_the_rights_are_really_gone():
    assert os.geteuid() != 0
    assert int(status_of_ours("CapEff"), 16) == int(status_of_ours("CapBnd"), 16) == 0
    assert (status_of_ours("NoNewPrivs"), status_of_ours("Seccomp")) == ("1", "2")
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.ptrace(16, os.getppid(), 0, 0) == -1 and ctypes.get_errno() == errno.EPERM
    writable = [folder for folder in Path("/sys/fs/cgroup").glob("**") if os.access(folder, os.W_OK)]
    assert writable == []


def test_the_filter_refuses_ptrace_and_nothing_else():
    code = ("import ctypes, os, subprocess\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "print(libc.ptrace(0, 0, 0, 0), ctypes.get_errno())\n"
            "print(subprocess.run(['/bin/true']).returncode, os.pidfd_open(os.getpid()) > 0)\n")
    told = subprocess.run([PYTHON, FOLDER / "without_ptrace.py", PYTHON, "-c", code], capture_output=True, text=True)
    assert told.stdout.splitlines() == [f"-1 {errno.EPERM}", "0 True"], told


@as_root
@needs("mount")
def test_anything_may_die_without_rights(reachable):
    assert tell(reachable, "faults.py", "unprivileged") == {"restarts": 1}


@as_root
@needs("mount")
def test_anything_may_die_where_processes_of_others_are_hidden(reachable):
    assert tell(reachable, "faults.py", "hidepid", kinds=["mount"]) == {"restarts": 1}


@pytest.mark.training
@needs("mount")
def test_a_training_with_64_megabytes_of_shared_memory_and_without_ptrace(tmp_path):
    told = tell(tmp_path, "faults.py", "small_shared_memory", *TRAIN, *SMALL, "--die-rank", 1, "--die-step", 6,
                kinds=["mount"])
    assert told["restarts"] == 1 and len(told["final"]) == 1, told
