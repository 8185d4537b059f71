"""Who was it? The first rank that failed by itself, also when others end before it, and on whatever node."""
import re

import pytest

from harness import FULL, WORKER, python

# Two ranks agree on a moment; rank 1 ends then, rank 0 20 ms later. Each writes down when it really did.
CLOSE_TOGETHER = """
import os, time
folder, rank = os.environ["FOLDER"], int(os.environ["RANK"])
open(f"{folder}/up{rank}", "w").close()
while not all(os.path.exists(f"{folder}/up{other}") for other in (0, 1)): time.sleep(0.001)
if rank == 0:
    with open(f"{folder}/moment.new", "w") as file: file.write(str(time.time() + 0.2))
    os.rename(f"{folder}/moment.new", f"{folder}/moment")
while not os.path.exists(f"{folder}/moment"): time.sleep(0.001)
moment = float(open(f"{folder}/moment").read()) + (0.02 if rank == 0 else 0)
note = os.open(f"{folder}/gone{rank}", os.O_WRONLY | os.O_CREAT)
time.sleep(max(0, moment - time.time()))
os.write(note, str(time.time()).encode())
os._exit(9 if rank == 0 else 7)
"""


def test_rank_1_fails_20_ms_before_rank_0_on_two_nodes(home, tmp_path):
    judged = 0
    for number in range(60):
        folder = tmp_path / str(number)
        folder.mkdir()
        finished = home.run("--workers", 2, "--local-nodes", 2, "--stop-grace", 1, "--", *python(CLOSE_TOGETHER),
                            env={"FOLDER": str(folder)})
        gone = [float((folder / f"gone{rank}").read_text() or "inf") for rank in (0, 1)]
        if gone[0] - gone[1] < 0.01:
            continue  # the machine was too busy to keep the appointment: this says nothing
        assert finished.code == 7, finished
        judged += 1
        if judged == 20:
            return
    pytest.fail(f"only {judged} of 60 tries kept the appointment")


# Rank 0 fills memory and crashes: writing its core takes seconds. The others see the crash begin and fail before its
# end, as a training's peers do when their connections time out.
MEGABYTES = 3072 if FULL else 1024
LARGE_CORE = """
import ctypes, mmap, os, resource, sys, time
folder, rank = os.environ["FOLDER"], int(os.environ["RANK"])
if rank == 0:
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    size = int(os.environ["MEGABYTES"]) << 20
    memory = mmap.mmap(-1, size)
    block = os.urandom(1 << 20)
    for offset in range(0, size, 1 << 20): memory[offset:offset + (1 << 20)] = block
    with open("pid.new", "w") as file: file.write(str(os.getpid()))
    os.rename("pid.new", "pid")
    print("rank 0 crashes", flush=True)
    ctypes.string_at(0)
while not os.path.exists(f"{folder}/pid"): time.sleep(0.01)
pid = open(f"{folder}/pid").read()
dumping = lambda: "CoreDumping:\\t1" in open(f"/proc/{pid}/status").read()
while not dumping(): time.sleep(0.005)
time.sleep(0.05)
sys.exit("RuntimeError: [pair.cc:598] Connection reset by peer" if dumping() else 99)
"""


@pytest.mark.skipif(open("/proc/sys/kernel/core_pattern").read().strip() != "core", reason="cores go elsewhere here")
def test_a_segfault_whose_core_takes_seconds_is_the_root_cause_though_it_exits_last(home, tmp_path):
    finished = home.run("--workers", 3, "--local-nodes", 2, "--stop-grace", 1, "--", *python(LARGE_CORE),
                        env={"FOLDER": str(tmp_path), "MEGABYTES": str(MEGABYTES)}, timeout=180)
    cores = list(tmp_path.glob("core*"))
    sizes = [core.stat().st_size for core in cores]
    for core in cores:
        core.unlink()
    assert sizes and sizes[0] > MEGABYTES << 20, finished
    states = {one["name"][-1]: one["exit_code"] for one in home.workers()}
    assert states["1"] == states["2"] == 1, "the peers failed while the core was being written"
    assert finished.code == 139, finished


def test_a_lost_connection_is_a_consequence_though_it_is_first(home):
    code = ("import os, sys, time\n"
            "if os.environ['RANK'] == '0': sys.exit('RuntimeError: [pair.cc:598] Connection closed by peer')\n"
            "time.sleep(0.1)\n"
            "sys.exit('CUDA error: an illegal memory access was encountered')")
    finished = home.run("--workers", 2, "--enable-job-restart=True", "--fault-tolerant-policy=OnFailure",
                        "--max-num-of-job-restart=1", "--stop-grace", 1, "--", *python(code))
    assert finished.code == 1, finished
    record, = home.records()
    assert record["instance_name"].endswith("-worker-1"), record
    assert "illegal memory access" in record["error_message"], record


def test_the_error_file_of_torchelastic_is_the_message(home):
    code = ("import json, os, sys, time\n"
            "text = 'ValueError: the flux is not normalised'\n"
            "error = {'message': {'message': text, 'extraInfo': {'py_callstack': 'Traceback ...',\n"
            "                     'timestamp': str(int(time.time()))}}}\n"
            "open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write(json.dumps(error))\n"
            "print('something else on stderr', file=sys.stderr)\n"
            "sys.exit(1)")
    finished = home.run("--workers", 1, "--enable-job-restart=True", "--fault-tolerant-policy=OnFailure",
                        "--max-num-of-job-restart=1", "--", *python(code))
    assert finished.code == 1, finished
    record, = home.records()
    assert record["error_message"] == "ValueError: the flux is not normalised"


def test_a_python_traceback_is_told_by_its_last_line(home):
    finished = home.run("--workers", 2, "--stop-grace", 1, "--", *WORKER, "--die-rank", 1, "--die-how", "exception",
                        "--die-message", "no such layer")
    assert finished.code == 1, finished
    assert "RuntimeError: no such layer" in home.get()["reason_message"]
    assert "RuntimeError: no such layer" in finished.stderr


def test_explain_tells_the_chain_from_rank_to_decision(home):
    finished = home.run("--workers", 2, "--stop-grace", 1, "--", *WORKER, "--die-rank", 1, "--die-how", "exit7",
                        "--die-message", "the reactor is cold")
    assert finished.code == 7, finished
    told = home.call("explain", home.job())
    assert told.code == 0, told
    for part in ("rank 1", "exit code 7", "the reactor is cold"):
        assert part in told.stdout, told
    failing = [decision for decision in home.explain() if decision["decision"] == "Fail"]
    assert len(failing) == 1 and len(failing[0]["reasons"]) >= 2
    assert re.search(r"not (allowed|retryable)", failing[0]["reasons"][-1])


def test_a_storm_of_failing_ranks_is_one_failure(home):
    finished = home.run("--workers", 40, "--stop-grace", 1, "--", *python("import os; os._exit(3)"))
    assert finished.code == 3, finished
    assert len([one for one in home.explain() if one["decision"] == "Fail"]) == 1
