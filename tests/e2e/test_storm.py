"""A thousand ranks fail at once, each with a megabyte of text: the one that began is found, and nobody's memory is
exhausted."""
import os
import re
import time
from pathlib import Path

import pytest

from harness import FULL, wait_for

pytestmark = pytest.mark.alone

RANKS = 1000 if FULL else 400

# A rank writes its megabyte and waits at a pipe that nobody has opened yet, so that all of them fail together; rank 7
# fails first, for a reason of its own.
STORM = r"""
line="RuntimeError: the peer went away, all of its gradients with it, and this line is long enough to fill a page soon"
i=0
text=""
while [ $i -lt 10 ]; do text="$text$line
"; i=$((i + 1)); done
i=0
big=""
while [ $i -lt 10 ]; do big="$big$text"; i=$((i + 1)); done
i=0
while [ $i -lt 90 ]; do printf '%s' "$big" >&2; i=$((i + 1)); done
if [ "$RANK" = 7 ]; then
  : < "$STORM_GO"
  echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB' >&2
  exit 3
fi
echo up
: < "$STORM_FOLLOW"
exit 1
"""

# In the master: sixteen megabytes of program, libraries and heap at rest; what is kept of the failures
# (kEarliestBytesMax, and two kilobytes of each beyond it); and the inputs that arrived together, in a batch and in the
# frames that they came in, at most the same again twice.
MASTER_MAX_KB = 16 * 1024 + 3 * (8 * 1024 + 4 * RANKS)
AGENT_MAX_KB = 160 * 1024


def peak_kilobytes(pid):
    return int(re.search(r"^VmHWM:\s+(\d+)", Path("/proc", str(pid), "status").read_text(), re.MULTILINE)[1])


def test_a_storm_of_failures_has_one_cause_and_bounded_memory(home):
    go, follow = home.folder / "go", home.folder / "follow"
    os.mkfifo(go), os.mkfifo(follow)
    script = home.folder / "storm.sh"
    script.write_text(STORM)
    running = home.start("run", "--workers", str(RANKS), "--local-nodes", "4", "--name", "storm", "--stop-grace=2",
                         "--collect-window=5", "--start-timeout=600", "--tee=none", "--", "/bin/sh", str(script),
                         env={"STORM_GO": str(go), "STORM_FOLLOW": str(follow)})
    job = home.job()
    wait_for(lambda: home.get(job)["status"] == "Running", "all ranks to run", timeout=600, every=1)
    master, agents = home.master_pid(job), list(home.agent_pids(job).values())
    most = {pid: 0 for pid in (master, *agents)}

    def look():
        for pid in most:
            try:
                most[pid] = max(most[pid], peak_kilobytes(pid))
            except (OSError, TypeError):  # it is gone
                pass

    time.sleep(5)  # until most have written their megabyte
    look()
    at_rest = dict(most)
    os.close(os.open(go, os.O_WRONLY))
    # Dead, and not only heard: a busy machine may let it print, and others die before it comes to its exit.
    wait_for(lambda: '"code":3' in "".join(
        path.read_text() for path in home.directory(job).glob("nodes/*/*-worker-7/0/rank0.exit.json")),
        "the first failure", timeout=60)
    os.close(os.open(follow, os.O_WRONLY))
    began = time.monotonic()
    while running.process.poll() is None and time.monotonic() - began < 300:
        look()
        time.sleep(0.1)
    ended = running.wait(timeout=10)
    print(f"{RANKS} ranks: end {time.monotonic() - began:.1f} s after the storm; master {at_rest[master]} KB at rest, "
          f"{most[master]} KB at most; agents {[most[a] for a in agents]} KB")
    assert ended.code == 3, (ended, home.explain(job))
    (decision,) = [one for one in home.explain(job) if one["decision"] == "Fail"]
    assert re.search(r"rank 7\b", decision["reasons"][0]), decision
    assert "CUDA out of memory" in decision["summary"], decision
    assert most[master] < MASTER_MAX_KB, f"the master had {most[master]} KB, {MASTER_MAX_KB} are explained"
    assert max(most[agent] for agent in agents) < AGENT_MAX_KB, most
    journal = sum(path.stat().st_size for path in home.directory(job).glob("journal.db*"))
    assert journal < (16 + RANKS // 50) * 1024 * 1024, f"a journal of {journal} bytes"
