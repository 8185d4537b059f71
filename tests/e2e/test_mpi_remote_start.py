"""The remote start of MPI by itself: aimaster-mpi in mpirun's place, and a station of the job on another loopback
address."""
import contextlib
import os
import re
import signal
import socket
import subprocess
import time

import pytest

from harness import BIN, is_alive, wait_for

PROGRAM = str(BIN / "aimaster-mpi")


class Job:
    """One station, and calls to it, as the agents of a job set them up."""

    def __init__(self, home, folder, host):
        self.home, self.folder, self.host = home, folder, host
        self.token = folder / "token"
        self.token.write_text("a-job's-secret\n")
        with subprocess.Popen([PROGRAM], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            pass  # it is there, or the tests say so at once
        self.port = free_port(host)
        self.out, self.err = folder / "station.out", folder / "station.err"
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.station = subprocess.Popen([PROGRAM, "--station"], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            env=self.environment(AIMASTER_MPI_ADDRESS=host))
        wait_for(lambda: "waiting on" in self.out.read_text(), "the station to listen")

    def environment(self, **more):
        return {**self.home.environment, "AIMASTER_MPI_TOKEN_FILE": str(self.token),
                "AIMASTER_MPI_PORT": str(self.port),
                "AIMASTER_MPI_STATIONS": self.host, "MASTER_ADDR": "192.0.2.1", **more}

    def start(self, *command, host=None, **more):
        return subprocess.Popen([PROGRAM, host or self.host, *command], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=self.environment(**more))

    def call(self, *command, **more):
        process = self.start(*command, **more)
        out, err = process.communicate(timeout=30)
        return process.returncode, out, err

    def end(self):
        self.station.kill()
        self.station.wait()


def free_port(host):
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


@pytest.fixture
def job(home, tmp_path):
    made = Job(home, tmp_path, f"127.0.{os.getpid() % 250}.9")
    yield made
    made.end()


def test_the_words_of_the_call_are_one_line_for_a_shell(job):
    assert job.call("VALUE=1;", "export VALUE;", '"/bin/echo"', "$VALUE", "'a  b'") == (0, "1 a  b\n", "")


def test_output_errors_and_exit_code_come_back(job):
    assert job.call("echo out; echo err >&2; exit 7") == (7, "out\n", "err\n")


def test_much_output_comes_back_whole(job):
    code, out, _ = job.call("i=0; while [ $i -lt 40000 ]; do echo line $i of many lines; i=$((i+1)); done")
    assert code == 0 and out == "".join(f"line {i} of many lines\n" for i in range(40000))


def test_calls_go_side_by_side(job):
    first = job.start(f"while [ ! -e {job.folder}/second ]; do sleep 0.01; done; echo first")
    assert job.call(f"touch {job.folder}/second; echo second") == (0, "second\n", "")
    assert first.communicate(timeout=30)[0] == "first\n"


def test_a_caller_that_is_killed_takes_the_daemon_along(job):
    call = job.start("echo $$; trap '' TERM; while :; do sleep 0.1; done")
    pid = int(call.stdout.readline())
    call.kill()
    call.wait()
    wait_for(lambda: not is_alive(pid), "the daemon to be gone", timeout=20)
    assert job.call("echo goes on")[1] == "goes on\n"


def test_a_signal_is_passed_on(job):
    call = job.start("trap 'echo heard; exit 3' TERM; echo up; while :; do sleep 0.01; done")
    assert call.stdout.readline() == "up\n"
    call.send_signal(signal.SIGTERM)
    assert call.communicate(timeout=30)[0] == "heard\n" and call.returncode == 3
    assert job.station.poll() is None


def test_a_daemon_that_somebody_kills_ends_the_station(job):
    code, _, _ = job.call("kill -9 $$")
    assert code == 137
    assert job.station.wait(20) == 137
    assert "was killed by signal 9" in job.err.read_text()


def test_who_does_not_know_the_token_gets_nothing_done(job):
    wrong = job.folder / "wrong"
    wrong.write_text("another job's secret\n")
    code, out, err = job.call(f"touch {job.folder}/done", AIMASTER_MPI_TOKEN_FILE=str(wrong))
    assert code == 255 and out == "" and "lost" in err
    assert not (job.folder / "done").exists()
    assert job.call("echo still here") == (0, "still here\n", "")


def test_somebody_who_speaks_no_tls_gets_nothing_done(job):
    with socket.create_connection((job.host, job.port)) as stranger:
        stranger.sendall(b"\x01\x00\x00\x00\x05touch")
        stranger.settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            assert len(stranger.recv(100)) < 20  # an alert, if anything
    assert job.call("echo still here") == (0, "still here\n", "")


def test_a_host_of_no_worker_is_refused_with_the_names_of_those_there_are(job):
    code, out, err = job.call("true", host="gpu-17")
    assert code == 255 and out == ""
    assert re.search(r"^aimaster-mpi: 'gpu-17' is no host of this job, which has 192.0.2.1, 127\.0\.\d+\.9; ", err), err


def test_a_call_waits_for_a_station_that_comes_later(home, tmp_path):
    job = Job(home, tmp_path, f"127.0.{os.getpid() % 250}.10")
    job.end()
    call = job.start("echo there")
    time.sleep(0.3)
    again = subprocess.Popen([PROGRAM, "--station"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             env=job.environment(AIMASTER_MPI_ADDRESS=job.host))
    try:
        assert call.communicate(timeout=30)[0] == "there\n"
    finally:
        again.kill()
        again.wait()


def test_a_port_that_is_taken_is_said_in_the_systems_words(job):
    second = subprocess.run([PROGRAM, "--station"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=20,
                            env=job.environment(AIMASTER_MPI_ADDRESS=job.host))
    assert second.returncode == 1
    assert f"cannot listen on {job.host} port {job.port}: Address already in use" in second.stderr


def test_on_its_own_host_the_daemon_is_the_callers_own_process(job):
    code, out, _ = job.call("echo $$ $PPID", host="localhost")
    assert code == 0 and int(out.split()[1]) == os.getpid()
