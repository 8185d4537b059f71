"""The file system under a job turns read-only in mid-run, as Linux does after an error of the disk."""
import subprocess

import pytest

from harness import Home, kill, python, wait_for

PATIENT = python("import time\nwhile True: print('alive', flush=True); time.sleep(0.1)")


class Disk:
    """A real file system in a file, which can be told that its disk has failed."""

    def __init__(self, folder):
        self.image, self.folder = folder / "image", folder / "disk"
        self.folder.mkdir()
        with open(self.image, "wb") as image:
            image.truncate(64 << 20)
        made = subprocess.run(["mkfs.ext4", "-q", self.image], capture_output=True, text=True)
        if made.returncode != 0:
            pytest.skip(f"no ext4 here: {made.stderr.strip()}")
        self.mount()

    def mount(self):
        made = subprocess.run(["mount", "-o", "loop", self.image, self.folder], capture_output=True, text=True)
        if made.returncode != 0:
            pytest.skip(f"nothing can be mounted here: {made.stderr.strip()}")

    def fail(self):
        subprocess.run(["mount", "-o", "remount,abort", self.folder], check=True)
        with pytest.raises(OSError, match="Read-only"):
            (self.folder / "probe").write_text("")

    def unmount(self):
        subprocess.run(["umount", "-l", self.folder], check=False)


@pytest.fixture
def disk(tmp_path):
    disk = Disk(tmp_path)
    yield disk
    disk.unmount()  # what is open there stays until its process ends


def output_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("rank0.out"))


def start(home, disk, *flags):
    """A job whose directory is on the disk, and whose output is elsewhere; two ranks run."""
    there, output = Home(home.folder, home.marker, path=disk.folder / "home"), home.folder / "output"
    ran = there.run("--detach", "--workers", "2", "--log-dir", output, "--stop-grace=1", *flags, "--", *PATIENT)
    assert ran.code == 0, ran
    job = there.job()
    there.wait_for_ranks(2, job)
    there.wait_for_status("Running", job)
    return there, job, output


def end(there, job):
    """Nothing can be recorded any more, so ours wait for ever for somebody to set it right."""
    pids = [there.supervisor_pid(job), there.master_pid(job), *there.agent_pids(job).values()]
    for pid in pids:
        kill(pid)


def test_a_read_only_file_system_holds_up_decisions_but_not_the_training(home, disk):
    there, job, output = start(home, disk, "--enable-job-restart=True", "--fault-tolerant-policy=OnFailure")
    ranks = there.rank_processes(job)
    disk.fail()
    kill(ranks[1])
    wait_for(lambda: "Read-only file system" in there.get(job)["trouble"], "the trouble to be told")
    printed = output_of(output)
    wait_for(lambda: output_of(output) > printed, "the other rank to print on")
    assert there.rank_processes(job) == {0: ranks[0]}, "nothing is decided"
    assert there.records(job) == []
    there.call("stop", "--timeout", "5", job)
    assert not there.rank_processes(job)
    end(there, job)


def test_a_job_on_a_read_only_file_system_can_be_stopped(home, disk):
    there, job, _ = start(home, disk)
    disk.fail()
    stopped = there.call("stop", "--timeout", "10", job)
    assert not there.rank_processes(job), stopped
    assert stopped.code != 0 and "Read-only file system" in stopped.stderr, "it is not recorded, and that is said"
    end(there, job)
