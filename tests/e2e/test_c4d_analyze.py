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


def each_entry(change):
    def rewrite(_rank, dump):
        for entry in dump["entries"]:
            change(entry)
    return rewrite


def without(*keys):
    return each_entry(lambda entry: [entry.pop(key) for key in keys])


def shifted_clock(rank, dump):
    for entry in dump["entries"] if rank % 3 == 0 else []:
        entry["time_created_ns"] += rank * 86_400_000_000_000


def newer(rank, dump):
    dump.update(version="2.10", comm_lib_version=dump.pop("nccl_version"), rank=rank, nccl_comm_state={"x": [1, {}]})
    for group in dump["pg_config"].values():
        group["ranks"] = json.loads(group["ranks"])
    for entry in dump["entries"]:
        entry["frames"] = [{"name": "step", "filename": "train.py", "line": 7}]


def completed_ones_too(_rank, dump):
    """As a recorder writes it that was not asked for the active ones alone: the ring holds what was done before."""
    done = []
    for entry in dump["entries"]:
        if not entry["is_p2p"] and not any(other["pg_id"] == entry["pg_id"] for other in done):
            done.append({**entry, "collective_seq_id": entry["collective_seq_id"] - 1, "state": "completed",
                         "record_id": entry["record_id"] - 99, "retired": True,
                         "time_discovered_completed_ns": entry["time_created_ns"]})
    dump["entries"] = done + dump["entries"]


def numbers_as_texts(_rank, dump):
    dump["pg_status"] = {int(key): value for key, value in dump["pg_status"].items()}
    for entry in dump["entries"]:
        entry["pg_id"] = str(entry["pg_id"])


@pytest.mark.parametrize("form", ["json", "pickle5"])
@pytest.mark.parametrize("rewrite", [
    None, newer, shifted_clock, completed_ones_too, numbers_as_texts, without("is_p2p"), without("retired", "op_id"),
    without("time_created_ns"), without("thread_id", "thread_name", "timeout_ms"),
    without("input_sizes", "input_dtypes")])
@pytest.mark.parametrize("name", TRUTH)
def test_a_real_incident_as_other_versions_write_it(home, tmp_path, name, rewrite, form):
    for rank in range(16):
        dump = pickle.loads((INCIDENTS / name / f"_dump_{rank}.pickle").read_bytes())
        if rewrite:
            rewrite(rank, dump)
        data = json.dumps(dump).encode() if form == "json" else pickle.dumps(dump, 5)
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / f"nccl_trace_rank_{rank}{'.json' if form == 'json' else ''}").write_bytes(data)
    answer = analyze(home, tmp_path / name)
    assert accused(answer) == TRUTH[name][0] and {v["kind"] for v in answer["verdicts"]} == {TRUTH[name][1]}


@pytest.mark.parametrize("name", TRUTH)
@pytest.mark.parametrize("key", ["pg_status", "pg_config", "entries"])
def test_what_a_version_does_not_say_accuses_nobody(home, tmp_path, name, key):
    for rank in range(16):
        dump = pickle.loads((INCIDENTS / name / f"_dump_{rank}.pickle").read_bytes())
        del dump[key]
        (tmp_path / f"dump_{rank}").write_bytes(pickle.dumps(dump, 2))
    told = home.call("c4d", "analyze", "--json", str(tmp_path))
    assert told.code == 0 and set(accused(told.json())) <= set(TRUTH[name][0])


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


def test_a_group_of_which_nobody_gets_anywhere_is_named_and_no_rank(home, tmp_path):
    folder = World(16, 4).run(broken=[6]).write(tmp_path / "dumps")
    answer = analyze(home, folder)
    verdicts = answer["verdicts"]
    assert verdicts and all(verdict["kind"] == "RankCommHang" and 6 in verdict["ranks"] for verdict in verdicts)
    assert accused(answer) in ([], [6])


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


