"""What `aimaster run` exits with: 0, or what the root cause ended with, as a shell would say it."""
import pytest

from harness import WORKER, one_line_error, python, shell

RESTARTS = ["--enable-job-restart=True", "--stop-grace", "1"]


def test_success_is_0(home):
    finished = home.run("--workers", 2, "--", *WORKER, "--steps", 1)
    assert finished.code == 0, finished
    assert home.get()["status"] == "Succeeded"
    assert home.records() == []


@pytest.mark.parametrize("how, code, signal", [
    ("exit7", 7, None),
    ("segfault", 139, 11),
    ("sigkill", 137, 9),
    ("abort", 134, 6),
    ("exception", 1, None),
])
def test_the_root_causes_status_when_no_restart_is_allowed(home, how, code, signal):
    finished = home.run("--workers", 2, "--stop-grace", 1, "--", *WORKER, "--die-rank", 1, "--die-how", how)
    assert finished.code == code, finished
    state = home.get()
    assert (state["status"], state["restarts"]) == ("Failed", 0)
    failed = [one for one in home.workers() if one["name"].endswith("-worker-1")]
    assert [(one["status"], one["exit_code"], one["signal"]) for one in failed] == [("Failed", code, signal)]
    assert home.records() == []


def test_a_restart_makes_a_killed_rank_no_failure(home):
    finished = home.run("--workers", 2, *RESTARTS, "--", *WORKER, "--steps", 3, "--die-rank", 0, "--die-how", "sigkill")
    assert finished.code == 0, finished
    state = home.get()
    assert (state["status"], state["restarts"], state["round"]) == ("Succeeded", 1, 1)


def test_the_command_is_run_as_given_and_never_through_a_shell(home):
    finished = home.run("--", "/usr/bin/printf", "%s|", "a b", "$HOME", "*", "", "--workers")
    assert (finished.code, finished.stdout) == (0, "a b|$HOME|*||--workers|"), finished


def test_ranks_read_nothing_from_our_standard_input(home):
    finished = home.run("--", *shell("cat; echo end of input"))
    assert (finished.code, finished.stdout) == (0, "end of input\n"), finished


def test_an_instance_of_several_ranks_fails_with_one_of_them(home):
    finished = home.run("--workers", 2, "--nproc-per-node", 2, "--stop-grace", 1, "--", *WORKER, "--steps", 600,
                        "--die-rank", 3, "--die-how", "exit5")
    assert finished.code == 5, finished
    assert {one["index"]: (one["status"], one["exit_code"]) for one in home.workers()} == {
        0: ("Stopped", 143), 1: ("Failed", 5)}


def test_output_printed_in_the_last_moment_is_shown(home):
    finished = home.run("--", *python("import os; os.write(1, b'last words'); os._exit(4)"))
    assert (finished.code, finished.stdout) == (4, "last words"), finished


def test_attaching_to_an_ended_job_tells_its_exit_code(home):
    assert home.run("--", *shell("exit 6")).code == 6
    assert home.call("attach", home.job()).code == 6
    assert home.call("resume", home.job()).code == 6


def test_an_unknown_job_is_one_line(home):
    for command in ("get", "attach", "resume", "stop", "logs", "rounds", "records", "explain"):
        finished = home.call(command, "dlc0000000000000")
        assert finished.code == 1, finished
        one_line_error(finished, "dlc0000000000000")
