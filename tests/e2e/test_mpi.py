"""MPI on one host: the user's own mpirun, of OpenMPI and of MPICH, whose ranks fail in every way that there is.

mpirun's exit code and words are second-hand, and MPICH's are often those of a rank that it has killed itself. So each
test looks whether the rank's own end was seen.
"""
import os
import re
import signal

import pytest

from harness import kill, shell, wait_for
from mpi import ENVIRONMENT, FINAL, for_each_library, mpirun, needs_mpi, program, run

pytestmark = needs_mpi

# OpenMPI loses the last words of a rank now and then; then its exit code is all there is.
SAID = ("MpiAborted", "MpiError", "ExitCode")
RESTART = ("--enable-job-restart=True",)


def decisions(home):
    return [one["decision"] for one in home.explain()]


def failing(home):
    """The decision by which the job failed."""
    decision, = [one for one in home.explain() if one["decision"] == "Fail"]
    return decision


@for_each_library
def test_a_run_that_nobody_disturbs(home, library, tmp_path):
    finished = run(home, mpirun(library, "--checkpoint", tmp_path / "rod"))
    assert finished.code == 0, finished
    assert FINAL in finished.stdout.splitlines(), finished
    instance, = home.workers()
    assert instance["name"].endswith("-launcher-0") and instance["status"] == "Succeeded"


@for_each_library
def test_a_rank_that_is_killed_is_the_cause_and_the_job_goes_on(home, library, tmp_path):
    finished = run(home, mpirun(library, "--checkpoint", tmp_path / "rod", "--die-rank", 2, "--die-step", 12,
                                "--die-how", "sigkill", "--die-message", "rank 2 dies now"), *RESTART)
    assert finished.code == 0, finished
    assert "resumed at step 10 of 40 on 4 ranks" in finished.stdout
    assert FINAL in finished.stdout.splitlines(), finished
    record, = home.records()
    assert record["error_code"] == 137 and record["fault"] == "Sigkill", record
    assert record["instance_name"].endswith("-launcher-0") and record["result"] == "Restarted", record
    assert record["error_message"] == "MPI rank 2: killed by SIGKILL (9); its last line: rank 2 dies now", record
    detail, = record["details"]
    assert detail["mpi_rank"] == 2 and detail["root"], record
    told = home.call("explain", home.job()).stdout
    assert re.search(r"\(process \d+ itself; the launcher passed it on as \d+\)", told), told


@for_each_library
def test_a_rank_killed_by_somebody_else_in_mid_run(home, library, tmp_path):
    running = home.start("run", "--framework", "mpi", "--nproc-per-node", 4, *RESTART, "--", *mpirun(
        library, "--checkpoint", tmp_path / "rod", "--steps", 60, "--step-seconds", 0.05), env=ENVIRONMENT)
    home.wait_for_output(running, "is process ", times=4)
    victim, = re.findall(r"^rank 1 is process (\d+)$", running.stdout, re.MULTILINE)
    kill(int(victim))
    finished = running.wait(120)
    assert finished.code == 0, finished
    record, = home.records()
    assert record["error_code"] == 137 and record["details"][0]["mpi_rank"] == 1, record
    assert f"(process {victim} itself; " in home.call("explain", home.job()).stdout


# MPICH's mpirun says of this one that it was killed by signal 9, and ends with 9: that is how its peers ended.
@for_each_library
def test_an_exit_code_is_that_of_the_rank(home, library, tmp_path):
    finished = run(home, mpirun(library, "--die-rank", 2, "--die-step", 12, "--die-how", "exit3", "--die-message",
                                "heat: the rod is too short"), *RESTART)
    assert finished.code == 3, finished
    assert home.records() == [] and decisions(home) == ["Fail"]
    assert home.get()["reason_message"].count("heat: the rod is too short") == 1
    assert any("MPI rank 2: exit code 3" in reason for reason in failing(home)["reasons"])


