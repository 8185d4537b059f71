"""A person at the keyboard: Ctrl-C once, Ctrl-C twice, a closed terminal, a signal for the training itself."""
import os
import pty
import select
import signal
import time

import pytest

from harness import AIMASTER, WORKER, wait_for


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_stops_the_job_cleanly(home, number, code):
    running = home.start("run", "--workers", 2, "--", *WORKER, "--steps", 600)
    home.wait_for_ranks(2)
    running.signal(number)
    assert running.wait(15).code == code
    state = home.get()
    assert state["status"] == "Stopped"
    assert {one["status"] for one in home.workers()} == {"Stopped"}
    assert home.rank_processes() == {}


def test_the_second_ctrl_c_does_not_wait_for_the_grace(home):
    running = home.start("run", "--stop-grace", 60, "--", *WORKER, "--steps", 600, "--ignore-sigterm")
    home.wait_for_output(running, "starts at step")
    running.signal(signal.SIGINT)
    home.wait_for_status("Stopping")
    time.sleep(0.3)
    assert running.process.poll() is None, "the first one waits for the grace"
    running.signal(signal.SIGINT)
    finished = running.wait(15)
    assert finished.code == 130, finished
    assert home.get()["status"] == "Stopped"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("delay", [0.02, 0.05, 0.07, 0.1, 0.15])
def test_who_is_impatient_from_the_start_leaves_no_job_behind(home, number, delay):
    """Three signals before the job's master has begun to listen."""
    running = home.start("run", "--name", "hasty", "--", "/bin/sleep", 30)
    wait_for(home.list, "the job", every=0.001)
    time.sleep(delay)
    for _ in range(3):
        running.signal(number)
        time.sleep(0.02)
    finished = running.wait(15)
    assert finished.code == 128 + number, finished
    home.wait_for_status("Stopped", timeout=15)
    assert home.rank_processes() == {}


def test_a_closed_terminal_leaves_the_job_running_and_attach_comes_back(home):
    running = home.start("run", "--workers", 2, "--", *WORKER, "--steps", 80, "--die-rank", 1, "--die-step", 79,
                         "--die-how", "exit7")
    ranks = home.wait_for_ranks(2)
    home.wait_for_status("Running")
    running.signal(signal.SIGHUP)
    running.wait(5)
    assert home.get()["status"] == "Running"
    attached = home.call("attach", home.job(), timeout=30)
    assert attached.code == 7, attached
    assert home.get()["status"] == "Failed"
    assert len(ranks) == 2


def test_a_killed_run_leaves_the_job_running_and_attach_comes_back(home):
    running = home.start("run", "--", *WORKER, "--steps", 80)
    home.wait_for_ranks(1)
    running.signal(signal.SIGKILL)
    running.process.wait()
    attached = home.start("attach", home.job())
    finished = attached.wait(30)
    assert finished.code == 0, finished
    assert home.get()["status"] == "Succeeded"


def test_ctrl_c_in_attach_stops_the_job(home):
    assert home.run("--detach", "--", *WORKER, "--steps", 600).code == 0
    home.wait_for_ranks(1)
    attached = home.start("attach", home.job())
    wait_for(lambda: attached.stdout or attached.stderr, "attach to follow")
    attached.signal(signal.SIGINT)
    assert attached.wait(15).code == 130
    assert home.get()["status"] == "Stopped"


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2"])
def test_user_signals_go_on_to_every_rank(home, name):
    running = home.start("run", "--workers", 2, "--tee", "all", "--", *WORKER, "--steps", 15)
    home.wait_for_output(running, "starts at step", times=2)
    running.signal(getattr(signal, name))
    finished = running.wait()
    assert finished.code == 0, finished
    for rank in (0, 1):
        assert f"rank {rank} got {name}" in finished.stdout, finished


