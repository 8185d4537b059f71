"""`aimaster run` around an unchanged torchrun: a pod per instance, torchrun's processes beneath it. torchrun itself
always ends with 1; what happened to its processes is found all the same.

Debian's torchrun (1.13 under Python 3.11) only works with -r 1 -t 2; so standard output of its processes goes to files
of its own, and their standard error to ours.
"""
import json
import shutil

import pytest

from harness import ROOT, kill, shell, wait_for

pytestmark = [pytest.mark.training,
              pytest.mark.skipif(shutil.which("torchrun", path="/usr/bin") is None, reason="there is no torchrun")]
TRAIN = str(ROOT / "examples" / "pytorch" / "train.py")
SMALL = "--limit 1024 --epochs 2 --checkpoint-every 4 --test-limit 100"
RESTART = "--enable-job-restart=True"


def torchrun(script, *words, processes=1, options=""):
    """The command of the DLC service's scripts: RANK and WORLD_SIZE count pods there."""
    return shell(f"exec torchrun -r 1 -t 2 --nnodes=$WORLD_SIZE --node_rank=$RANK --nproc_per_node={processes} "
                 f"--master_addr=$MASTER_ADDR --master_port=$MASTER_PORT {options} {script} "
                 f"{' '.join(map(str, words))}")


def training(home, *words, **options):
    return torchrun(TRAIN, SMALL, "--checkpoint-dir", home.folder / "checkpoints", *words, **options)


def run(home, pods, command, *flags):
    return home.run("--workers", pods, "--stop-grace", 2, "--tee", "all", *flags, "--", *command, timeout=240)


def dies(how, rank=1, step=10):
    return ["--die-rank", rank, "--die-step", step, "--die-how", how]


def steps(home):
    return sorted(int(path.stem.split("-")[1]) for path in (home.folder / "checkpoints").glob("checkpoint-*.pt"))


@pytest.mark.parametrize("how, code, said", [("sigkill", 137, "killed by SIGKILL (9)"),
                                             ("segfault", 139, "killed by SIGSEGV (11)")])
def test_a_process_that_crashes_beneath_one_torchrun_restarts_the_job(home, how, code, said):
    """The other pod's process loses its connection, and its torchrun may well be the first to end."""
    finished = run(home, 2, training(home, *dies(how)), RESTART)
    assert finished.code == 0, finished
    record, = home.records()
    assert record["error_code"] == code, record
    assert record["instance_name"].endswith("-worker-1"), record
    assert f"rank 1 of its torchrun: {said}" in record["error_message"]
    assert record["result"] == "Restarted"
    assert steps(home)[-1] == 32, "the training went on to its end"


def test_its_exit_code_is_the_job_s(home):
    finished = run(home, 2, training(home, *dies("exit7")), RESTART)
    assert finished.code == 7, finished
    assert "rank 1 of its torchrun: exit code 7" in home.get()["reason_message"]
    assert home.records() == []


def test_a_mistake_in_the_program_is_told_by_its_own_words(home):
    finished = run(home, 2, training(home, *dies("exception")), RESTART)
    assert finished.code == 1, finished
    assert "RuntimeError: rank 1 was asked to fail before step 10" in home.get()["reason_message"]
    assert home.records() == []


def test_two_processes_of_one_torchrun_end_between_two_of_its_looks(home):
    """It then names the first of its list; the one that was killed is the second."""
    finished = run(home, 1, training(home, *dies("sigkill"), processes=2), RESTART)
    assert finished.code == 0, finished
    record, = home.records()
    assert record["error_code"] == 137, record
    assert "rank 1 of its torchrun: killed by SIGKILL (9)" in record["error_message"]


def test_a_rendezvous_that_fails_is_retried_and_told(home):
    command = shell("if [ $RANK = 1 ]; then MASTER_PORT=9; fi; " +
                    torchrun(TRAIN, "--checkpoint-dir", home.folder, options="--rdzv_conf timeout=3")[2])
    finished = run(home, 2, command, RESTART, "--max-num-of-job-restart=1")
    assert finished.code == 1, finished
    record, = home.records()
    assert record["instance_name"].endswith("-worker-1"), record
    assert "timed out after 3s while trying to connect" in record["error_message"]
    assert "--max-num-of-job-restart=1" in home.get()["reason_message"]


def test_the_error_file_of_a_process_is_the_message(home):
    """torchrun passes it on, through the variable by which we name ours."""
    script = home.folder / "recorded.py"
    script.write_text("from torch.distributed.elastic.multiprocessing.errors import record\n"
                      "@record\n"
                      "def main(): raise ValueError('the flux is not normalised')\n"
                      "main()\n")
    finished = run(home, 1, torchrun(script), RESTART)
    assert finished.code == 1, finished
    assert "ValueError: the flux is not normalised" in home.get()["reason_message"]
    assert any("its error file says" in reason for reason in home.explain()[-1]["reasons"])


def test_what_torchrun_restarts_itself_is_no_failure_of_the_job(home):
    finished = run(home, 1, training(home, *dies("sigkill", rank=0), options="--max_restarts=1"))
    assert finished.code == 0, finished
    assert home.records() == []
    assert steps(home)[-1] == 64


def test_processes_find_torchrun_s_variables_and_not_ours(home):
    script = home.folder / "told.py"
    script.write_text("import json, os\n"
                      "open(os.environ['RANK'] + '.json', 'w').write(json.dumps(dict(os.environ)))\n")
    finished = run(home, 2, torchrun(script, processes=2))
    assert finished.code == 0, finished
    for rank in range(4):
        told = json.loads((home.folder / f"{rank}.json").read_text())
        assert (told["WORLD_SIZE"], told["LOCAL_RANK"], told["GROUP_RANK"]) == ("4", str(rank % 2), str(rank // 2))
        assert told["TORCHELASTIC_RUN_ID"] == "none", "torchrun's, not the job's"
        assert told["AIMASTER_INSTANCE"].endswith(f"-worker-{rank // 2}")


def test_a_stop_ends_torchrun_and_its_processes(home):
    running = home.start("run", "--workers", 1, "--stop-grace", 5, "--", *training(home, "--epochs", 500, processes=2))
    job = home.job_of(running)
    wait_for(lambda: (home.folder / "checkpoints").exists() and steps(home), "the training to be under way", 120)
    assert home.call("stop", job).code == 0
    running.wait()
    assert home.get(job)["status"] == "Stopped"


def test_torchrun_itself_is_killed(home):
    running = home.start("run", "--workers", 1, RESTART, "--stop-grace", 1, "--", *training(home, processes=1))
    job = home.job_of(running)
    wait_for(lambda: (home.folder / "checkpoints").exists() and steps(home), "the training to be under way", 120)
    kill(home.rank_processes(job)[0])
    finished = running.wait(240)
    assert finished.code == 0, finished
    record, = home.records(job)
    assert (record["error_code"], record["result"]) == (137, "Restarted")
    assert "torchrun" not in record["error_message"].split(";")[0]
