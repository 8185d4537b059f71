"""Real trainings with TensorFlow: with parameter servers and with mirrored workers, and what becomes of them when they
fail.

TensorFlow is large, so it is not among the packages that the other tests need: tools/install_tensorflow.sh brings it.
Where it is not there these tests are left out. AIMASTER_TENSORFLOW_PYTHON names another interpreter that has it.
"""
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from harness import ROOT, Home, kill, wait_for

INSTALLED = Path(os.environ.get("AIMASTER_TENSORFLOW_PYTHON", ROOT / "build-tensorflow" / "bin" / "python"))
pytestmark = [pytest.mark.training, pytest.mark.tensorflow,
              pytest.mark.skipif(not INSTALLED.exists(), reason="no TensorFlow: tools/install_tensorflow.sh")]
EXAMPLES = ROOT / "examples" / "tensorflow"
MIRRORED, SERVED = ([str(INSTALLED), str(EXAMPLES / name)] for name in ("multi_worker.py", "parameter_server.py"))
SMALL = ["--steps", 30, "--limit", 2000, "--checkpoint-every", 5]
TF = ["--framework", "tensorflow", "--stop-grace", 2, "--tee", "all"]
RESTART = "--enable-job-restart=True"
TIMEOUT = 300


def mirrored(home, *flags, words=(), workers=2, **options):
    return home.run(*TF, "--workers", workers, *flags, "--", *MIRRORED, *SMALL, "--checkpoint-dir",
                    home.folder / "checkpoints", *words, timeout=TIMEOUT, **options)


def dies(how, task="worker:1", step=12):
    return ["--die-task", task, "--die-step", step, "--die-how", how]


def final_line(text):
    return re.findall(r"final .*$", text, re.MULTILINE)[-1]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("undisturbed"), "undisturbed-tensorflow")
    finished = mirrored(home)
    assert finished.code == 0, finished
    return final_line(finished.stdout)


# ---- mirrored workers: who loses one can't go on ----


@pytest.mark.parametrize("how, code", [("sigkill", 137), ("segfault", 139)])
def test_a_mirrored_worker_crashes_and_nothing_changes_in_the_result(home, undisturbed, how, code):
    finished = mirrored(home, RESTART, words=dies(how))
    assert finished.code == 0, finished
    assert "resumed at step 10" in finished.stdout
    assert final_line(finished.stdout) == undisturbed
    record, = home.records()
    assert (record["error_code"], record["result"], record["rank"]) == (code, "Restarted", 1), record


@pytest.mark.parametrize("how, code, message, fault", [
    ("exit7", 7, "worker:1 dies now", "ExitCode"),
    ("exception", 1, "RuntimeError: worker:1 was asked to fail before step 12", "UserException"),
    ("shape", 1, "InvalidArgumentError", "TensorFlowMisuse")])
def test_a_mirrored_worker_fails_by_a_mistake_and_its_peer_s_lost_connection_is_not_blamed(home, how, code, message,
                                                                                          fault):
    finished = mirrored(home, RESTART, words=dies(how))
    assert finished.code == code, finished
    state = home.get()
    assert message in state["reason_message"], state["reason_message"]
    assert state["reason_code"] == fault
    assert home.records() == []


def test_the_data_is_not_there(home):
    finished = mirrored(home, RESTART, words=["--data", "/nowhere"])
    assert finished.code == 1, finished
    assert "No such file or directory: '/nowhere/train-images-idx3-ubyte.gz'" in home.get()["reason_message"]
    assert home.records() == []


def test_a_port_that_somebody_else_took_is_no_failure_of_the_job(home):
    """Before worker 0 listens, another program does, on its port. All start again in place, with other ports."""
    steal = ("import json, os, socket, subprocess, sys\n"
             "config = json.loads(os.environ['TF_CONFIG'])\n"
             "if config['task']['index'] == 0 and os.environ['AIMASTER_ATTEMPT'] == '0':\n"
             "    thief = socket.socket()\n"
             "    thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
             "    thief.bind(('0.0.0.0', int(config['cluster']['worker'][0].rpartition(':')[2])))\n"
             "    thief.listen(1)\n"
             "    sys.exit(subprocess.call(sys.argv[1:]))\n"
             "os.execv(sys.argv[1], sys.argv[1:])\n")
    finished = home.run(*TF, "--workers", 2, "--", str(INSTALLED), "-c", steal, *MIRRORED, *SMALL, "--checkpoint-dir",
                        home.folder / "checkpoints", timeout=TIMEOUT)
    assert finished.code == 0, finished
    assert home.get()["restarts"] == 0
    assert [one["decision"] for one in home.explain()] == ["RetryStart", "Succeed"]


def test_a_chief_beside_mirrored_workers(home, undisturbed):
    finished = home.run(*TF, "--chief", 1, "--workers", 1, "--", *MIRRORED, *SMALL, "--checkpoint-dir",
                        home.folder / "checkpoints", timeout=TIMEOUT)
    assert finished.code == 0, finished
    assert final_line(finished.stdout) == undisturbed
    assert [(one["role"], one["status"]) for one in home.workers()] == [("chief", "Succeeded"), ("worker", "Succeeded")]


# ---- parameter servers ----


