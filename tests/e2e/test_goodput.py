"""How much of a real job's time counted: by the checkpoints that it told, or without any."""
from harness import ROOT, one_line_error, python

SDK = str(ROOT / "sdk" / "python")
FAILS_ONCE = """
import os, signal, sys, time
from aimaster import job_monitor as jm
print("up", flush=True)
if os.environ["AIMASTER_ROUND"] == "0":
    time.sleep(0.5)
    if sys.argv[1] == "saves": assert jm.report_checkpoint(10).ok()
    time.sleep(0.7)
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(0.5)
"""


def goodput_of(home, *arguments):
    home.environment["PYTHONPATH"] = SDK
    finished = home.run("--enable-job-restart=True", "--", *python(FAILS_ONCE), *arguments)
    assert finished.code == 0, finished
    measured = home.call("goodput", "--json", home.job()).json()
    lost = {one["cause"]: one for one in measured["lost"]}
    assert set(lost) == {"starting", "Sigkill"}
    assert abs(measured["productive_ms"] + sum(one["lost_ms"] for one in measured["lost"]) - measured["wall_ms"]) < 10
    return measured, lost["Sigkill"]


def test_what_ran_after_the_last_checkpoint_is_lost(home):
    measured, killed = goodput_of(home, "saves")
    assert measured["checkpoints_told"]
    assert killed["times"] == 1
    # The save and the death are each set right by what was known of the clocks then, to within some milliseconds.
    assert 680 <= killed["done_again_ms"] < 1200, measured
    assert killed["restarting_ms"] > 0
    assert 0.2 < measured["goodput"] < 0.8, measured
    assert [one["checkpoint_step"] for one in home.rounds()] == [10, None]
    text = home.call("goodput", home.job()).stdout
    assert text.startswith("goodput ") and "Sigkill" in text and "no checkpoint" not in text
    assert home.call("replay", home.job()).code == 0


def test_without_checkpoints_all_that_ran_counts_and_people_are_told_so(home):
    measured, killed = goodput_of(home, "saves nothing")
    assert not measured["checkpoints_told"]
    assert killed["done_again_ms"] == 0
    assert "no checkpoint was told" in home.call("goodput", home.job()).stdout


def test_a_job_that_is_not_there(home):
    one_line_error(home.call("goodput", "dlcnothing"), "dlcnothing")
