"""After a restart and after a stop, no process of the former attempts exists, however hard it tried to hide.

A process that called setsid, was forked twice and has an empty environment can't be told from a stranger. So each job
here runs in a pid namespace of its own, where everything that exists is known, and the look is at all of it.
"""
import json
import os
import subprocess

import pytest

from harness import AIMASTER, FULL, PYTHON, ROOT, WORKER

TIMES = 50 if FULL else 6
NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
if os.geteuid() != 0:
    NAMESPACE[1:1] = ["--user", "--map-root-user"]
STUBBORN = [*WORKER, "--steps", 600, "--ignore-sigterm", "--grandchild", "--daemon"]


def namespaces_work():
    return subprocess.run([*NAMESPACE, "true"], stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not namespaces_work(), reason="this user may not make a pid namespace")


def in_namespace(home, story, *arguments, timeout):
    """Runs a function of leftover_stories.py as the first process of a new pid namespace; returns what it tells."""
    command = [*NAMESPACE, PYTHON, str(ROOT / "tests" / "e2e" / "leftover_stories.py"), story, *map(str, arguments)]
    finished = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
                              env={**home.environment, "AIMASTER": AIMASTER}, cwd=home.folder)
    assert finished.returncode == 0, f"{finished.stdout}\n{finished.stderr}"
    return json.loads(finished.stdout)


def test_none_is_left_after_a_restart_and_after_a_stop(home):
    told = in_namespace(home, "restart_then_stop", TIMES, *STUBBORN, timeout=30 + 10 * TIMES)
    assert told == {"times": TIMES, "left_after_restart": [], "left_after_stop": []}


def test_none_is_left_when_ranks_end_and_their_children_do_not(home):
    told = in_namespace(home, "run_to_the_end", 3, *WORKER, "--steps", 1, "--grandchild", "--daemon", timeout=90)
    assert told == {"codes": [0, 0, 0], "left": []}


def test_none_is_left_when_the_shim_is_killed(home):
    told = in_namespace(home, "kill_the_shim", 3, *STUBBORN, timeout=120)
    assert told == {"statuses": ["Failed"] * 3, "left": []}
