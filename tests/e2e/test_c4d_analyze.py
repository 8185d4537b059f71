"""`aimaster c4d analyze`: a folder of dumps, in whatever state, and who is to blame."""
import json
import os
import pickle
import random
import subprocess

import pytest

from flight_dumps import World
from harness import AIMASTER, FULL, ROOT, one_line_error

INCIDENTS = ROOT / "tests" / "data" / "c4d"
TRUTH = {"incident-a": ([12, 14], "RankCommHang"), "incident-b": ([10, 15], "RankNonCommHang")}
FIELDS = {"kind", "level", "ranks", "node", "communicator", "operation", "sequence", "since", "evidence"}


@pytest.fixture
def incident(tmp_path):
    def copy(name):
        folder = tmp_path / name
        folder.mkdir()
        for file in (INCIDENTS / name).iterdir():
            (folder / file.name.removesuffix(".pickle")).write_bytes(file.read_bytes())
        return folder
    return copy


def analyze(home, folder, *options):
    return home.call("c4d", "analyze", "--json", *options, str(folder)).json()


def accused(answer):
    return sorted({rank for verdict in answer["verdicts"] for rank in verdict["ranks"]
                   if verdict["kind"] != "NoProbeData" and not verdict["is_group"]})


@pytest.mark.parametrize("name", TRUTH)
def test_the_culprits_of_a_real_incident_and_nobody_else(home, incident, name):
    ranks, kind = TRUTH[name]
    folder = incident(name)
    answer = analyze(home, folder)
    assert accused(answer) == ranks and {verdict["kind"] for verdict in answer["verdicts"]} == {kind}
    assert (answer["ranks"], answer["ranks_seen"], answer["ranks_not_seen"]) == (16, 16, [])
    assert [entry["file"] for entry in answer["files_left_out"]] == ["fault_injection.log"]
    for verdict in answer["verdicts"]:
        assert FIELDS <= set(verdict) and verdict["node"] is None and verdict["evidence"]
    told = home.call("c4d", "analyze", str(folder))
    assert told.code == 0 and told.stderr == ""
    first = told.stdout.splitlines()[0]
    assert first.startswith(f"Ranks {ranks[0]} and {ranks[1]} hang ") and first.endswith(f"({kind})")
    assert "Seen: 16 of 16 ranks" in told.stdout
    assert "fault_injection.log is neither a pickle nor JSON" in told.stdout


@pytest.mark.parametrize("name", TRUTH)
def test_four_files_that_are_missing_make_nobody_guilty(home, incident, name):
    culprits = TRUTH[name][0]
    chance = random.Random(7)
    folder = incident(name)
    files = {rank: (folder / f"_dump_{rank}").read_bytes() for rank in range(16)}
    for _ in range(100 if FULL else 10):
        missing = chance.sample(range(16), 4)
        for rank in missing:
            (folder / f"_dump_{rank}").unlink()
        answer = analyze(home, folder)
        assert answer["ranks_not_seen"] == sorted(missing)
        assert set(accused(answer)) <= set(culprits), missing
        for rank in missing:
            (folder / f"_dump_{rank}").write_bytes(files[rank])