def ras_report(time, behind, missing=()):
    """As `ncclras -f json` prints it: eight ranks on two hosts, of which one has launched an AllReduce less."""
    ranks, lost = [], []
    for rank in range(8):
        process = {"rank": rank, "host": f"10.0.0.{rank // 4}", "pid": 1000 + rank, "cuda_dev": rank % 4,
                   "nvml_dev": rank % 4}
        if rank in missing:
            lost.append({**process, "status": {"unresponsive": True, "considered_dead": False}})
            continue
        status = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False,
                  "abort_flag": False}
        counts = {"Broadcast": 1, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": 40 - (rank == behind)}
        ranks.append({**process, "status": status, "collective_counts": counts})
    communicator = {"hash": "0xd0d47b5885b3b54b", "secondary_hash": "0x1:0x2", "size": 8, "ranks_count": len(ranks),
                    "missing_ranks_count": len(lost), "ranks": ranks, "missing_ranks": lost}
    return json.dumps({"nccl_version": "2.28.9", "cuda_runtime_version": 12090, "cuda_driver_version": 13000,
                       "timestamp": time, "communicators_count": 1, "communicators": [communicator],
                       "ras": {"collection_time_sec": 0.001, "timeouts_count": 0}}, indent=2)


def test_reports_of_nccl_ras_name_a_rank_when_two_of_them_agree(home, tmp_path):
    folder = tmp_path / "ras"
    folder.mkdir()
    (folder / "one").write_text(ras_report("2026-06-19 06:51:00", behind=5))
    once = home.call("c4d", "analyze", str(folder))
    assert once.code == 0 and once.stdout.startswith("Whether anybody hangs is not judged")
    assert "rank 5 has launched 40 collectives" in once.stdout and "--timeout" in once.stdout
    assert accused(analyze(home, folder, "--timeout", "60")) == [5]
    (folder / "two").write_text(ras_report("2026-06-19 06:52:00", behind=5))
    (folder / "torn").write_text(ras_report("2026-06-19 06:53:00", behind=3)[:700])
    answer = analyze(home, folder)
    assert [(verdict["kind"], verdict["ranks"]) for verdict in answer["verdicts"]] == [("RankNonCommHang", [5])]
    assert answer["verdicts"][0]["since"] == 59 and answer["verdicts"][0]["waiting"] == [0, 1, 2, 3, 4, 6, 7]
    assert "Rank 5 is process 1005 on 10.0.0.1, device 1." in answer["verdicts"][0]["evidence"]
    assert [entry["file"] for entry in answer["files_left_out"]] == ["torn"]
    (folder / "two").write_text(ras_report("2026-06-19 06:52:00", behind=None))
    assert accused(analyze(home, folder)) == []
    (folder / "two").write_text(ras_report("2026-06-19 06:52:00", behind=5, missing=[2]))
    answer = analyze(home, folder)
    assert accused(answer) == [] and answer["ranks_not_seen"] == [2]


def inspector_line(rank, step, took_us):
    header = {"id": "0x7f8c496ae9f661", "rank": rank, "n_ranks": 4, "nnodes": 1}
    metadata = {"inspector_output_format_version": "v4.0", "git_rev": "", "rec_mechanism": "profiler_plugin",
                "dump_timestamp_us": 1_748_030_377_000_000 + step * 100_000, "hostname": "h", "pid": 1000 + rank}
    operation = {"coll": "AllReduce", "coll_sn": step, "coll_msg_size_bytes": 1 << 20, "coll_exec_time_us": took_us,
                 "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": 277.2, "coll_busbw_gbs": 485.1}
    return json.dumps({"header": header, "metadata": metadata, "coll_perf": operation}) + "\n"


def test_logs_of_the_nccl_inspector_say_who_comes_late(home, tmp_path):
    folder = tmp_path / "inspector"
    folder.mkdir()
    for rank in range(4):
        lines = [inspector_line(rank, step, 22_000 if step > 200 and rank != 2 else 2_000) for step in range(600)]
        (folder / f"h-pid{1000 + rank}.log").write_text("".join(lines) + "no JSON\n" * (rank == 1))
    answer = analyze(home, folder)
    assert [(verdict["kind"], verdict["level"], verdict["ranks"]) for verdict in answer["verdicts"]] == [
        ("RankNonCommSlow", "Info", [2])]
    assert "Rank 2 is process 1002 on h." in answer["verdicts"][0]["evidence"]
    assert answer["files_used_in_part"] == [{"file": "h-pid1001.log", "reason": "has 1 line that can't be used"}]
    told = home.call("c4d", "analyze", str(folder))
    assert told.stdout.startswith("Rank 2 is slow outside communication (RankNonCommSlow)")
    (folder / "h-pid1003.log").unlink()
    assert accused(analyze(home, folder)) == []
