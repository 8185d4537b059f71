"""What people complain of with other launchers and no other file stages. docs/complaints.md has the whole list."""
import os
import signal
import time

from harness import kill, python, wait_for

RESTARTS = ["--enable-job-restart=True", "--fault-tolerant-policy=OnFailure", "--stop-grace", "1"]


def test_thirty_of_thirty_two_instances_die_at_once_and_come_back_together(home):
    running = home.start("run", "--workers", 32, "--tee", "all", *RESTARTS, "--", *python(
        "import os, time\nprint('UP', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.05)"))
    home.wait_for_output(running, "UP", times=32)
    for rank, pid in home.wait_for_ranks(32).items():
        if rank >= 2:
            kill(pid)
    began = time.monotonic()
    home.wait_for_output(running, "UP", times=64)
    assert time.monotonic() - began < 15
    (home.folder / "go").touch()
    assert running.wait().code == 0
    assert home.get()["restarts"] == 1


def test_a_checkpoint_that_takes_longer_than_the_default_grace_is_written(home):
    running = home.start("run", "--stop-grace", 40, "--", *python(
        "import os, signal, sys, time\n"
        "def save(number, frame):\n"
        "    time.sleep(11)\n"
        "    open('saved', 'w').close()\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "print('UP', flush=True)\n"
        "while True: time.sleep(1)\n"))
    home.wait_for_output(running, "UP")
    running.signal(signal.SIGTERM)
    finished = running.wait(40)
    assert finished.code == 143, finished
    assert os.path.exists(home.folder / "saved")
    for word in ("Traceback", "terminate called", "Error", "error"):
        assert word not in finished.stderr, finished


def test_an_agent_that_comes_and_goes_does_not_reset_the_count_of_restarts(home):
    running = home.start("run", "--tee", "all", *RESTARTS, "--max-num-of-job-restart=1", "--", *python(
        "import time\nprint('UP', flush=True)\ntime.sleep(600)"))
    job = home.job_of(running)
    for restart in range(2):
        home.wait_for_output(running, "UP", times=restart + 1)
        agent, = home.agent_pids(job).values()
        kill(agent)
        wait_for(lambda old=agent: list(home.agent_pids(job).values()) != [old], "another agent")
        kill(home.wait_for_ranks(1, job)[0])
    finished = running.wait()
    assert finished.code == 137, finished
    assert "--max-num-of-job-restart=1" in home.get(job)["reason_message"]


def test_half_a_checkpoint_ends_the_job_at_the_guard(home):
    """Round 0 writes half of it; every later one fails to read it, as early as it starts."""
    finished = home.run(*RESTARTS, "--no-progress-limit=3", "--max-num-of-job-restart=50", "--", *python(
        "import os, pickle\n"
        "if not os.path.exists('checkpoint'):\n"
        "    open('checkpoint', 'wb').write(pickle.dumps(list(range(1000)))[:500])\n"
        "    raise OSError(28, 'No space left on device')\n"
        "pickle.load(open('checkpoint', 'rb'))\n"))
    assert finished.code == 1, finished
    state = home.get()
    assert state["restarts"] <= 3
    assert "no progress" in state["reason_message"]
