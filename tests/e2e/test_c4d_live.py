"""C4D in running jobs: real MPI programs that hang, in communication and outside, and who is named for it."""
import os
import re
import signal
from pathlib import Path

import pytest

from harness import FULL, PYTHON, ROOT, kill, wait_for
from mpi import ENVIRONMENT, for_each_library, needs_mpi, together
from torch_here import needs_torch
from namespaces import needs, tell

ON = ("--enable-job-restart=True", "--enable-job-hang-detection=True", "--enable-c4d-hang-detection=True")
SOON = "--c4d-common-envs=C4D_HANG_TIMEOUT=2,C4D_HANG_TIMES=1"


def mpi(library, *arguments, ranks=4):
    return ["--framework", "mpi", "--nproc-per-node", ranks, "--stop-grace", 2, "--", f"mpirun.{library}", "-np", ranks,
            together(library), *arguments]


def c4d(home):
    return home.call("c4d", "--json", home.job()).json()


def told(home):
    """What C4D has told people, in order."""
    events = home.call("events", "--json", home.job()).stdout
    return re.findall(r'"aimaster\.c4d\.([a-z-]+)"', events)


def who_computes_slowly(home):
    """Where the machine is busy with other things, communication is slow, too."""
    def found():
        return home.list() and [one for one in c4d(home)["verdicts"] if one["kind"] == "RankNonCommSlow"]

    verdict, = wait_for(found, "a rank that computes slowly", timeout=60)
    return verdict


def record_folders(home):
    """Those of this job, in memory."""
    found = Path(f"/dev/shm/aimaster-records-{os.geteuid()}").glob("*/attempt")
    return [path.parent for path in found if home.job() in path.read_text()]


@needs_mpi
@for_each_library
def test_who_sleeps_before_a_collective_is_warned_of_and_never_isolated(home, library, tmp_path):
    running = home.start("run", *ON, SOON, *mpi(library, 200, 0.02, "sleep", 2, 10, 7, tmp_path / "mark"),
                         env=ENVIRONMENT)
    home.wait_for_output(running, "is process ", times=4)
    follower = home.start("c4d", "-f", home.job())
    warned = wait_for(lambda: c4d(home)["verdicts"], "a verdict")
    verdict, = warned
    assert (verdict["kind"], verdict["level"], verdict["ranks"]) == ("RankNonCommHang", "Warning", [2])
    assert 2 <= verdict["since"] < 7.5 and verdict["node"], verdict
    assert any("has issued" in sentence or "has completed" in sentence for sentence in verdict["evidence"]), verdict
    shown = home.call("c4d", home.job()).stdout
    assert shown.startswith("Warning: rank 2 hangs outside communication"), shown
    assert running.wait(60).code == 0
    assert told(home) == ["rank-non-comm-hang", "over"]
    assert home.records() == [] and c4d(home)["verdicts"] == []
    followed = follower.wait(10)
    lines = followed.stdout.splitlines()
    assert followed.code == 0 and len(lines) == 2, followed
    assert "Warning: rank 2 hangs outside communication" in lines[0] and lines[1].endswith("  over"), lines
    assert home.call("c4d", home.job()).stdout.startswith("Nothing is found now.")
    assert record_folders(home) == []


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
@needs("net", "mount", "uts")
@needs_mpi
def test_who_is_stopped_in_a_collective_costs_its_node_and_the_job_ends_elsewhere(tmp_path, library):
    story = tell(tmp_path, "mpi_hosts.py", "stops_in_a_collective", library, together(library),
                 kinds=["net", "mount", "uts"])
    assert (story["fault"], story["node"], story["isolated"], story["mpi_rank"]) == ("RankCommHang", "node-2", True, 2)
    assert story["nodes"]["worker-1"] == "node-3" and story["stacks"], story
    assert story["found"] == [["Warning", "RankCommHang", [2], "node-2"], ["Error", "RankCommHang", [2], "node-2"]]


