"""Stories of tests/chaos, each told by the first process of a pid namespace of its own.

In there everything that exists is known, so what was left behind cannot hide. The namespace ends with the story, and
the kernel ends all that is in it.
"""
import functools
import json
import os
import subprocess

import pytest

from harness import BIN, PYTHON, ROOT

AS_ROOT = os.geteuid() == 0
FOLDER = ROOT / "tests" / "chaos"


def command_of_namespace(*kinds):
    # Other rights than that of making the namespace are given only where the story needs them.
    rights = [] if AS_ROOT else ["--user", "--map-root-user" if kinds else "--map-current-user"]
    return ["unshare", *rights, "--pid", "--fork", "--mount-proc", "--kill-child", *(f"--{kind}" for kind in kinds)]


@functools.cache
def can_be_made(*kinds):
    made = subprocess.run([*command_of_namespace(*kinds), "true"], stdin=subprocess.DEVNULL, capture_output=True)
    return made.returncode == 0


def needs(*kinds):
    """A mark: skips where this user may not make such namespaces."""
    return pytest.mark.skipif(not can_be_made(*kinds),
                              reason=f"this user may not make namespaces: {', '.join(('pid', *kinds))}")


def tell(folder, script, story, *arguments, kinds=(), timeout=300.0, env=None, prefix=()):
    """Runs a story of tests/chaos/SCRIPT; returns what it told. A broken promise fails with its seed."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("AIMASTER_") or name == "AIMASTER_CHAOS_SEED"}
    environment.update(env or {}, AIMASTER_BIN=str(BIN), NO_COLOR="1")
    command = [*command_of_namespace(*kinds), *prefix, PYTHON, str(FOLDER / script), story, str(folder),
               *map(str, arguments)]
    told = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
                          env=environment, cwd=folder)
    if told.returncode != 0:
        violation = json.loads(told.stdout)["violation"] if told.stdout.startswith("{") else told.stdout
        pytest.fail(f"{violation}\n{told.stderr[-4000:]}\n{' '.join(command)}", pytrace=False)
    print(told.stdout, told.stderr)
    return json.loads(told.stdout)
