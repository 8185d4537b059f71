"""Batch work in shares: independent instances, each with its number; done when all are. Real work: the digest of a data
set, which comes out the same whatever happened on the way."""
import json
import subprocess

import pytest

from harness import PYTHON, ROOT, kill, one_line_error, python, shell, wait_for

BATCH = ["--framework", "elasticbatch", "--stop-grace", "1"]
CHECKSUM = [PYTHON, str(ROOT / "examples" / "elasticbatch" / "checksum.py")]
LIMIT = 6000


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The digest in one piece, by nobody's hands but the program's own."""
    out = tmp_path_factory.mktemp("undisturbed")
    share = {"AIMASTER_SHARD_INDEX": "0", "AIMASTER_SHARD_COUNT": "1"}
    subprocess.run([*CHECKSUM, "--out", str(out), "--limit", str(LIMIT)], env=share, check=True)
    return digest(out)


def digest(out):
    said = subprocess.run([*CHECKSUM, "--out", str(out), "--combine"], capture_output=True, text=True, check=True)
    return said.stdout.split(": ")[1].strip()


def run(home, *flags, shards=3, die=(), **options):
    return home.run(*BATCH, "--workers", shards, *flags, "--tee", "all", "--", *CHECKSUM, "--out", home.folder / "out",
                    "--limit", LIMIT, *die, timeout=120, **options)


def dies(how, shard=1, image=700):
    return ["--die-shard", shard, "--die-image", image, "--die-how", how]


def attempts(home):
    return [one["attempt"] for one in home.workers()]


def test_each_instance_gets_its_share_and_the_job_is_done_when_all_are(home, undisturbed):
    finished = run(home)
    assert finished.code == 0, finished
    assert digest(home.folder / "out") == undisturbed
    for shard in range(3):
        assert f"shard {shard} of 3 begins at image 0" in finished.stdout
    assert [one["status"] for one in home.workers()] == ["Succeeded"] * 3


def test_what_an_instance_finds_in_its_environment(home):
    code = ("import json, os\ne = os.environ\n"
            "config = json.loads(e['ElASTICBATCH_CONFIG'])\n"
            "print('SHARE', e['AIMASTER_SHARD_INDEX'], e['AIMASTER_SHARD_COUNT'], config['task']['type'],\n"
            "      config['task']['index'], 'MASTER_PORT' in e, 'MASTER_ADDR' in e)")
    finished = home.run(*BATCH, "--workers", 2, "--master", 1, "--nproc-per-node", 2, "--tee", "all", "--",
                        *python(code))
    assert finished.code == 0, finished
    shares = sorted(line.partition("SHARE ")[2] for line in finished.stdout.splitlines() if "SHARE" in line)
    assert shares == ["0 6 master 0 False False", "1 6 master 0 False False", "2 6 worker 0 False False",
                      "3 6 worker 0 False False", "4 6 worker 1 False False", "5 6 worker 1 False False"]
    assert "MASTER_PORT" not in finished.stderr


# ---- six ways to fail ----


@pytest.mark.parametrize("how, code", [("sigkill", 137), ("segfault", 139)])
def test_a_share_that_crashes_goes_on_alone_where_it_stopped(home, undisturbed, how, code):
    finished = run(home, die=dies(how))
    assert finished.code == 0, finished
    assert digest(home.folder / "out") == undisturbed
    assert "shard 1 of 3 begins at image 500" in finished.stdout
    assert attempts(home) == [0, 1, 0]
    record, = home.records()
    assert (record["scope"], record["error_code"], record["result"]) == ("instance", code, "Restarted")
    assert record["instance_name"].endswith("-worker-1")
    assert home.get()["restarts"] == 0


@pytest.mark.parametrize("how, code, message", [
    ("exit7", 7, "exit code 7"),
    ("exception", 1, "RuntimeError: shard 1 was asked to fail"),
    ("memory", 1, "MemoryError"),
    ("disk", 1, "No space left on device")])
def test_a_share_whose_failure_is_no_accident_ends_the_job(home, how, code, message):
    finished = run(home, die=dies(how))
    assert finished.code == code, finished
    state = home.get()
    assert state["status"] == "Failed"
    assert message in state["reason_message"] or message in json.dumps(home.explain()), state["reason_message"]
    assert home.records() == []
    assert attempts(home) == [0, 0, 0]


def test_every_failure_is_retried_where_the_policy_says_so(home, undisturbed):
    finished = run(home, "--fault-tolerant-policy=OnFailure", die=dies("exit7"))
    assert finished.code == 0, finished
    assert digest(home.folder / "out") == undisturbed
    record, = home.records()
    assert (record["error_code"], record["result"]) == (7, "Restarted")


def test_a_share_that_fails_again_and_again_ends_the_job(home):
    code = "import os, sys, time\nif os.environ['AIMASTER_SHARD_INDEX'] == '0': os._exit(5)\ntime.sleep(600)"
    finished = home.run(*BATCH, "--workers", 2, "--fault-tolerant-policy=OnFailure", "--max-num-of-same-error=2", "--",
                        *python(code))
    assert finished.code == 5, finished
    assert attempts(home) == [2, 0]
    assert "--max-num-of-same-error=2" in home.get()["reason_message"]


# ---- who goes on, who is done ----


def test_the_others_do_not_notice(home, undisturbed):
    running = home.start("run", *BATCH, "--workers", 3, "--tee", "all", "--", *CHECKSUM, "--out", home.folder / "out",
                         "--limit", LIMIT, "--keep-every", 100, "--rest", 0.2)
    job = home.job_of(running)
    home.wait_for_output(running, "begins at", times=3)
    before = home.wait_for_ranks(3, job)
    kill(before[2])
    wait_for(lambda: home.rank_processes(job).get(2) not in (None, before[2]), "share 2 to be restarted")
    now = home.rank_processes(job)
    assert (now[0], now[1]) == (before[0], before[1])
    finished = running.wait(120)
    assert finished.code == 0, finished
    assert digest(home.folder / "out") == undisturbed


WAITS = python("""
import os, sys, time
shard = os.environ["AIMASTER_SHARD_INDEX"]
print("UP", shard, os.environ["AIMASTER_ATTEMPT"], os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
if shard == "0": sys.exit(0)
while not os.path.exists("go"): time.sleep(0.02)
""")


def test_what_is_done_stays_done_when_all_others_are_restarted(home):
    """--job-execution-mode=Sync: a failure restarts all who are not done."""
    running = home.start("run", *BATCH, "--job-execution-mode=Sync", "--enable-job-restart=True", "--workers", 3,
                         "--tee", "all", "--", *WAITS)
    job = home.job_of(running)
    home.wait_for_output(running, "UP ", times=3)
    wait_for(lambda: home.workers(job)[0]["status"] == "Succeeded", "share 0 to be done")
    kill(home.rank_processes(job)[1])
    home.wait_for_output(running, "UP ", times=5)
    home.wait_for_status("Running", job)
    assert home.workers(job)[0]["status"] == "Succeeded"
    (home.folder / "go").touch()
    finished = running.wait()
    assert finished.code == 0, finished
    ups = sorted(line.partition("UP ")[2] for line in finished.stdout.splitlines() if "UP " in line)
    assert ups == ["0 0 0", "1 0 0", "1 1 1", "2 0 0", "2 1 1"]
    assert attempts(home) == [0, 1, 1]
    assert home.get(job)["restarts"] == 1
    assert "1 instance of before is done" in finished.stderr
    assert home.call("replay", job).code == 0


def test_sync_without_permission_to_restart_fails(home):
    finished = home.run(*BATCH, "--job-execution-mode=Sync", "--workers", 2, "--", *shell("kill -9 $$"))
    assert finished.code == 137, finished
    assert "--enable-job-restart=False" in home.get()["reason_message"]


def test_the_mode_that_was_chosen_is_said(home):
    finished = home.run(*BATCH, "--workers", 2, "--", "/bin/true")
    assert "--job-execution-mode is Async" in finished.stderr, finished
    finished = home.run(*BATCH, "--job-execution-mode=Sync", "--workers", 2, "--", "/bin/true")
    assert "--job-execution-mode is Async" not in finished.stderr, finished


def test_roles_that_depend_on_each_other_are_refused(home):
    finished = home.run("--framework", "elasticbatch", "--ps", 1, "--", "/bin/true")
    assert finished.code == 2, finished
    one_line_error(finished, "--ps", "elasticbatch")
