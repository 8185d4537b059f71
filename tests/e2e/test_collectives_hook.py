"""The hook over torch.distributed: what a real PyTorch on Gloo leaves on record, and that it never notices.

No agent and no job: the ranks are started as torch itself would have it, with three variables more.
"""
import os
import signal
import socket
import subprocess

import pytest

import records
from harness import BIN, FULL, PYTHON as SYSTEM_PYTHON, ROOT, wait_for

PYTHON = os.environ.get("AIMASTER_TORCH_PYTHON", SYSTEM_PYTHON)  # of another torch
SDK = ROOT / "sdk" / "python"
PRELOAD = SDK / "aimaster" / "_preload"
PROGRAM = ROOT / "tests" / "e2e" / "programs" / "communicates.py"
LIBRARY = BIN / "libaimaster-recorder.so"

pytestmark = pytest.mark.skipif(
    subprocess.run([PYTHON, "-c", "import torch.distributed"], capture_output=True).returncode != 0,
    reason="PyTorch is not installed here")
thorough = pytest.mark.skipif(not FULL, reason="takes minutes with its like; AIMASTER_TEST_FULL=1 runs it")


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Ranks:
    """Processes of one program, and the folder of their records."""

    def __init__(self, folder):
        self.folder, self.records = folder, folder / "records"
        self.records.mkdir()
        self.processes = []

    def start(self, size, *arguments, program=(PYTHON, PROGRAM), traced=True, **more):
        environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                       "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1"}
        environment.pop("PYTHONPATH", None)
        if traced:
            environment.update(PYTHONPATH=str(PRELOAD), AIMASTER_C4D_DIR=str(self.records),
                               AIMASTER_C4D_RECORDER=str(LIBRARY), C4D_RUNTIME_LOG_LEVEL="Debug")
        environment.update(more)
        self.processes = [
            subprocess.Popen([*map(str, program), *map(str, arguments)], env={**environment, "RANK": str(rank)},
                             cwd=self.folder, stdout=open(self.folder / f"out{rank}", "w"),
                             stderr=open(self.folder / f"err{rank}", "w"))
            for rank in range(size)]

    def wait(self, codes=None):
        ended = [process.wait(120) for process in self.processes]
        assert ended == (codes or [0] * len(ended)), (self.outputs(), self.errors())
        return self.outputs()

    def run(self, *arguments, **more):
        self.start(*arguments, **more)
        return self.wait()

    def outputs(self):
        return [(self.folder / f"out{rank}").read_text() for rank in range(len(self.processes))]

    def errors(self):
        return [(self.folder / f"err{rank}").read_text() for rank in range(len(self.processes))]

    def allow(self, name):
        (self.folder / name).touch()

    def await_output(self, rank, text):
        wait_for(lambda: text in self.outputs()[rank], f"rank {rank} to print {text!r}", 60)

    def read(self):
        return records.read(self.records)

    def await_records(self, is_so, what):
        def look():
            found = self.read()
            return found if is_so(found) else None
        return wait_for(look, what, 60)


@pytest.fixture
def ranks(tmp_path):
    started = Ranks(tmp_path)
    yield started
    for process in started.processes:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()


def test_each_collective_is_counted_once(ranks):
    ranks.run(2, "everything")
    both = ranks.read()
    assert sorted(both) == [0, 1]
    for rank, record in both.items():
        assert (record.rank, record.size, record.source, record.is_finished) == (rank, 2, 3, True)
        assert record.counts() == {
            "all_reduce": 1, "all_reduce_coalesced": 1, "broadcast": 3, "reduce": 1, "all_gather": 3,
            "all_gather_coalesced": 1, "gather": 1, "scatter": 1, "barrier": 1, "monitored_barrier": 1,
            "all_to_all_single": 1}
        assert record.group("default_pg").counters == (15, 15)
        assert record.open == [] and record.inside == [] and record.forgotten == 0
        assert not any(record.dropped)
        told = {one.name: one for one in reversed(record.finished)}
        assert (told["all_reduce"].function, told["all_reduce"].bytes, told["all_reduce"].type) == ("AllReduce", 32, 13)
        assert (told["broadcast"].bytes, told["broadcast"].type, told["broadcast"].peer) == (24, 9, 1)
        assert told["reduce"].peer == told["gather"].peer == told["scatter"].peer == 1
        assert told["all_gather"].bytes == 16 and told["scatter"].bytes == 16
        assert [one.sequence for one in record.finished] == list(range(1, 16))


@thorough
def test_what_the_backend_refuses_is_over(ranks, tmp_path):
    outputs = ranks.run(2, "not_on_gloo")
    for record in ranks.read().values():
        assert record.open == [] and record.group("default_pg").counters == (4, 4)
        assert [one.name for one in record.finished] == ["reduce_scatter", "reduce_scatter_tensor",
                                                         "all_gather_into_tensor", "all_to_all"]
    assert outputs == ranks.run(2, "not_on_gloo", traced=False)


