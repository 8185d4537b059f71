"""aimaster exec: a command beside an instance."""
import os
import pty
import signal
import subprocess

from harness import AIMASTER, is_alive, kill, one_line_error, python, wait_for

SLEEPS = python("import os, time\nprint('UP', os.environ['RANK'], flush=True)\n"
                "while not os.path.exists('go'): time.sleep(0.02)")


def start(home, *flags, ranks=2):
    running = home.start("run", "--tee", "all", "--workers", 2, "--stop-grace", 1, "--workdir", home.folder, *flags,
                         "--", *SLEEPS)
    job = home.job_of(running)
    home.wait_for_output(running, "UP ", times=ranks)
    home.wait_for_status("Running", job)
    return running, job


def finish(home, running):
    (home.folder / "go").touch()
    finished = running.wait()
    assert finished.code == 0, finished


def test_it_has_the_environment_and_directory_of_a_rank_and_its_own_exit_code(home):
    running, job = start(home, "--name", "night-run", "--env", "COLOUR=blue")
    script = "echo $RANK $AIMASTER_INSTANCE $COLOUR; pwd; exit 7"
    finished = home.call("exec", "night-run-worker-1", "--", "sh", "-c", script, cwd="/")
    assert (finished.code, finished.stdout) == (7, f"1 {job}-worker-1 blue\n{home.folder}\n"), finished
    assert home.call("exec", f"{job[:12]}-worker-0", "--", "sh", "-c", "kill -9 $$").code == 137
    finish(home, running)
    assert (home.get(job)["restarts"], home.records(job)) == (0, []), "what the command did is nothing of the job's"


def test_of_several_ranks_one_can_be_chosen(home):
    running, job = start(home, "--nproc-per-node", 2, ranks=4)
    assert home.call("exec", f"{job}-worker-1", "--", "printenv", "RANK").stdout == "2\n"
    assert home.call("exec", "--rank", 3, f"{job}-worker-1", "--", "printenv", "RANK").stdout == "3\n"
    finished = home.call("exec", "--rank", 1, f"{job}-worker-1", "--", "true")
    one_line_error(finished, "no rank 1", "2 to 3")
    finish(home, running)


def test_what_comes_in_goes_to_the_command_and_a_terminal_stays_one(home):
    running, job = start(home)
    command = [AIMASTER, "exec", f"{job}-worker-0", "--"]
    given = subprocess.run([*command, "tr", "a-z", "A-Z"], input=b"hello", capture_output=True, env=home.environment,
                           check=True)
    assert given.stdout == b"HELLO"
    ours, theirs = pty.openpty()
    asked = subprocess.run([*command, "sh", "-c", "test -t 0 && test -t 1 && echo a terminal"], stdin=theirs,
                           stdout=theirs, env=home.environment, check=False)
    assert asked.returncode == 0
    assert os.read(ours, 100) == b"a terminal\r\n"
    os.close(ours)
    os.close(theirs)
    finish(home, running)


def test_signals_reach_the_command(home):
    running, job = start(home)
    beside = home.start("exec", f"{job}-worker-0", "--", "sh", "-c",
                        "trap 'echo got USR1' USR1; trap 'echo got TERM; exit 9' TERM; echo READY\n"
                        "while :; do sleep 0.05; done")
    home.wait_for_output(beside, "READY")
    beside.signal(signal.SIGUSR1)
    home.wait_for_output(beside, "got USR1")
    beside.signal(signal.SIGTERM)
    assert beside.wait().code == 9
    finish(home, running)


def test_it_ends_with_the_attempt_and_leaves_nothing(home):
    running, job = start(home, "--enable-job-restart=True")
    beside = home.start("exec", f"{job}-worker-0", "--", "sh", "-c",
                        "setsid sleep 600 & echo CHILD $!; trap '' TERM; echo READY; while :; do sleep 0.1; done")
    home.wait_for_output(beside, "READY")
    child = int(beside.stdout.split("CHILD ")[1].split()[0])
    kill(home.rank_processes(job)[1])
    finished = beside.wait(20)
    assert finished.code == 137, finished
    assert f"attempt 0 of {job}-worker-0 has ended, and the command with it" in finished.stderr
    wait_for(lambda: not is_alive(child), "its child to be gone", 5)
    home.wait_for_output(running, "UP ", times=4)
    finish(home, running)


def test_what_it_left_in_the_background_ends_with_it(home):
    running, job = start(home)
    finished = home.call("exec", f"{job}-worker-0", "--", "sh", "-c", "setsid sleep 600 & echo $!")
    assert finished.code == 0
    assert not is_alive(int(finished.stdout))
    finish(home, running)


def test_errors_say_what_and_what_to_do(home):
    running, job = start(home, "--name", "named")
    one_line_error(home.call("exec", "worker", "--", "true"), "'worker'", "JOB-ROLE-INDEX")
    one_line_error(home.call("exec", "nothing-worker-0", "--", "true"), "nothing")
    one_line_error(home.call("exec", "named-worker-9", "--", "true"), "worker-9", f"aimaster get {job}")
    one_line_error(home.call("exec", "named-aimaster-0", "--", "true"), "the job's master")
    missing = home.call("exec", "named-worker-0", "--", "no-such-program")
    one_line_error(missing, "no-such-program", "No such file")
    assert missing.code == 127
    assert home.call("exec", "named-worker-0").code == 2, "a command is missing"
    listed = home.call("list", "--instances").stdout.split()
    assert listed == [f"{job}-worker-0", f"{job}-worker-1"]
    finish(home, running)
    one_line_error(home.call("exec", "named-worker-0", "--", "true"), "does not run now", "Succeeded")
    assert home.call("list", "--instances").stdout == ""
