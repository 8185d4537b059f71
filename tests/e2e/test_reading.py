"""What a rank printed is read while it runs: also a loud rank's telling line is found, whatever becomes of agents and
files."""
import os
import signal

from harness import python, wait_for

# Says what is wrong, prints steps until there are so many megabytes of them, waits where it is told to, and fails.
LOUD = """
import os, sys, time
err = lambda text: os.write(2, text.encode())
err("starting\\nRuntimeError: CUDA error: uncorrectable ECC error encountered\\n")
steps = "".join(f"iteration {n} | lm loss: 2.1E+00 | grad norm: 0.41 |\\n" for n in range(2000))
printed = 0
while printed < float(os.environ["MEGABYTES"]) * 1e6:
    err(steps)
    printed += len(steps)
    time.sleep(0.1)
go = os.environ.get("GO")
if go: open(go + ".ready", "w").close()
while go and not os.path.exists(go): time.sleep(0.01)
err("bye\\n")
sys.exit(1)
"""


def names_the_error(home):
    return any("GpuEccUncorrectable" in reason for decision in home.explain() for reason in decision["reasons"])


def test_a_loud_rank_said_it_seconds_before_its_death(home):
    finished = home.run("--", *python(LOUD), env={"MEGABYTES": "3"})
    assert finished.code == 1
    assert names_the_error(home), finished


def test_the_file_was_cut_before_the_death(home):
    cut = LOUD.replace('err("bye', 'os.truncate(2, 0); err("bye')
    assert home.run("--", *python(cut), env={"MEGABYTES": "0.2"}).code == 1
    assert names_the_error(home)


def test_a_new_agent_goes_on(home):
    go = home.folder / "go"
    running = home.start("run", "--", *python(LOUD), env={"MEGABYTES": "0.03", "GO": str(go)})
    wait_for(lambda: (home.folder / "go.ready").exists(), "the rank to have said all")
    before = home.agent_pids()
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: home.agent_pids() != before, "another agent")
    go.touch()
    assert running.wait().code == 1
    assert names_the_error(home)
