"""The link between master and agents goes down and comes back: tests/chaos/links.py, in network namespaces."""
import pytest

from namespaces import needs, tell

pytestmark = needs("net")


def links(folder, story, *arguments):
    return tell(folder, "links.py", story, *arguments, kinds=["net"])


@pytest.mark.parametrize("seconds, node_lost_timeout", [(2, 30), (7, 3)])
def test_ranks_run_on_without_a_link(tmp_path, seconds, node_lost_timeout):
    """Also for longer than a node may be silent: here the master knows that the machine lives."""
    assert links(tmp_path, "cut", seconds, node_lost_timeout) == {"lost": []}


def test_a_rank_that_fails_without_a_link_is_judged_when_it_is_back(tmp_path):
    assert links(tmp_path, "rank_fails_meanwhile") == {"restarts": 1}


def test_a_link_that_is_lost_in_the_middle_of_a_restart(tmp_path):
    assert links(tmp_path, "cut_in_a_restart") == {"restarts": 5}


def test_a_link_that_is_away_for_longer_than_the_orphan_timeout(tmp_path):
    """The agents stop the ranks, the master starts them again, and the record says for want of what."""
    told = links(tmp_path, "longer_than_the_orphan_timeout")
    assert told["restarts"] == 1, told
    assert "orphan" in told["message"] or "master" in told["message"], told


def test_a_link_that_comes_up_after_the_job(tmp_path):
    assert links(tmp_path, "no_link_at_the_start") == {"code": 0}


def test_a_stop_that_reaches_the_master_late(tmp_path):
    assert links(tmp_path, "stop_without_link") == {"code": 130, "status": "Stopped"}
