"""What a node can run out of, and what can become of the processes on it: each ends in a defined, reported state."""
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from harness import FULL, PYTHON, WORKER, Home, command_line, is_alive, kill, python, shell, start_ticks, wait_for

USER = 54321
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
RESTARTS = ["--enable-job-restart=True", "--fault-tolerant-policy=OnFailure", "--stop-grace", "1"]
FREEZER = Path("/sys/fs/cgroup/freezer")


def shims(job):
    """The job's shims, found without anything that they wrote."""
    found = []
    for name in os.listdir("/proc"):
        line = command_line(int(name)) if name.isdigit() else []
        if len(line) == 2 and line[0].endswith("aimaster-shim") and f"/{job}/" in line[1] and is_alive(int(name)):
            found.append(int(name))
    return found


@contextlib.contextmanager
def load(processes=4):
    busy = [subprocess.Popen([PYTHON, "-S", "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


# -- the shim dies ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("with_agent", [False, True], ids=["alone", "with its agent"])
def test_a_shim_that_dies_at_any_moment(home, with_agent):
    """From the moment of its birth on, on a busy machine. Its ranks end within seconds, and the job starts anew."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with load():
        for i in range(30 if FULL else 4):
            running = home.start("run", *RESTARTS, "--", *WORKER, "--steps", 25)
            job = wait_for(lambda known=i: (jobs := home.list()) and len(jobs) == known + 1 and jobs[0]["job_id"],
                           "the job")
            shim, *_ = wait_for(lambda: shims(job), "a shim", every=0.001)
            time.sleep(0 if i % 3 == 0 else chance.uniform(0, 0.8))
            ranks = home.rank_processes(job)
            agents = home.agent_pids(job).values() if with_agent else []
            for pid in (shim, *agents):
                kill(pid)
            wait_for(lambda: not any(is_alive(pid) for pid in ranks.values()), "its ranks to end", timeout=5)
            finished = running.wait(60)
            assert finished.code == 0, finished
            faults = [record["fault"] for record in home.records(job)]
            never_lived = with_agent and not ranks  # then it is started in place
            assert faults == ["ProcessLost"] or (never_lived and faults == []), home.records(job)


def test_what_escaped_is_found_by_what_the_shim_kept(home):
    """A daemon that left session, group and environment. With the agent dead as well nobody inherits it but init."""
    word = f"4{random.randrange(10 ** 8):08}"
    escape = f"(env -i /usr/bin/setsid /bin/sleep {word} &) ; sleep 600"
    running = home.start("run", "--", *shell(escape))

    def escaped():
        return [int(name) for name in os.listdir("/proc")
                if name.isdigit() and command_line(int(name)) == ["/bin/sleep", word]]

    daemon, = wait_for(escaped, "the daemon")
    job = home.job()
    line = f"{daemon} {start_ticks(daemon)}"
    kept = home.directory(job).glob
    wait_for(lambda: any(line in path.read_text() for path in kept("nodes/*/*-worker-0/0/descendants")),
             "the shim to have seen it")
    for pid in (*shims(job), *home.agent_pids(job).values()):
        kill(pid)
    wait_for(lambda: not escaped(), "the daemon to be found", timeout=15)
    assert running.wait(30).code != 0


def test_a_stopped_shim_is_woken_to_obey(home):
    running = home.start("run", "--stop-grace", 1, "--", *WORKER, "--steps", 600)
    home.wait_for_output(running, "starts at step")
    shim, = shims(home.job())
    os.kill(shim, signal.SIGSTOP)
    running.signal(signal.SIGINT)
    finished = running.wait(30)
    assert finished.code == 130, finished


# -- no room for a process, no descriptors ----------------------------------------------------------------------------

@pytest.fixture
def users_home(home):
    """A home of an ordinary user, on whom limits are binding."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    folder = Path(tempfile.mkdtemp(prefix="aimaster-user-"))
    os.chown(folder, USER, USER)
    yield Home(folder, home.marker, AS_USER)
    shutil.rmtree(folder, ignore_errors=True)


def test_no_room_for_another_process_is_said_and_may_be_tried_again(users_home):
    home = users_home
    running = home.start("run", "--nproc-per-node", 60, "--stop-grace", 1, "--", "sleep", 600,
                         prefix=["prlimit", "--nproc=40:40"])
    finished = running.wait(60)
    assert finished.code == 126, finished
    state = home.get()
    assert (state["status"], state["reason_code"]) == ("Failed", "NoResources"), state
    assert "cannot create a process: Resource temporarily unavailable" in finished.stderr, finished


@pytest.mark.parametrize("limit", [14, 16, 24, 64])
def test_few_descriptors_are_enough_or_named(home, limit):
    running = home.start("run", "--workers", 4, "--start-timeout", 20, "--", *WORKER, "--steps", 3,
                         prefix=["prlimit", f"--nofile={limit}:{limit}"])
    finished = running.wait(90)
    if finished.code != 0:
        assert f"may have {limit} files open and would need" in finished.stderr, finished
        assert finished.code == 2 or home.get()["reason_code"] == "NoResources", finished


def test_ranks_keep_the_limit_of_descriptors_that_the_job_was_given(home):
    finished = home.run("--", *python("import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"), timeout=30)
    mine = home.start("run", "--", *python("import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"),
                      prefix=["prlimit", "--nofile=123:456"]).wait(30)
    assert finished.code == mine.code == 0
    assert "(123, 456)" in mine.stdout, mine


# -- SIGKILL does not work --------------------------------------------------------------------------------------------

@pytest.fixture
def freezer():
    group = FREEZER / f"aimaster-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no freezer to write to: {error}")
    yield group
    (group / "freezer.state").write_text("THAWED")

    def removed():
        with contextlib.suppress(OSError):
            group.rmdir()
        return not group.exists()

    wait_for(removed, "the frozen group to be empty")


def freeze(group, pid):
    (group / "cgroup.procs").write_text(str(pid))
    (group / "freezer.state").write_text("FROZEN")
    wait_for(lambda: (group / "freezer.state").read_text().strip() == "FROZEN", "the group to be frozen")


def test_a_frozen_rank_holds_the_next_round_up_until_it_thaws(home, freezer):
    running = home.start("run", "--workers", 2, *RESTARTS, "--", *WORKER, "--steps", 40)
    ranks = home.wait_for_ranks(2)
    job = home.job()
    freeze(freezer, ranks[1])
    kill(ranks[0])
    named = wait_for(lambda: [json.loads(path.read_text()) for path in
                              home.directory(job).glob("nodes/*/*-worker-1/0/unkillable.json")],
                     "the frozen rank to be named", timeout=30)
    assert named[0]["processes"][0]["pid"] == ranks[1]
    assert set(home.rank_processes(job).values()) <= {ranks[1]}, "nothing new starts beside it"
    (freezer / "freezer.state").write_text("THAWED")
    finished = running.wait(60)
    assert finished.code == 0, finished
    assert home.get(job)["restarts"] == 1


def test_a_rank_that_stays_frozen_fails_the_job_and_is_named(home, freezer):
    running = home.start("run", "--workers", 2, "--node-lost-timeout", 1, *RESTARTS, "--", *WORKER, "--steps", 600)
    ranks = home.wait_for_ranks(2)
    job = home.job()
    freeze(freezer, ranks[1])
    kill(ranks[0])
    finished = running.wait(90)
    assert finished.code != 0, finished
    state = home.get(job)
    assert (state["status"], state["reason_code"]) == ("Failed", "Unkillable"), state
    assert f"{job}-worker-1" in state["reason_message"], state
    (freezer / "freezer.state").write_text("THAWED")
    wait_for(lambda: not home.leftovers(), "the thawed rank to end, and who watched over it", timeout=20)


# -- the disk ---------------------------------------------------------------------------------------------------------

@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own under the place where a test's output goes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = []

    def mount(options):
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True)
        if made.returncode != 0:
            pytest.skip(f"nothing can be mounted here: {made.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for place in mounted:
        subprocess.run(["umount", "-l", place], check=False)


def fill(folder):
    """To the last byte; gives back how to make room again."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as out:
        while out.write(b"x" * 4096):
            pass
    return filler


def use_up_inodes(folder):
    (folder / "many").mkdir()
    with contextlib.suppress(OSError):
        for i in range(100_000):
            (folder / "many" / str(i)).touch()
    return folder / "many"


def test_ranks_that_print_outlive_a_disk_that_fills_up(home, small_disk):
    """Old output makes room for new: what is printed in all is three times what there is room for."""
    disk = small_disk("size=24m")
    chatter = python("import time\nfor i in range(720):\n  print('x' * 99_999, flush=True); time.sleep(0.02)")
    finished = home.run("--log-dir", disk, "--", *chatter, timeout=90)
    assert finished.code == 0, finished.stderr[-2000:]
    out, = disk.glob("*/0/rank0.out")
    assert out.stat().st_size == 720 * 100_000
    log, = home.directory().glob("nodes/*/agent.log")
    assert "the disk is nearly full" in log.read_text()


@pytest.mark.parametrize("exhaust", [fill, use_up_inodes], ids=["no bytes", "no inodes"])
def test_an_exit_status_has_room_on_a_full_disk(tmp_path, home, small_disk, exhaust):
    """Everything of ours lies on it. The shim has reserved what it takes; who reads it may have to wait for room."""
    disk = small_disk("size=64m,nr_inodes=400")
    full = Home(disk, home.marker)
    go = tmp_path / "go"
    assert full.run("--detach", "--", *shell(f"while [ ! -e {go} ]; do sleep 0.05; done; exit 7")).code == 0
    job = full.job()
    full.wait_for_ranks(1, job)
    attempt, = full.directory(job).glob("nodes/*/*-worker-0/0")
    wait_for(lambda: (attempt / "started.json").exists(), "the shim to have begun")
    filler = exhaust(disk)
    go.touch()
    wait_for(lambda: (attempt / "rank0.exit.json").exists(), "the exit file")
    assert json.loads((attempt / "rank0.exit.json").read_text())["code"] == 7
    shutil.rmtree(filler) if filler.is_dir() else filler.unlink()
    state = full.wait_for_status("Failed", job)
    assert state["exit_code"] == 7, state
    wait_for(lambda: not home.leftovers(), "all processes to be gone")


def test_a_job_whose_output_has_no_room_is_not_started_and_says_so(home, small_disk):
    disk = small_disk("size=8m,nr_inodes=100")
    use_up_inodes(disk)
    finished = home.run("--log-dir", disk, "--", "true", timeout=60)
    assert finished.code != 0
    assert home.get()["reason_code"] == "NoResources", finished
    assert "No space left on device" in finished.stderr, finished
