"""PyTorch trainings fail in the ways in which trainings fail: by workers alone, and with a master beside them.
Decision, record and exit code, each time."""
import os
import signal

import pytest

from harness import TRAIN, wait_for

pytestmark = pytest.mark.training
SMALL = ["--limit", "1024", "--epochs", "2", "--checkpoint-every", "4", "--test-limit", "100"]
RESTART = "--enable-job-restart=True"
WORKERS_ONLY = ["--workers", 2]
WITH_MASTER = ["--master", 1, "--workers", 1]


def train(home, *flags, words=()):
    return home.run(RESTART, "--stop-grace", 2, *flags, "--", *TRAIN, *SMALL, "--checkpoint-dir",
                    home.folder / "checkpoints", *words, timeout=180)


def dies(how, rank=1, step=10):
    return ["--die-rank", rank, "--die-step", step, "--die-how", how]


def restarted(home, finished, code, instance):
    """The job restarted once for this, and went on to its end from a checkpoint."""
    assert finished.code == 0, finished
    record, = home.records()
    assert (record["error_code"], record["result"], record["scope"]) == (code, "Restarted", "job"), record
    assert record["instance_name"].endswith(instance), record
    assert home.get()["restarts"] == 1
    assert "resumed at step 8" in finished.stdout
    assert "final step=32" in finished.stdout


def failed(home, finished, code, *parts):
    """The job ended at once, and says why."""
    assert finished.code == code, finished
    state = home.get()
    assert (state["status"], state["restarts"]) == ("Failed", 0)
    assert home.records() == []
    for part in parts:
        assert part in state["reason_message"], state["reason_message"]


@pytest.mark.parametrize("how, code", [("sigkill", 137), ("segfault", 139)])
def test_a_crash_of_a_worker(home, how, code):
    restarted(home, train(home, *WORKERS_ONLY, words=dies(how)), code, "-worker-1")


@pytest.mark.parametrize("how, code", [("sigkill", 137), ("segfault", 139)])
def test_a_crash_of_the_master(home, how, code):
    finished = train(home, *WITH_MASTER, words=dies(how, rank=0))
    restarted(home, finished, code, "-master-0")
    assert [one["role"] for one in home.workers()] == ["master", "worker"]


def test_a_crash_of_a_worker_beside_a_master(home):
    restarted(home, train(home, *WITH_MASTER, words=dies("sigkill")), 137, "-worker-0")


@pytest.mark.parametrize("roles, instance", [(WORKERS_ONLY, "worker-1"), (WITH_MASTER, "worker-0")])
def test_an_exit_code_of_the_program_s_own(home, roles, instance):
    failed(home, train(home, *roles, words=dies("exit7")), 7, "rank 1 dies now")
    assert home.explain()[-1]["reasons"][0].startswith("rank 1: exit code 7")


@pytest.mark.parametrize("rank", [0, 1])
def test_an_exception(home, rank):
    failed(home, train(home, *WORKERS_ONLY, words=dies("exception", rank=rank)), 1,
           f"RuntimeError: rank {rank} was asked to fail before step 10", "UserException")


def test_an_argument_that_all_ranks_misread(home):
    """Ranks on a busy machine read it seconds apart; the window closes as soon as all have ended."""
    flags = [*WORKERS_ONLY, "--collect-window", 30]
    failed(home, train(home, *flags, words=["--batch-size", "many"]), 2, "invalid int value: 'many'")
    assert any("no single rank is the cause" in reason for reason in home.explain()[-1]["reasons"])


def test_data_that_is_not_there(home):
    failed(home, train(home, *WORKERS_ONLY, words=["--data", "/nowhere"]), 1,
           "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/train-images-idx3-ubyte.gz'")


def test_too_little_data_for_so_many_ranks(home):
    failed(home, train(home, *WORKERS_ONLY, words=["--limit", 8]), 1, "8 images are too few for 2 ranks")


def test_a_checkpoint_that_is_damaged(home):
    (home.folder / "checkpoints").mkdir()
    (home.folder / "checkpoints" / "checkpoint-00000004.pt").write_bytes(b"PK\x03\x04 half of a file")
    failed(home, train(home, *WORKERS_ONLY), 1)
    assert home.get()["reason_code"] == "CheckpointDamaged"


def test_a_rank_that_somebody_else_asked_to_end(home):
    """SIGTERM, and not from us."""
    running = home.start("run", RESTART, "--workers", 2, "--stop-grace", 2, "--", *TRAIN, *SMALL, "--checkpoint-dir",
                         home.folder / "checkpoints", "--epochs", 40)
    job = home.job_of(running)
    home.wait_for_output(running, "step 10/", timeout=120)
    os.kill(home.rank_processes(job)[1], signal.SIGTERM)
    record = wait_for(lambda: (found := home.records(job)) and found[0], "the restart to be decided")
    assert (record["error_code"], record["rank"]) == (143, 1)
    home.wait_for_output(running, "resumed at step", timeout=120)
    assert home.call("stop", job).code == 0
    running.wait()


def test_in_an_async_job_a_master_can_not_be_restarted_alone(home):
    finished = home.run("--job-execution-mode=Async", *WITH_MASTER, "--stop-grace", 2, "--", *TRAIN, *SMALL,
                        "--checkpoint-dir", home.folder / "checkpoints", *dies("sigkill", rank=0), timeout=180)
    assert finished.code == 137, finished
    assert "--enable-job-restart=False" in home.get()["reason_message"]
    assert any("a master can't be restarted alone" in reason for reason in home.explain()[-1]["reasons"])