@for_each_library
def test_what_the_rank_says_decides(home, library, tmp_path):
    ecc = "CUDA error: uncorrectable ECC error encountered"
    finished = run(home, mpirun(library, "--checkpoint", tmp_path / "rod", "--die-rank", 1, "--die-step", 12,
                                "--die-how", "exit1", "--die-message", ecc), *RESTART)
    assert finished.code == 0, finished
    record, = home.records()
    assert record["fault"] == "GpuEccUncorrectable" and record["category"] == "hardware", record
    assert record["error_message"] == ecc and record["details"][0]["mpi_rank"] == 1, record


@for_each_library
def test_a_segmentation_fault_is_tried_once_more_at_the_same_rank(home, library, tmp_path):
    finished = run(home, mpirun(library, "--checkpoint", tmp_path / "rod", "--die-rank", 3, "--die-step", 12,
                                "--die-how", "segfault", "--die-always"), *RESTART)
    assert finished.code == 139, finished
    record, = home.records()
    assert record["error_code"] == 139 and record["details"][0]["mpi_rank"] == 3, record
    assert decisions(home) == ["Restart", "Fail"]


@for_each_library
def test_mpi_abort_is_the_programs_own_will(home, library):
    finished = run(home, mpirun(library, "--die-rank", 2, "--die-step", 12, "--die-how", "abort"), *RESTART)
    assert finished.code == 5, finished
    assert home.get()["reason_code"] in SAID and decisions(home) == ["Fail"]


@for_each_library
def test_a_wrong_call_of_mpi_is_a_bug(home, library):
    finished = run(home, mpirun(library, "--die-rank", 2, "--die-step", 12, "--die-how", "error"), *RESTART)
    assert finished.code not in (0, 137), finished
    assert home.get()["reason_code"] in SAID and decisions(home) == ["Fail"]


@for_each_library
def test_a_rank_that_leaves_without_saying_goodbye(home, library):
    finished = run(home, mpirun(library, "--die-rank", 2, "--die-step", 12, "--die-how", "unfinished"), *RESTART)
    assert finished.code != 0, finished
    assert decisions(home) == ["Fail"], home.explain()
    if library == "mpich":  # whose mpirun may say anything, 0 too
        told = home.get()["reason_message"]
        left = "MPI rank 2 left with exit code 0 and without MPI_Finalize" in told
        assert left or "Fatal error in internal_Sendrecv" in told, told  # of a neighbour that was not killed at once


def test_what_is_no_program_of_mpi_owes_no_goodbye(home):
    finished = run(home, ["mpirun.mpich", "-np", "3", "echo", "here"], *RESTART)
    assert finished.code == 0 and finished.stdout.count("here") == 3, finished


# MPICH's mpirun waits for ever for the others, which wait for this one.
def test_a_rank_that_fails_before_it_meets_the_others(home):
    finished = run(home, mpirun("openmpi", "--die-rank", 2, "--die-how", "early", "--die-message", "heat: no table"),
                   *RESTART)
    assert finished.code == 4, finished
    assert any("MPI rank 2: exit code 4" in reason for reason in failing(home)["reasons"])
    assert "no table" in home.get()["reason_message"]


@for_each_library
def test_a_program_that_is_not_there(home, library):
    finished = run(home, [f"mpirun.{library}", "-np", "2", "./no-such-program"], *RESTART)
    assert finished.code not in (0, 137), finished
    assert decisions(home) == ["Fail"] and home.records() == []
    assert "no-such-program" in finished.stderr


def test_more_ranks_than_slots(home):
    finished = run(home, mpirun("openmpi"), *RESTART, slots=2)
    assert finished.code == 1, finished
    assert home.get()["reason_code"] == "MpiSlots" and decisions(home) == ["Fail"]


@for_each_library
def test_a_host_that_the_job_does_not_have(home, library):
    option = "--host" if library == "openmpi" else "-hosts"
    finished = run(home, [f"mpirun.{library}", option, "gpu-17", "-np", "1", program(library)], *RESTART)
    assert finished.code != 0, finished
    assert decisions(home) == ["Fail"]