@needs_mpi
@for_each_library
def test_where_all_are_silent_c4d_says_who_it_is(home, library, tmp_path):
    finished = home.run(*ON, SOON, "--job-hang-interval", 12,
                        *mpi(library, 30, 0.02, "sleep", 1, 10, 3600, tmp_path / "mark", ranks=2), env=ENVIRONMENT,
                        timeout=120)
    assert finished.code == 0, finished
    record, = home.records()
    assert record["error_source"] == "hang" and record["stacks"], record
    assert record["details"][0]["mpi_rank"] == 1, record
    decision = home.explain()[0]
    assert any(reason.startswith("C4D, Warning: rank 1 hangs outside communication") for reason in decision["reasons"])


@needs_mpi
@for_each_library
def test_who_computes_for_longer_is_known_to_be_slow_and_nobody_is_told_unasked(home, library, tmp_path):
    running = home.start("run", *ON, "--c4d-common-envs=C4D_CONN_BW_CHECK_PERIOD=2",
                         *mpi(library, 2000, 0.02, "slow", 1, 100, 0.05, tmp_path / "mark", ranks=2), env=ENVIRONMENT)
    verdict = who_computes_slowly(home)
    assert (verdict["level"], verdict["ranks"]) == ("Info", [1])
    assert "came last, and alone, to" in verdict["evidence"][0], verdict
    assert "Info: rank 1 is slow outside communication (RankNonCommSlow)" in home.call("c4d", home.job()).stdout
    assert told(home) == [], "Warning and worse is what is told"
    running.signal(signal.SIGINT)
    assert running.wait(30).code == 130


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
@needs("net", "mount", "uts")
@needs_mpi
def test_a_link_that_becomes_slow_is_known_and_no_rank_is_said_to_compute_slowly(tmp_path, library):
    story = tell(tmp_path, "mpi_hosts.py", "gets_a_slow_link", library, together(library), "4", "40mbit",
                 kinds=["net", "mount", "uts"])
    assert {(verdict["kind"], verdict["level"]) for verdict in story["verdicts"]} == {("RankCommSlow", "Info")}, story
    assert all(verdict["is_group"] for verdict in story["verdicts"]), story


@needs_mpi
def test_a_slow_rank_is_told_where_that_is_asked_for_and_when_it_is_over(home, tmp_path):
    home.run(*ON, "--c4d-log-level=Info", "--c4d-common-envs=C4D_CONN_BW_CHECK_PERIOD=2",
             *mpi("openmpi", 1500, 0.01, "slow", 0, 0, 0.02, tmp_path / "mark", ranks=2), env=ENVIRONMENT, timeout=90)
    assert "rank-non-comm-slow" in told(home)


@needs_mpi
def test_a_killed_agent_and_a_killed_master_go_on_looking(home, tmp_path):
    library = "openmpi"
    running = home.start("run", *ON, SOON, *mpi(library, 250, 0.02, "sleep", 3, 10, 12, tmp_path / "mark"),
                         env=ENVIRONMENT)
    home.wait_for_output(running, "is process ", times=4)
    kill(next(iter(home.agent_pids().values())))
    wait_for(lambda: told(home) == ["rank-non-comm-hang"], "a verdict by the next agent")
    before = home.master_pid()
    kill(before)
    wait_for(lambda: home.master_pid() not in (None, before), "the next master")
    assert running.wait(60).code == 0
    assert told(home).count("rank-non-comm-hang") == 1, "nothing is told twice"


def test_without_hang_detection_it_has_no_effect_and_says_so(home):
    shown = home.run("--enable-c4d-hang-detection=True", "--", "/bin/sh", "-c", "echo in ${AIMASTER_C4D_DIR:-nothing}")
    assert shown.stdout == "in nothing\n"
    assert "--enable-c4d-hang-detection=True has no effect without --enable-job-hang-detection=True" in shown.stderr
    assert home.call("c4d", home.job()).stdout.startswith("C4D does not look at job ")


def test_a_program_that_nothing_looks_into_is_not_taken_for_a_healthy_one(home):
    running = home.start("run", *ON, "--", "sleep", "60")
    wait_for(lambda: home.list() and told(home), "that it is said", timeout=45)
    assert told(home) == ["no-probe-data"]
    verdict, = c4d(home)["verdicts"]
    assert verdict["level"] == "Warning" and "C4D sees nothing of this job" in verdict["text"]
    running.signal(signal.SIGINT)
    assert running.wait(30).code == 130


