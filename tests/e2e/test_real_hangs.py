"""Hangs of real programs, from the silence to the end: found within a second of the interval, the culprit and its line
in the first group of what people are shown, restarted, and finished."""
import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from test_stacks import PATH, TOOLS, needs_eu_stack, needs_ptrace, needs_tools, with_tools

PROGRAMS = Path(__file__).parent / "programs"
INTERVAL = 12  # more than PyTorch takes to load on a busy machine
HANGS = ["--enable-job-restart=True", "--enable-job-hang-detection=True", f"--job-hang-interval={INTERVAL}",
         "--stop-grace", 1]
FILE = "hanging_training.py"


def line_of(text):
    """Where this is in the program."""
    lines = (PROGRAMS / FILE).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def the_hang(home):
    with sqlite3.connect(f"file:{home.directory()}/journal.db?mode=ro", uri=True) as journal:
        row, = journal.execute("SELECT body FROM input WHERE kind = 'HangFound'").fetchall()
    return json.loads(row[0])


def restarted_once(home, finished):
    assert finished.code == 0, finished
    assert INTERVAL <= the_hang(home)["lasts_ns"] / 1e9 <= INTERVAL + 1
    assert home.get()["restarts"] == 1
    record, = home.records()
    assert (record["error_source"], record["fault"], record["result"]) == ("hang", "JobHang", "Restarted"), record
    return record


def first_group(home):
    return home.call("stacks", home.job(), "--json").json()["groups"][0]


def places(group):
    return {(Path(frame["file"] or "").name, frame["function"], frame["line"]) for frame in group["stack"]}


@pytest.mark.training
@needs_tools
@needs_ptrace
@pytest.mark.parametrize("hang, function, line", [
    ("loader", "fetch_from_storage", "time.sleep(1000)"),
    ("gil", "hold_the_lock_of_the_interpreter", "ctypes.PyDLL(None)"),
    ("skip", "train", "dist.barrier()  # the others"),
    ("sigstop", "stop_by_a_signal", "os.kill("),
    ("deadlock", "take", "with second:"),
    ("fifo", "read_a_pipe_that_nobody_fills", "with open(path"),
])
def test_a_training_that_hangs(home, hang, function, line):
    finished = home.run("--workers", 4, "--local-nodes", 2, *HANGS, "--", "/usr/bin/python3", PROGRAMS / FILE, hang,
                        env=with_tools(), timeout=180)
    record = restarted_once(home, finished)
    group = first_group(home)
    assert group["ranks"] == "2", group
    assert (FILE, function, line_of(line)) in places(group), group
    # The record and the person who reads it are told the same.
    where = f"{function} ({FILE}:{line_of(line)})"
    assert "rank 2" in record["error_message"] and where in record["error_message"], record
    assert record["instance_name"].endswith("-worker-2")
    assert record["stacks"] and (home.directory() / record["stacks"]).exists()
    shown = home.call("stacks", home.job()).stdout
    assert "ank 2" in shown.splitlines()[0] and where in shown, shown


@needs_eu_stack
@needs_ptrace
@pytest.mark.skipif(not shutil.which("mpicc.openmpi"), reason="OpenMPI is not installed")
def test_an_mpi_program_that_skips_a_barrier(home, tmp_path):
    program = tmp_path / "skips_a_barrier"
    assert os.system(f"mpicc.openmpi -g -O0 {PROGRAMS / 'skips_a_barrier.c'} -o {program}") == 0
    mpirun = ["mpirun.openmpi", "--oversubscribe", "-np", 4, "-x", "AIMASTER_ROUND"]
    if os.geteuid() == 0:
        mpirun.insert(1, "--allow-run-as-root")
    finished = home.run("--framework", "mpi", "--nproc-per-node", 4, *HANGS, "--", *mpirun, program,
                        env={"PATH": f"{TOOLS}:{PATH}"}, timeout=180)
    restarted_once(home, finished)
    group = first_group(home)
    assert group["ranks"] == "2", group
    assert any(function == "wait_for_a_file_that_never_comes" for _, function, _ in places(group)), group
