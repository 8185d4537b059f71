"""A wall clock that jumps, an init that does not reap, a home that is slow, stands still or is full: nothing is taken
for dead that is not, and nothing is early or late.
"""
import importlib.util
from pathlib import Path

import pytest

from namespaces import AS_ROOT, needs, tell

can_fake_time = pytest.mark.skipif(not list(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")),
                                   reason="libfaketime is not installed")
can_serve_files = pytest.mark.skipif(
    not AS_ROOT or importlib.util.find_spec("fusepy") is None or not Path("/dev/fuse").exists(),
    reason="needs root, /dev/fuse and python3-fusepy")


# Of a timer that is due at once libfaketime makes one at the time of the jump since the machine was booted. So the
# machine has to have been up for longer than any jump.
UP_FOR_LONG = ["time", "monotonic=10000", "boottime=10000"]


@pytest.fixture(scope="module")
def jumps(tmp_path_factory):
    """Four restarts, a master and a supervisor killed, while the wall clock jumps by an hour or two, to and fro."""
    return tell(tmp_path_factory.mktemp("clock"), "faults.py", "clock_jumps", kinds=UP_FOR_LONG)


@can_fake_time
@needs(*UP_FOR_LONG)
def test_a_jump_of_the_wall_clock_loses_no_node_and_ends_no_wait(jumps):
    assert jumps["restarts"] == 4


@can_fake_time
@needs(*UP_FOR_LONG)
def test_durations_are_right_after_a_jump(jumps):
    assert jumps["longest restart ms"] < 8000 and jumps["longest stage ms"] < 8000, jumps
    assert jumps["shortest stage ms"] >= 0, jumps


@needs()
def test_an_init_that_does_not_reap(tmp_path):
    """Zombies stay for ever then; they are not waited for, and not taken for processes that live."""
    told = tell(tmp_path, "faults.py", "init_that_does_not_reap")
    assert told == {"restarts": 1, "few zombies": True}


@can_serve_files
@needs("mount")
def test_a_home_on_a_slow_file_system(tmp_path):
    """FUSE counts as a network file system: the journal keeps to one file and needs no shared memory."""
    told = tell(tmp_path, "faults.py", "slow_home", 20, kinds=["mount"])
    assert told == {"restarts": 1, "type": "65735546", "write-ahead log": False}


@can_serve_files
@needs("mount")
def test_a_home_that_stands_still_for_less_than_a_node_may_be_silent(tmp_path):
    told = tell(tmp_path, "faults.py", "stalled_home", 4, 30, kinds=["mount"])
    assert told == {"lost": [], "same agents": True, "silence noted": False}


@can_serve_files
@needs("mount")
def test_a_home_that_stands_still_for_longer_than_a_node_may_be_silent(tmp_path):
    """The agents may be started again for it; ranks don't notice."""
    told = tell(tmp_path, "faults.py", "stalled_home", 5, 2, kinds=["mount"])
    assert told["lost"] == [], told


@needs()
def test_a_master_that_stood_still_blames_nobody(tmp_path):
    told = tell(tmp_path, "faults.py", "suspended_master", 6, 3)
    assert told == {"same agents": True, "silence noted": False}


@pytest.mark.skipif(not AS_ROOT, reason="only root may mount a small disk")
@needs("mount")
def test_a_master_that_dies_while_the_disk_is_full(tmp_path):
    assert tell(tmp_path, "faults.py", "master_dies_on_full_disk", 3, kinds=["mount"]) == {"restarts": 0}


@pytest.mark.skipif(not AS_ROOT, reason="only root may mount a small disk")
@needs("mount")
def test_a_shim_that_dies_while_the_disk_is_full(tmp_path):
    """Nothing is decided that can't be written down; with room again, it is decided once."""
    told = tell(tmp_path, "faults.py", "shim_dies_on_full_disk", 3, kinds=["mount"])
    assert (told["restarts"], told["rank"]) == (1, 1), told
    assert "shim was killed" in told["message"], told