@needs_mpi
@for_each_library
def test_a_program_that_is_well_is_left_alone(home, library):
    finished = home.run(*ON, *mpi(library, 100, 0.03), env=ENVIRONMENT, timeout=60)
    assert finished.code == 0 and "met 100 times" in finished.stdout
    assert told(home) == [] and c4d(home)["findings"] == []
    assert home.call("c4d", home.job()).stdout.startswith("C4D has found nothing in job ")


def meets(*arguments):
    return ["--workers", 4, "--", PYTHON, ROOT / "tests" / "e2e" / "programs" / "meets.py", *arguments]


@needs_torch
def test_a_pytorch_program_that_knows_nothing_of_it_is_looked_into(home, tmp_path):
    running = home.start("run", *ON, SOON, *meets(100, "sleep", 2, 10, 90, tmp_path / "mark"))
    verdict, = wait_for(lambda: home.list() and c4d(home)["verdicts"], "a verdict", timeout=60)
    (tmp_path / "mark.enough").touch()
    assert (verdict["kind"], verdict["level"], verdict["ranks"]) == ("RankNonCommHang", "Warning", [2])
    finished = running.wait(60)
    assert finished.code == 0 and "met 100 times" in finished.stdout, finished
    assert told(home) == ["rank-non-comm-hang", "over"] and home.records() == []
    assert record_folders(home) == []


@needs_torch
@pytest.mark.skipif(not FULL, reason="takes half a minute, as its like with MPI does; AIMASTER_TEST_FULL=1 runs it")
def test_a_pytorch_rank_that_is_stopped_in_a_collective_costs_its_node(home, tmp_path):
    finished = home.run(*ON, "--c4d-common-envs=C4D_HANG_TIMEOUT=2,C4D_HANG_TIMES=2", "--job-hang-interval", 600,
                        "--local-nodes", 3, *meets(60, "stop", 2, 10, 0, tmp_path / "mark"), timeout=120)
    assert finished.code == 0, finished
    record, = home.records()
    assert (record["fault"], record["error_source"], record["isolated"]) == ("RankCommHang", "c4d", True), record
    assert record["instance_name"].endswith("-worker-2") and record["details"][0]["rank"] == 2, record
    assert record["node_name"] not in {one["node"] for one in home.workers()}, "it is left for another"
    assert told(home) == ["rank-comm-hang", "rank-comm-hang"]


@needs_torch
def test_a_pytorch_rank_that_computes_for_longer_is_known_to_be_slow(home):
    program = ROOT / "tests" / "e2e" / "programs" / "meets.py"
    running = home.start("run", *ON, "--c4d-common-envs=C4D_CONN_BW_CHECK_PERIOD=2", "--workers", 2, "--", PYTHON,
                         program, 100_000, "slow", 1, 0, 0.06)
    verdict = who_computes_slowly(home)
    assert (verdict["level"], verdict["ranks"]) == ("Info", [1])
    running.signal(signal.SIGINT)
    assert running.wait(30).code == 130


@needs("net", "mount", "uts")
@needs_torch
def test_a_slow_link_between_pytorch_ranks_is_known(tmp_path):
    story = tell(tmp_path, "mpi_hosts.py", "torch_gets_a_slow_link", PYTHON,
                 str(ROOT / "tests" / "e2e" / "programs" / "meets.py"), "4", "40mbit", kinds=["net", "mount", "uts"])
    assert {(verdict["kind"], verdict["level"]) for verdict in story["verdicts"]} == {("RankCommSlow", "Info")}, story


@needs_torch
def test_a_pytorch_program_may_be_left_alone(home):
    script = "import os; print(os.environ.get('PYTHONPATH', 'none'), 'AIMASTER_C4D_RECORDER' in os.environ)"
    program = ["--env", "PYTHONPATH=/mine", "--", PYTHON, "-c", script]
    assert home.run(*ON, "--env", "AIMASTER_C4D_TORCH=0", *program).stdout == "/mine False\n"
    finished = home.run(*ON, *program)
    assert finished.stdout.endswith("/aimaster/_preload:/mine True\n")