@thorough
def test_members_of_a_group_agree_on_it_and_others_do_not_have_it(ranks):
    ranks.start(4, "groups")
    for rank in range(4):
        ranks.await_output(rank, "stands at")
    found = ranks.read()
    ids = {}
    for rank, record in found.items():
        names = sorted(one.name for one in record.communicators)
        assert names == ["default_pg", f"group {1 + rank % 2}", "group 3"]
        half, everyone = record.group(f"group {1 + rank % 2}"), record.group("group 3")
        assert half.members == [rank % 2, rank % 2 + 2] and half.rank == rank // 2 and half.is_retired
        assert half.counters == (1, 1) and everyone.counters == (2, 2)
        assert everyone.members == [0, 1, 2, 3] and not everyone.is_retired
        for one in record.communicators:
            ids.setdefault(one.name, set()).add(one.id)
    assert len(ids) == 4 and all(len(same) == 1 for same in ids.values())
    assert len(set.union(*ids.values())) == 4
    ranks.allow("look")
    assert "True" in ranks.wait()[0]


@thorough
def test_who_begins_again_has_a_new_record(ranks):
    ranks.run(2, "begin_again")
    found = [records.Record(path) for path in ranks.records.glob("*.c4d")]
    counts = sorted((one.rank, *one.group("default_pg").counters) for one in found)
    assert counts == [(0, 1, 1), (0, 2, 2), (0, 2, 2), (1, 1, 1), (1, 2, 2), (1, 2, 2)]
    assert all(one.is_finished for one in found)
    assert len({one.group("default_pg").id for one in found}) == 1


@thorough
def test_messages_have_numbers_of_their_own(ranks):
    ranks.run(2, "messages")
    for rank, record in ranks.read().items():
        group = record.group("default_pg")
        assert (group.common_issued, group.common_completed) == (6, 6) and group.counters == (0, 0)
        assert record.counts() == {"send": 3, "recv": 3} and record.open == []
        assert {one.peer for one in record.finished} == ({1} if rank == 0 else {0, records.NONE})


def test_who_waits_is_told_from_who_does_not_come(ranks):
    ranks.start(2, "late")
    ranks.await_output(1, "stands at go")
    found = ranks.await_records(lambda now: len(now[0].open) == 1 and now[0].open[0].started_ns, "rank 0 to wait")
    waited, = found[0].open
    assert (waited.name, waited.sequence, waited.bytes) == ("all_reduce", 3, 64)
    assert found[0].inside == ["all_reduce"] and found[0].group("default_pg").counters == (3, 2)
    assert found[1].open == [] and found[1].inside == []
    assert found[1].group("default_pg").counters == (2, 2)
    ranks.allow("go")
    ranks.allow("end")
    ranks.wait()
    assert all(record.group("default_pg").counters == (3, 3) for record in ranks.read().values())


@thorough
def test_who_waits_for_the_others_to_come_to_the_beginning(ranks):
    ranks.start(1, "late", WORLD_SIZE="2")
    record, = ranks.await_records(lambda now: 0 in now and now[0].inside, "rank 0 to wait").values()
    assert record.inside == ["init_process_group"] and record.size == 2
    assert (record.elsewhere_begun, record.elsewhere_ended) == (1, 0)


@thorough
def test_an_operation_ends_when_the_program_learns_of_it_or_could_have(ranks):
    ranks.start(2, "asynchronous")
    ranks.await_output(0, "stands at issued")
    ranks.await_output(1, "stands at go")
    record = ranks.read()[0]
    # The last one has been let go of.
    assert [one.sequence for one in sorted(record.open, key=lambda one: one.sequence)] == [1, 2, 3, 4]
    assert record.forgotten == 1 and not any(one.started_ns for one in record.open)
    ranks.allow("go")
    # It does nothing, and its operations are done: that is seen all the same.
    record = ranks.await_records(lambda now: now[0].open == [], "the end of what nobody asks for")[0]
    assert record.group("default_pg").counters == (5, 5)
    ranks.allow("issued")
    ranks.await_output(0, "stands at end")
    record = ranks.read()[0]
    assert record.group("default_pg").counters == (5, 5) and record.forgotten == 1 and record.inside == []
    ranks.allow("end")
    ranks.wait()


@thorough
def test_a_peer_that_dies_is_no_news(ranks):
    ranks.start(2, "fails")
    ranks.await_output(0, "stands at end")
    record = ranks.read()[0]
    assert record.open == [] and record.inside == [] and record.group("default_pg").counters == (2, 2)
    ranks.allow("end")
    assert "failed" in ranks.wait([0, 3])[0]


@thorough
def test_children_of_a_rank_have_no_record_and_disturb_none(ranks):
    outputs = ranks.run(2, "forks")
    assert [output.splitlines()[-3:] for output in outputs] == [["28", "fork 0", "spawn 0"]] * 2
    assert len(list(ranks.records.iterdir())) == 2
    for record in ranks.read().values():
        assert record.counts() == {"all_reduce": 2} and record.is_finished


@thorough
def test_thousands_leave_nothing_behind(ranks):
    ranks.run(2, "many")
    for record in ranks.read().values():
        assert record.group("default_pg").counters == (2000, 2000)
        assert record.open == [] and record.forgotten == 0 and not any(record.dropped)