def test_stop_waits_until_the_job_is_stopped(home):
    running = home.start("run", "--workers", 2, "--", *WORKER, "--steps", 600)
    home.wait_for_ranks(2)
    stopped = home.call("stop", home.job(), timeout=20)
    assert stopped.code == 0, stopped
    assert home.get()["status"] == "Stopped"
    assert home.rank_processes() == {}
    assert running.wait(10).code != 0
    assert "stop" in home.get()["reason_message"].lower()


def test_stop_now_does_not_wait_for_the_grace(home):
    home.run("--detach", "--stop-grace", 60, "--", *WORKER, "--steps", 600, "--ignore-sigterm")
    job = home.job()
    wait_for(lambda: "starts at step" in home.call("logs", job).stdout, "the rank to ignore signals")
    began = time.monotonic()
    assert home.call("stop", "--now", home.job(), timeout=20).code == 0
    assert time.monotonic() - began < 15
    assert home.get()["status"] == "Stopped"


def test_stopping_an_ended_job_says_so(home):
    assert home.run("--", "/bin/true").code == 0
    finished = home.call("stop", home.job())
    assert "Succeeded" in finished.stdout + finished.stderr, finished
    assert home.get()["status"] == "Succeeded"


def test_a_wrapper_shell_is_no_hiding_place(home):
    """SIGTERM reaches the program behind a shell that does not pass signals on."""
    running = home.start("run", "--stop-grace", 5, "--", "/bin/sh", "-c", " ".join(WORKER) + " --steps 600; true")
    home.wait_for_ranks(1)
    running.signal(signal.SIGINT)
    assert running.wait(15).code == 130
    wait_for(lambda: not home.leftovers(), "no process to be left", timeout=5)


class Terminal:
    """`aimaster run` on a terminal of its own, as a person has it."""

    def __init__(self, home, *arguments):
        self.text = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(home.folder)
            environment = {name: value for name, value in home.environment.items() if name != "NO_COLOR"}
            os.execve(AIMASTER, [AIMASTER, *map(str, arguments)], {**environment, "TERM": "xterm-256color"})

    def read_until(self, condition, what, timeout=30):
        deadline = time.monotonic() + timeout
        while not condition(self.text):
            assert time.monotonic() < deadline, f"no {what} in: {self.text[-3000:]!r}"
            if select.select([self.terminal], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.terminal, 65536)
                except OSError:  # the other side is closed
                    return

    def press(self, key):
        os.write(self.terminal, key)

    def wait(self):
        self.read_until(lambda text: False, "end", timeout=30)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.terminal)
        return code


def test_a_terminal_shows_a_status_line_and_a_summary(home):
    terminal = Terminal(home, "run", "--workers", "2", "--enable-job-restart=True", "--stop-grace", "1", "--", *WORKER,
                        "--steps", 5, "--die-rank", 1, "--die-how", "sigkill")
    code = terminal.wait()
    assert code == 0, terminal.text
    assert b"\x1b[" in terminal.text, "colour and a line that is drawn again"
    shown = terminal.text.decode()
    assert "Running" in shown and "Succeeded" in shown
    assert "explain" in shown, "the summary says how to learn more"


def test_ctrl_c_on_a_terminal(home):
    terminal = Terminal(home, "run", "--", *WORKER, "--steps", 600)
    terminal.read_until(lambda text: b"rank 0 step 2" in text, "output of rank 0")
    terminal.press(b"\x03")
    assert terminal.wait() == 130, terminal.text
    assert home.get()["status"] == "Stopped"


def test_a_terminal_that_is_closed_leaves_the_job_running(home):
    terminal = Terminal(home, "run", "--", *WORKER, "--steps", 80)
    terminal.read_until(lambda text: b"rank 0 step 2" in text, "output of rank 0")
    os.close(terminal.terminal)
    os.waitpid(terminal.pid, 0)
    assert home.get()["status"] == "Running"
    assert home.call("attach", home.job()).code == 0


def test_output_in_a_pipe_is_plain(home):
    finished = home.run("--workers", 2, "--", *WORKER, "--steps", 2)
    assert "\x1b" not in finished.stdout + finished.stderr and "\r" not in finished.stderr, finished
