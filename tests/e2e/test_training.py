"""The thing itself: a real training loses a rank and ends where an undisturbed one ends."""
import re

import pytest

from harness import TRAIN

pytestmark = pytest.mark.training
SMALL = ["--limit", "2048", "--epochs", "2", "--checkpoint-every", "4", "--test-limit", "500"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The last line of a run that nothing happened to."""
    from harness import Home
    home = Home(tmp_path_factory.mktemp("undisturbed"), "undisturbed")
    finished = home.run("--workers", 2, "--", *TRAIN, *SMALL, "--checkpoint-dir", home.folder / "checkpoints",
                        timeout=120)
    assert finished.code == 0, finished
    return final_line(finished)


def final_line(finished):
    return re.findall(r"^final .*$", finished.stdout, re.MULTILINE)[-1]


@pytest.mark.parametrize("how, code", [("sigkill", 137), ("segfault", 139)])
def test_a_killed_rank_changes_nothing_in_the_result(home, undisturbed, how, code):
    finished = home.run("--workers", 2, "--enable-job-restart=True", "--", *TRAIN, *SMALL,
                        "--checkpoint-dir", home.folder / "checkpoints", "--die-rank", 1, "--die-step", 22,
                        "--die-how", how, timeout=120)
    assert finished.code == 0, finished
    assert "resumed at step 20" in finished.stdout
    assert final_line(finished) == undisturbed
    record, = home.records()
    assert (record["error_code"], record["rank"], record["result"]) == (code, 1, "Restarted")
    assert record["instance_name"].endswith("-worker-1")
    assert home.get()["restarts"] == 1


def test_a_bug_in_the_training_is_told_and_not_retried(home):
    finished = home.run("--workers", 2, "--enable-job-restart=True", "--", *TRAIN, *SMALL,
                        "--checkpoint-dir", home.folder / "checkpoints", "--die-rank", 1, "--die-step", 3,
                        "--die-how", "exception", timeout=120)
    assert finished.code == 1, finished
    assert home.get()["restarts"] == 0
    assert "RuntimeError: rank 1 was asked to fail before step 3" in home.get()["reason_message"]
