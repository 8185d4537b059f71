"""Ranks write straight into files: whatever reads those files late, or not at all, a rank never waits."""
import os
import re
import subprocess
import time

import pytest

from harness import AIMASTER, WORKER, Background, python, resident_kilobytes, shell, wait_for

MEGABYTES = 1024
WRITER = ("import os, time\n"
          "block = b'a line of sixty-three characters, so that a block is a megabyte\\n' * 16384\n"
          "began = time.monotonic()\n"
          f"for _ in range({MEGABYTES}): os.write(1, block)\n"
          "open('seconds', 'w').write(str(time.monotonic() - began))\n")


def seconds_without_us(folder):
    folder.mkdir()
    with open(folder / "out", "wb") as out:
        subprocess.run(python(WRITER), stdin=subprocess.DEVNULL, stdout=out, check=True, cwd=folder)
    (folder / "out").unlink()
    return float((folder / "seconds").read_text())


def test_a_rank_that_writes_a_gigabyte_is_not_slowed_and_our_memory_does_not_grow(home, tmp_path):
    """Whoever else uses the disk is no fault of ours, so a slow one is tried again, with a new look at how fast it is.
    A rank that waited for a reader would take many times longer each time."""
    for number in range(3):
        alone = seconds_without_us(tmp_path / f"alone{number}")
        if seconds_with_us(home, tmp_path) < 2 * alone + 1:
            return
    pytest.fail(f"slow three times; the last time alone it took {alone} s")


def seconds_with_us(home, tmp_path):
    (tmp_path / "seconds").unlink(missing_ok=True)
    running = home.start("run", "--tee", "none", "--workdir", tmp_path, "--", *python(WRITER + "time.sleep(1.5)"))
    job = home.job_of(running)
    home.wait_for_ranks(1, job)
    agents, master = home.agent_pids(job), home.master_pid(job)
    samples = {"agent": [], "master": []}
    while running.process.poll() is None:
        for name, pids in (("agent", agents.values()), ("master", [master])):
            try:
                samples[name] += [resident_kilobytes(pid) for pid in pids]
            except OSError:
                pass
        time.sleep(0.05)
    finished = running.wait()
    assert finished.code == 0, finished
    for name, sizes in samples.items():
        assert len(sizes) > 5
        assert max(sizes) - sizes[0] < 12 << 10, f"{name} grew: {sizes}"  # half of it are the rules' databases
    out = next(home.directory(job).glob("nodes/*/*/*/rank0.out"))
    assert out.stat().st_size == MEGABYTES << 20
    out.unlink()
    return float((tmp_path / "seconds").read_text())


def test_log_max_bytes_bounds_a_file_and_keeps_its_end(home, tmp_path):
    limit = 32 << 20
    writer = WRITER + "print('the last line')\ntime.sleep(2.5)"
    running = home.start("run", "--tee", "none", "--workdir", tmp_path, "--log-max-bytes", "32M", "--", *python(writer))
    wait_for(lambda: (tmp_path / "seconds").exists(), "the writer to be done", timeout=60)
    out = next(home.directory().glob("nodes/*/*/*/rank0.out"))
    wait_for(lambda: out.stat().st_blocks * 512 <= limit, "the file to be bounded", timeout=2.4)
    assert running.wait().code == 0
    assert out.stat().st_blocks * 512 <= limit
    logs = home.call("logs", home.job(), "--tail", 3)
    assert logs.code == 0 and "\0" not in logs.stdout
    assert logs.stdout.rstrip().endswith("the last line"), logs


def test_nobody_reads_what_run_prints_and_the_rank_ends_all_the_same(home):
    process = subprocess.Popen([AIMASTER, "run", "--", *WORKER, "--write-megabytes", "32", "--steps", "1"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=home.environment, cwd=home.folder)
    try:
        state = home.wait_for_status("Succeeded")
        assert state["exit_code"] == 0
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert len(out) > 32 << 20, "all of it is shown once somebody reads"
    finally:
        process.kill()


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_script_that_closed_a_standard_descriptor(home, closed):
    running = home.start("run", "--", "true", prefix=["/bin/sh", "-c", f'exec "$@" {closed}', "sh"])
    assert running.wait(30).code == 0


def test_tee_shows_rank_0_all_ranks_or_none(home):
    job = ["--workers", "2", "--", *python("import os; print('this is', os.environ['RANK'])")]
    assert home.run(*job).stdout == "this is 0\n"
    assert home.run("--tee", "none", *job).stdout == ""
    assert sorted(home.run("--tee", "all", *job).stdout.splitlines()) == ["[rank0] this is 0", "[rank1] this is 1"]


def test_the_streams_of_a_rank_stay_apart(home):
    finished = home.run("--", *shell("echo to-stdout; echo to-stderr >&2"))
    assert finished.stdout == "to-stdout\n", finished
    assert "to-stderr" in finished.stderr.splitlines()


def test_logs_select_instance_rank_and_round(home):
    code = "import os; print('rank', os.environ['RANK'], 'round', os.environ['AIMASTER_ROUND'], flush=True)\n" \
           "import time; time.sleep(0.2)\n" \
           "os._exit(1 if os.environ['AIMASTER_ROUND'] == '0' and os.environ['RANK'] == '1' else 0)"
    finished = home.run("--workers", 2, "--enable-job-restart=True", "--fault-tolerant-policy=OnFailure",
                        "--tee", "none", "--", *python(code))
    assert finished.code == 0, finished
    job = home.job()

    def shown(*selection):
        return sorted(re.findall(r"rank \d round \d", home.call("logs", job, *selection).stdout))

    assert shown("--rank", 1) == ["rank 1 round 1"]
    assert shown("--rank", 0, "--round", 0) == ["rank 0 round 0"]
    assert shown("--instance", f"{job}-worker-1") == ["rank 1 round 1"]
    assert shown() == ["rank 0 round 1", "rank 1 round 1"]
    assert home.call("logs", job, "--rank", 7).code == 1


def test_the_masters_own_log_is_an_instances_log(home):
    assert home.run("--", "/bin/true").code == 0
    finished = home.call("logs", home.job(), "--instance", f"{home.job()}-aimaster-0")
    assert finished.code == 0 and finished.stdout, finished


def test_logs_follow_until_the_job_ends(home):
    running = home.start("run", "--tee", "none", "--", *WORKER, "--steps", 8)
    home.wait_for_ranks(1)
    following = home.start("logs", "-f", home.job())
    assert running.wait().code == 0
    finished = following.wait(10)
    assert finished.code == 0 and "rank 0 step 8" in finished.stdout, finished


def test_a_log_directory_of_ones_own(home, tmp_path):
    assert home.run("--log-dir", tmp_path / "logs", "--", *shell("echo here")).code == 0
    files = [path for path in (tmp_path / "logs").rglob("*.out")]
    assert [path.read_text() for path in files] == ["here\n"]
    assert re.search(r"\bhere\b", home.call("logs", home.job()).stdout)


def test_bytes_are_kept_unchanged(home):
    data = bytes(range(256)) + b"\xff\xfe no newline at the end"
    running = Background(home, [AIMASTER, "run", "--", *python(f"import os; os.write(1, {data!r})")],
                         env=home.environment, cwd=str(home.folder))
    assert running.wait().code == 0
    assert running.out_path.read_bytes() == data
    assert os.path.getsize(next(home.directory().glob("nodes/*/*/*/rank0.out"))) == len(data)