@for_each_library
def test_mpirun_itself_is_killed(home, library, tmp_path):
    running = home.start("run", "--framework", "mpi", "--nproc-per-node", 4, *RESTART, "--stop-grace", 1, "--", *mpirun(
        library, "--checkpoint", tmp_path / "rod", "--steps", 60, "--step-seconds", 0.05), env=ENVIRONMENT)
    home.wait_for_output(running, "is process ", times=4)
    started, = home.directory().glob("nodes/*/*-launcher-0/0/started.json")
    launcher, = re.findall(r'"pid":(\d+)', started.read_text().split('"ranks"')[1])
    kill(int(launcher))
    finished = running.wait(120)
    assert finished.code == 0, finished
    record, = home.records()
    assert record["error_code"] == 137 and "mpi_rank" not in record["details"][0], record
    assert "resumed at step" in finished.stdout or "started at step" in finished.stdout


@for_each_library
def test_nothing_is_left_when_the_job_is_stopped(home, library):
    running = home.start("run", "--framework", "mpi", "--nproc-per-node", 4, "--stop-grace", 1, "--", *mpirun(
        library, "--steps", 10_000, "--step-seconds", 0.05), env=ENVIRONMENT)
    home.wait_for_output(running, "is process ", times=4)
    running.signal(signal.SIGINT)
    assert running.wait(60).code == 130
    wait_for(lambda: not home.leftovers(), "nothing to be left")


# What is known of a rank lies in a file, so that the next agent knows it too.
@for_each_library
def test_a_rank_that_dies_while_no_agent_looks(home, library, tmp_path):
    running = home.start("run", "--framework", "mpi", "--nproc-per-node", 4, *RESTART, "--", *mpirun(
        library, "--checkpoint", tmp_path / "rod", "--steps", 40, "--step-seconds", 0.05), env=ENVIRONMENT)
    home.wait_for_output(running, "is process ", times=4)
    agent, = home.agent_pids().values()
    os.kill(agent, signal.SIGSTOP)
    victim, = re.findall(r"^rank 3 is process (\d+)$", running.stdout, re.MULTILINE)
    kill(int(victim))
    launcher, = home.directory().glob("nodes/*/*-launcher-0/0")
    wait_for(lambda: (launcher / "rank0.exit.json").exists(), "mpirun to have ended")
    kill(agent)
    finished = running.wait(120)
    assert finished.code == 0, finished
    record, = home.records()
    assert record["error_code"] == 137 and record["details"][0]["mpi_rank"] == 3, record


# A script may go on after an mpirun that failed; and what fails then is its own.
@for_each_library
def test_a_script_outlives_the_failure_of_its_mpirun(home, library, tmp_path):
    first = " ".join(mpirun(library, "--die-rank", 1, "--die-step", 3, "--die-how", "exit3"))
    second = " ".join(mpirun(library))
    finished = run(home, shell(f"{first} || echo first one failed; exec {second}"))
    assert finished.code == 0, finished
    assert "first one failed" in finished.stdout and FINAL in finished.stdout.splitlines()


@for_each_library
def test_a_rank_knows_its_number_and_its_job(home, library):
    command = ('echo "rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE here, $AIMASTER_INSTANCE, round '
               '$AIMASTER_ROUND, ${LD_PRELOAD:-no preload}"')
    finished = run(home, [f"mpirun.{library}", "-np", "2", *shell(command)])
    assert finished.code == 0, finished
    lines = [line for line in finished.stdout.splitlines() if line.startswith("rank ")]
    assert sorted(lines) == [f"rank {rank} of 2, {rank} of 2 here, {home.job()}-launcher-0, round 0, no preload"
                             for rank in (0, 1)], finished


def test_root_is_told_how_openmpi_takes_it(home):
    finished = run(home, mpirun("openmpi"), env={name: "0" for name in ENVIRONMENT})
    if not ENVIRONMENT:
        pytest.skip("only root is refused")
    assert finished.code == 1, finished
    assert home.get()["reason_code"] == "MpiRunAsRoot"
    assert "OMPI_ALLOW_RUN_AS_ROOT" in home.call("explain", home.job()).stdout
