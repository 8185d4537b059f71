"""Completion, by a real bash that has read our script."""
import shutil
import subprocess

import pytest

from harness import BIN, shell


def complete(home, line, kind="bash"):
    """What bash offers behind `line`, whose last word is being written. As bash does, `=` is a word of its own."""
    words = line.replace("=", " = ").split(" ")
    script = (f'source <(aimaster completion {kind})\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _aimaster\n'
              'printf "%s\\n" "${COMPREPLY[@]}"')
    told = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, timeout=60,
                          env={**home.environment, "PATH": f"{BIN}:/usr/bin:/bin"})
    assert told.returncode == 0 and told.stderr == "", told
    return told.stdout.split()


@pytest.mark.parametrize("line, offered", [
    ("aimaster sta", ["stacks"]),
    ("aimaster stacks --for", ["--format"]),
    ("aimaster stacks --format ", ["text", "tree", "folded", "json", "dot"]),
    ("aimaster stacks --format=t", ["text", "tree"]),
    ("aimaster run --enable-job-restart=", ["True", "False"]),
    ("aimaster run --fault-tolerant-policy N", ["Never"]),
    ("aimaster run --notify ", []),  # files
    ("aimaster run -- tr", []),
    ("aimaster notify te", ["test"]),
    ("aimaster completion ", ["--help", "bash", "zsh", "fish"]),
    ("aimaster nonsense ", []),
])
def test_what_is_offered(home, line, offered):
    assert complete(home, line) == offered


def test_jobs_are_offered_by_name_and_by_id(home):
    assert home.run("--name", "nightly", "--", *shell("true")).code == 0
    assert home.run("--name", "nightly", "--", *shell("true")).code == 0
    ids = [job["job_id"] for job in home.list()]
    assert complete(home, "aimaster get dlc") == ids
    assert complete(home, "aimaster get nigh") == ["nightly"]


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_understands_its_script(home):
    told = subprocess.run(["fish", "-c", "aimaster completion fish | source; complete -C 'aimaster stacks --format t'"],
                          capture_output=True, text=True, timeout=60,
                          env={**home.environment, "PATH": f"{BIN}:/usr/bin:/bin"})
    assert (told.returncode, told.stderr) == (0, ""), told
    assert told.stdout.split() == ["text", "tree"]