class Served:
    """A training with a chief, two workers and a ps, that goes on until it is told to end."""

    ROLES = ["--chief", 1, "--workers", 2, "--ps", 1]
    CHIEF, WORKERS, PS = 0, (1, 2), 3

    def __init__(self, home, *flags, steps=2000):
        self.home = home
        self.running = home.start("run", *TF, *self.ROLES, *flags, "--", *SERVED, "--steps", steps, "--limit", 2000,
                                  "--checkpoint-every", 5, "--step-seconds", 0.05, "--checkpoint-dir",
                                  home.folder / "checkpoints")
        self.job = home.job_of(self.running)

    def at_work(self, times=1):
        self.home.wait_for_output(self.running, "step 10/", times=times, timeout=TIMEOUT)
        return self.home.rank_processes(self.job)

    def last_step(self):
        return int(re.findall(r"step (\d+)/", self.running.stdout)[-1])

    def goes_on(self):
        before = self.last_step()
        wait_for(lambda: self.last_step() > before + 10, "further steps", TIMEOUT)

    def stop(self):
        assert self.home.call("stop", self.job).code == 0
        self.running.wait()


def test_a_served_training_is_done_when_its_chief_is(home):
    training = Served(home, steps=30)
    finished = training.running.wait(TIMEOUT)
    assert finished.code == 0, finished
    assert "final step=30" in finished.stdout
    assert [(one["role"], one["status"]) for one in home.workers()] == [
        ("chief", "Succeeded"), ("worker", "Stopped"), ("worker", "Stopped"), ("ps", "Stopped")]
    assert home.records() == []


@pytest.mark.parametrize("number, code", [(signal.SIGKILL, 137), (signal.SIGSEGV, 139), (signal.SIGTERM, 143)])
def test_a_worker_dies_and_comes_back_alone_at_the_same_address(home, number, code):
    training = Served(home, "--job-execution-mode=Async")
    before = training.at_work()
    worker = training.WORKERS[1]
    os.kill(before[worker], number)
    home.wait_for_output(training.running, "worker:1 serves at", times=2, timeout=TIMEOUT)
    training.goes_on()
    now = home.rank_processes(training.job)
    assert {rank: pid for rank, pid in now.items() if rank != worker} == {
        rank: pid for rank, pid in before.items() if rank != worker}, "the others run on"
    addresses = set(re.findall(r"worker:1 serves at (\S+)", training.running.stdout))
    assert len(addresses) == 1, addresses
    record, = home.records(training.job)
    assert (record["scope"], record["error_code"], record["rank"]) == ("instance", code, worker)
    training.stop()


@pytest.mark.parametrize("mode", ["Sync", "Async"])
def test_a_ps_dies_and_the_job_restarts_from_its_checkpoint(home, mode):
    training = Served(home, f"--job-execution-mode={mode}", RESTART)
    before = training.at_work()
    kill(before[training.PS])
    home.wait_for_output(training.running, "resumed at step", timeout=TIMEOUT)
    training.goes_on()
    assert not set(home.rank_processes(training.job).values()) & set(before.values())
    record, = home.records(training.job)
    assert (record["scope"], record["error_code"]) == ("job", 137)
    assert record["instance_name"].endswith("-ps-0"), "and not the chief, which lost its connection to it"
    training.stop()


def test_a_ps_dies_and_the_job_fails_where_it_may_not_restart(home):
    training = Served(home, "--job-execution-mode=Async")
    kill(training.at_work()[training.PS])
    finished = training.running.wait(TIMEOUT)
    assert finished.code == 137, finished
    assert "--enable-job-restart=False" in home.get()["reason_message"]


def test_a_chief_dies_and_takes_the_job_along(home):
    training = Served(home, "--job-execution-mode=Async", RESTART)
    kill(training.at_work()[training.CHIEF])
    home.wait_for_output(training.running, "resumed at step", timeout=TIMEOUT)
    record, = home.records(training.job)
    assert (record["scope"], record["error_code"]) == ("job", 137)
    assert record["instance_name"].endswith("-chief-0")
    training.stop()


def test_a_mistake_of_the_chief_ends_the_job(home):
    finished = home.run(*TF, *Served.ROLES, RESTART, "--", *SERVED, *SMALL, "--checkpoint-dir",
                        home.folder / "checkpoints", *dies("exception", task="chief:0"), timeout=TIMEOUT)
    assert finished.code == 1, finished
    assert "RuntimeError: chief:0 was asked to fail before step 12" in home.get()["reason_message"]
    assert home.records() == []


def test_an_evaluator_looks_on_and_is_stopped_in_the_end(home):
    watch = ("import json, os, sys, time\n"
             "task = json.loads(os.environ['TF_CONFIG'])['task']\n"
             "if task['type'] != 'evaluator': os.execv(sys.argv[1], sys.argv[1:])\n"
             "import numpy\n"
             "while True:\n"
             f"    path = {str(home.folder / 'checkpoints' / 'checkpoint.npz')!r}\n"
             "    if os.path.exists(path): print('EVALUATED', int(numpy.load(path)['step']), flush=True)\n"
             "    time.sleep(0.1)\n")
    finished = home.run(*TF, "--chief", 1, "--workers", 1, "--evaluator", 1, "--", str(INSTALLED), "-c", watch,
                        *MIRRORED, *SMALL, "--checkpoint-dir", home.folder / "checkpoints", timeout=TIMEOUT)
    assert finished.code == 0, finished
    assert "EVALUATED" in finished.stdout
    assert [(one["role"], one["status"]) for one in home.workers()] == [
        ("chief", "Succeeded"), ("worker", "Succeeded"), ("evaluator", "Stopped")]


def test_the_interpreter_has_tensorflow():
    said = subprocess.run([str(INSTALLED), "-c", "import tensorflow as tf; print(tf.__version__)"], capture_output=True,
                          text=True, timeout=TIMEOUT, check=True)
    assert re.match(r"\d+\.\d+", said.stdout)
