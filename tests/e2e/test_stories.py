"""What a person is told about a failure afterwards: the story, the grouped faults, the last words, in a terminal."""
import fcntl
import os
import pty
import re
import struct
import termios
from pathlib import Path

from harness import AIMASTER, PYTHON

RESTARTS = ["--enable-job-restart=True"]


def on_a_terminal(home, command, columns):
    """What a command shows on a terminal of so many columns, without colours."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(AIMASTER, [AIMASTER, *command], {**home.environment, "NO_COLOR": "1", "TERM": "xterm"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown = b""
    while True:
        try:
            more = os.read(terminal, 65536)
        except OSError:
            break
        if not more:
            break
        shown += more
    os.waitpid(pid, 0)
    os.close(terminal)
    return shown.decode()


TWO_BAD = """
import os, sys, time
rank, round_ = int(os.environ['RANK']), int(os.environ['AIMASTER_ROUND'])
print('up', flush=True)
time.sleep(0.2)
if round_ < 2 and rank == 1:
    def pour(): raise RuntimeError('CUDA error: uncorrectable ECC error encountered')
    pour()
if round_ < 2:
    time.sleep(0.3)
    sys.exit('RuntimeError: [pair.cc:598] Connection closed by peer')
"""


def test_details_of_all_records_are_grouped_by_fault_node_and_instance(home):
    """Rank 1 meets a broken device twice, on two nodes, and each time its peer loses the connection."""
    finished = home.run("--workers", 2, "--local-nodes", 3, *RESTARTS, "--stop-grace", 1, "--", PYTHON, "-c", TWO_BAD)
    assert finished.code == 0, finished
    job = home.job()
    for record in home.records():
        details = record["details"]
        assert len({detail["instance"] for detail in details}) == len(details), "one entry per failed instance"
        root = details[0]
        assert (root["root"], root["rank"], root["fault"]) == (True, 1, "GpuEccUncorrectable")
        assert root["isolated"] is record["isolated"] is True
        assert set(root) == {"node", "instance", "rank", "code", "fault", "message", "source", "root", "isolated"}
    faults = home.call("records", job, "--aggregate", "--json").json()
    broken = [fault for fault in faults if fault["fault"] == "GpuEccUncorrectable"]
    assert len(broken) == 2 and len({fault["node"] for fault in broken}) == 2, faults
    for fault in broken:
        assert set(fault) == {"fault", "node", "instance", "count", "roots", "consequences", "isolations", "ranks",
                              "codes", "sources", "message", "first_time", "last_time"}
        assert (fault["count"], fault["roots"], fault["consequences"], fault["isolations"]) == (1, 1, 0, 1)
        assert fault["instance"] == f"{job}-worker-1" and fault["ranks"] == [1] and fault["sources"] == ["log"]
    told = home.call("records", job, "--aggregate").stdout
    assert told.splitlines()[0].split()[:2] == ["FAULT", "NODE"] and told.count("GpuEccUncorrectable") == 2, told


def test_explain_tells_a_story(home):
    finished = home.run("--workers", 2, "--local-nodes", 3, *RESTARTS, "--stop-grace", 1, "--", PYTHON, "-c", TWO_BAD)
    assert finished.code == 0, finished
    job = home.job()
    told = home.call("explain", job).stdout
    first = told.split("\n\n")[1]
    line = re.search(r"told by +(.*)\n +(\S+):(\d+)\n", first)
    assert line and line[1] == "RuntimeError: CUDA error: uncorrectable ECC error encountered", told
    printed = Path(line[2]).read_text().splitlines()
    assert printed[int(line[3]) - 1] == line[1], "the place is that of the line"
    for part in (r"Restart: restart 1 of at most 3", r"first +rank 1: exit code 1", r"where +worker-1 on node-\d",
                 r"rule +GpuEccUncorrectable \(hardware, retryable\): A GPU's memory", r"advice +Drain the node",
                 r"limits +retryable by --fault-tolerant-policy", r"node node-\d is suspect and is isolated"):
        assert re.search(part, first), f"{part!r} is not in\n{first}"


def test_who_only_followed_is_told_together(home):
    code = ("import os, sys, time\nprint('up', flush=True)\n"
            "if os.environ['RANK'] == '2': sys.exit('KeyError: 1x')\n"
            "time.sleep(0.05); sys.exit('RuntimeError: [pair.cc:598] Connection closed by peer')")
    home.run("--workers", 5, "--stop-grace", 1, "--", PYTHON, "-c", code)
    told = home.call("explain", home.job()).stdout
    assert re.search(r"followed +ranks 0-1, 3-4: RuntimeError: \[pair.cc:598\] Connection closed by peer", told), told


def test_the_summary_shows_the_traceback_of_the_rank_that_failed(home):
    code = ("import os\ndef pour(): raise KeyError('flour')\nif os.environ['RANK'] == '1': pour()\n"
            "import time; time.sleep(9)")
    finished = home.run("--workers", 2, "--stop-grace", 1, "--", PYTHON, "-c", code)
    assert finished.code == 1, finished
    shown = finished.stderr
    assert re.search(r"aimaster: rank 1 said last \(\S+rank0\.err:\d+\):", shown), shown
    assert "aimaster:   Traceback (most recent call last):" in shown and "aimaster:   KeyError: 'flour'" in shown
    teed = home.run("--tee", "all", "--workers", 2, "--stop-grace", 1, "--", PYTHON, "-c", code)
    assert "said last" not in teed.stderr, "it was shown when it was printed"


def test_tables_fit_into_a_terminal_of_80_columns(home):
    finished = home.run("--workers", 2, "--local-nodes", 3, *RESTARTS, "--stop-grace", 1, "--", PYTHON, "-c", TWO_BAD)
    assert finished.code == 0, finished
    job = home.job()
    for command in (["list"], ["get", job], ["records", job], ["records", "--aggregate", job], ["explain", job]):
        shown = on_a_terminal(home, command, columns=80)
        # Sentences about nodes are whole, and the terminal wraps them.
        too_long = [line for line in shown.splitlines()
                    if len(line) > 80 and "/" not in line and not line.startswith("node node-")]
        assert not too_long, (command, too_long)
        assert not too_long, f"{command}\n{shown}"
