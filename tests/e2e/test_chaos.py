"""Whatever of ours is killed or stopped, and whenever: training is complete, nothing is doubled, nothing is left.

A failure prints its seed; AIMASTER_CHAOS_SEED=N chooses the same kills and pauses again (which process runs when is up
to the kernel, so a rare race may take several tries). What must hold is written at the head of tests/chaos/chaos.py.
"""
import os
import sys

import pytest

from harness import BIN, FULL, LONG
from namespaces import AS_ROOT, FOLDER, needs, tell


def survives(tmp_path, story, whole, kinds=()):
    seconds, kills, kills_min = (120, 130, 100) if whole else (26, 45, 20)  # planned kills: some find nobody
    told = tell(tmp_path, "chaos.py", story, seconds, kills, kinds=list(kinds), timeout=seconds * 5 + 200)
    assert told["status"] == "Succeeded" and told["total"] >= kills_min, told
    return told


@needs("mount")
def test_anything_killed_at_any_time(tmp_path):
    survives(tmp_path, "plain", FULL)


@pytest.mark.skipif(not AS_ROOT, reason="only root may mount a small disk")
@needs("mount")
def test_anything_killed_while_the_disk_is_full_now_and_then(tmp_path):
    told = survives(tmp_path, "full_disk", LONG, ["mount"])
    assert told["full"] >= 2, told


@needs("net")
def test_anything_killed_while_the_link_is_lost_now_and_then(tmp_path):
    told = survives(tmp_path, "link_loss", LONG, ["net"])
    assert told["cuts"] >= 2, told


class TestTheChecker:
    """What looks at the training has to be able to see something."""

    @pytest.fixture
    def look(self, tmp_path):
        sys.path.insert(0, str(FOLDER))
        os.environ.setdefault("AIMASTER_BIN", str(BIN))
        import world

        def check(lines, doubled=False):
            (tmp_path / "0.log").write_text("".join(f"{line}\n" for line in lines))
            if doubled:
                (tmp_path / "doubled").write_text("rank 0 attempt 1\n")
            try:
                return world.check_training(tmp_path, 1, 4)
            except world.Violation as violation:
                return str(violation)

        return check

    def test_a_training_as_it_should_be(self, look):
        assert look(["0 0", "0 1", "0 2", "0 3"]) == [0]
        assert look(["0 0", "0 1", "1 2", "1 3"]) == [1]
        assert look(["0 0", "0 1", "2 1", "2 2", "2 3"]) == [2]  # killed between the line and the checkpoint

    def test_what_is_wrong(self, look):
        assert "ended at step 2" in look(["0 0", "0 1", "0 2"])
        assert "has a gap" in look(["0 0", "0 1", "0 3"])
        assert "has a gap" in look(["0 0", "0 1", "0 1", "0 2", "0 3"])
        assert "begins at 3" in look(["0 0", "0 1", "1 3"])
        assert "begins at 0" in look(["0 0", "0 1", "1 0", "1 1", "1 2", "1 3"])
        assert "mix or go back" in look(["0 0", "1 1", "0 2", "1 3"])
        assert "two lives" in look(["0 0", "0 1", "0 2", "0 3"], doubled=True)
