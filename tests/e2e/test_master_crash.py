"""kill -9 of the master at each stage of a restart, with its supervisor and without: the end is the one that there is
without. How a stage is hit that lasts a millisecond is told in tests/chaos/stages.py.
"""
import pytest

from harness import FULL, LONG
from namespaces import needs, tell

HITS = 50 if LONG else 3 if FULL else 1
STAGES = ("detect", "collect", "decide", "stop", "isolate", "acquire", "start", "ready")

pytestmark = needs()


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("who_starts_it_again", ("supervised", "resumed"))
def test_killed_at_a_stage_of_a_restart(tmp_path, stage, who_starts_it_again):
    told = tell(tmp_path, "stages.py", who_starts_it_again, stage, HITS, timeout=60 + 30 * HITS)
    assert (told["stage"], told["hits"]) == (stage, HITS)


def test_a_rank_that_fails_while_there_is_no_master_is_judged_as_usual(tmp_path):
    assert tell(tmp_path, "stages.py", "rank_fails_without_master") == {"differs": {}}


def test_ranks_that_succeed_while_there_is_no_master_have_succeeded(tmp_path):
    told = tell(tmp_path, "stages.py", "ranks_succeed_without_master")
    assert told == {"codes": [0], "status": "Succeeded", "restarts": 0, "last attempts": [0, 0]}


def test_an_old_master_that_wakes_up_is_refused(tmp_path):
    told = tell(tmp_path, "stages.py", "old_master_comes_back")
    assert told == {"differs": {}, "epochs in order": True, "epochs": [1, 2]}