def test_nothing_lives_longer(ranks):
    for output in ranks.run(2, "lifetimes"):
        assert output.splitlines() == ["work True", "tensor True", "reducer True", "group True"]


# Trainings, and of each how many steps reduce gradients.
OPTIONS = {"plain": 5, "none": 5, "view": 5, "unused": 5, "static": 5, "unused_view": 5, "no_sync": 2, "sparse": 5}
HOOKS = {"hook": 5, "half": 5, "builtin": 5, "two_hooks": 5}
ELEMENTS = 10 * 7 + 5 * (7 * 7 + 7) + 2 * 7  # of the parameters


def told(outputs):
    """The lines of the program itself; torch has its own to say."""
    return [[line for line in output.splitlines() if line.startswith((*OPTIONS, *HOOKS, "join_", "register_"))]
            for output in outputs]


def reductions(record, number):
    """All-reduces of gradients in a group. What else is reduced, as which parameters were used, are whole numbers."""
    place = record.places.index(record.group(f"group {number}"))
    return [one for one in record.finished
            if one.communicator == place and one.name == "all_reduce" and one.type in (11, 13)]


@thorough
@pytest.mark.parametrize("hows", (OPTIONS, HOOKS), ids=("options", "hooks"))
@pytest.mark.parametrize("size", (2, 3))
def test_gradients_are_the_same_to_the_last_bit_and_each_bucket_is_counted(ranks, hows, size):
    traced = ranks.run(size, "train", *hows)
    found = ranks.read()
    assert told(traced) == told(ranks.run(size, "train", *hows, traced=False))
    assert len(told(traced)[0]) == sum(hows.values()) + ("two_hooks" in hows)  # which is told off by torch
    for number, (how, steps) in enumerate(hows.items(), 1):
        for record in found.values():
            assert record.open == []
            reduced = reductions(record, number)
            assert len(reduced) >= 2 * steps, (how, reduced)  # in several buckets
            assert [one.bytes for one in reduced] == [one.bytes for one in reductions(found[0], number)], how
            # All parameters once a step, and no more.
            if how != "sparse":
                size_of_one = 2 if how == "half" else 4
                assert sum(one.bytes for one in reduced) == steps * ELEMENTS * size_of_one, (how, reduced)


@thorough
@pytest.mark.parametrize("size", (2, 3))
def test_ranks_that_end_earlier_than_others(ranks, size):
    hows = ("join_static", "join_dynamic")
    traced = ranks.run(size, "train", *hows)
    found = ranks.read()
    assert told(traced) == told(ranks.run(size, "train", *hows, traced=False))
    for record in found.values():
        assert record.open == []
        for number in (1, 2):
            assert len(reductions(record, number)) == len(reductions(found[0], number)) > 6


# -- switching it on


@thorough
def test_a_program_can_switch_it_on_itself(ranks):
    outputs = ranks.run(2, "trace_late", PYTHONPATH=str(SDK))
    assert all(output == "True True\n" for output in outputs)
    assert all(record.counts() == {"all_reduce": 2} for record in ranks.read().values())


@thorough
def test_and_both_ways_together_count_once(ranks):
    ranks.run(2, "trace_late", PYTHONPATH=f"{PRELOAD}:{SDK}")
    assert all(record.counts() == {"all_reduce": 3} for record in ranks.read().values())


@thorough
@pytest.mark.parametrize("wrong", ({"AIMASTER_C4D_DIR": "/nowhere"}, {"AIMASTER_C4D_DIR": "relative"},
                                   {"AIMASTER_C4D_DIR": ""}, {"AIMASTER_C4D_RECORDER": "/nowhere.so"},
                                   {"AIMASTER_C4D_RECORDER": __file__}, {"AIMASTER_C4D_RECORDER": ""}))
def test_what_is_wrong_with_it_does_not_stop_the_program(ranks, wrong):
    output, = ranks.run(1, "train", "plain", **wrong)
    assert [line.split()[0] for line in output.splitlines()] == ["plain"] * 5
    said = [line for line in ranks.errors()[0].splitlines() if line.startswith("aimaster: ")]
    assert bool(said) == any(wrong.values()), said  # nothing is wrong where nothing was asked for
    assert ranks.read() == {}


@thorough
@pytest.mark.parametrize("flag", ("-S", "-I"))
def test_a_python_that_looks_at_no_such_thing_is_not_traced(ranks, flag):
    path = "import sys; sys.path[1:1] = ['/usr/lib/python3/dist-packages']; sys.argv[0:1] = []; "
    run = f"exec(compile(open({str(PROGRAM)!r}).read(), 'x', 'exec'), {{'__name__': '__main__'}})"
    ranks.run(1, "many", program=(PYTHON, flag, "-c", path + "sys.argv.insert(0, 'x'); " + run))
    assert ranks.read() == {}


@thorough
def test_the_variables_are_the_whole_of_it(ranks):
    ranks.run(1, "many", PYTHONPATH="")
    assert ranks.read() == {}