FORMS = ["pickle2", "pickle3", "pickle4", "pickle5", "json"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ranks, tensor, culprit", [(8, 2, 5), (12, 4, 3), (32, 8, 17)])
def test_jobs_of_other_sizes_in_all_forms(home, tmp_path, form, ranks, tensor, culprit):
    folder = World(ranks, tensor).run(outside=[culprit]).write(tmp_path / "dumps", form)
    answer = analyze(home, folder)
    assert [(verdict["kind"], verdict["ranks"]) for verdict in answer["verdicts"]] == [("RankNonCommHang", [culprit])]
    assert answer["ranks_seen"] == ranks


def test_a_rank_that_hangs_inside_and_gloo(home, tmp_path):
    folder = World(16, 4).run(inside=[6]).write(tmp_path / "dumps", "json", name="gloo:all_reduce")
    answer = analyze(home, folder)
    assert [(verdict["kind"], verdict["ranks"]) for verdict in answer["verdicts"]] == [("RankCommHang", [6])]


def test_process_local_numbers_with_gaps(home, tmp_path):
    folder = World(8, 2).run(outside=[1]).write(tmp_path / "dumps", ids=lambda index: 3 * index + 7)
    assert accused(analyze(home, folder)) == [1]


def test_a_job_that_stands_nowhere(home, tmp_path):
    folder = World(8, 2).run(outside=range(8), at=9).write(tmp_path / "dumps")
    told = home.call("c4d", "analyze", str(folder))
    assert told.code == 0 and told.stdout.startswith("No rank is found to hang in the dumps of all 8 ranks")


def test_a_mixed_folder_is_used_as_far_as_it_goes(home, tmp_path):
    folder = World(8, 2).run(outside=[5]).write(tmp_path / "dumps")
    (folder / "sub").mkdir()
    (folder / "trace_rank_7").rename(folder / "sub" / "trace_rank_7.pickle")
    (folder / "notes.txt").write_text("rank 3 looks bad\n")
    (folder / "nothing").write_bytes(b"")
    (folder / "copy_of_2").write_bytes((folder / "trace_rank_2").read_bytes())
    (folder / "torn_4").write_bytes((folder / "trace_rank_4").read_bytes()[:700])
    (folder / "hostile_0").write_bytes(pickle.dumps(os.system, 2))
    (folder / "other_3").write_bytes(pickle.dumps(World(4, 2).run(outside=[1]).dump(3), 2))
    with open(folder / "huge_6", "wb") as huge:
        huge.truncate(1 << 34)
    os.mkfifo(folder / "pipe_1")
    answer = analyze(home, folder)
    assert accused(answer) == [5] and answer["ranks_seen"] == 8
    reasons = {entry["file"]: entry["reason"] for entry in answer["files_left_out"]}
    assert set(reasons) == {"notes.txt", "nothing", "trace_rank_2", "torn_4", "hostile_0", "other_3", "huge_6",
                            "pipe_1"}
    assert reasons["hostile_0"].startswith("is refused: it would import a name")
    assert reasons["huge_6"].startswith("is larger than")
    assert reasons["other_3"].startswith("is of another job")
    assert reasons["trace_rank_2"] == "is the same as copy_of_2"


def test_a_large_job_and_a_small_memory(home, tmp_path):
    folder = World(64, 8).run(outside=[33], at=100).write(tmp_path / "dumps")
    limited = ["bash", "-c", f"ulimit -v 400000; exec {AIMASTER} c4d analyze --json {folder}"]
    answer = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert accused(json.loads(answer.stdout)) == [33]


def test_wrong_words_are_one_line_each(home, tmp_path):
    one_line_error(home.call("c4d", "analyze"), "which folder")
    one_line_error(home.call("c4d", "analyse", str(tmp_path)), "'analyse'", "analyze")
    one_line_error(home.call("c4d", "analyze", str(tmp_path / "no")), "No such file")
    one_line_error(home.call("c4d", "analyze", "--timeout", "soon", str(tmp_path)), "--timeout", "'soon'")
    file = tmp_path / "file"
    file.write_text("x")
    one_line_error(home.call("c4d", "analyze", str(file)), "is no folder")


def test_a_folder_without_a_dump_is_a_failure_with_reasons(home, tmp_path):
    folder = tmp_path / "dumps"
    folder.mkdir()
    empty = home.call("c4d", "analyze", str(folder))
    assert empty.code == 1 and "it is empty" in empty.stderr
    (folder / "dump_0").write_bytes(b"")
    (folder / "dump_1").write_text("hello")
    nothing = home.call("c4d", "analyze", "--json", str(folder))
    assert nothing.code == 1
    one_line_error(nothing, "dump_0 is empty", "dump_1 is neither a pickle nor JSON")
