"""How often a job restarts, what ends it, and what the records say afterwards."""
import pytest

from harness import TIMESTAMP, WORKER, python

RESTARTS = ["--enable-job-restart=True", "--fault-tolerant-policy=OnFailure", "--stop-grace", "1"]


def test_two_restarts_are_allowed_and_the_third_failure_ends_the_job(home):
    finished = home.run("--workers", 3, *RESTARTS, "--max-num-of-job-restart=2", "--", *WORKER,
                        "--die-rank", 2, "--die-how", "exit3", "--die-message", "loss is not a number", "--die-always",
                        "--die-step", 2)
    assert finished.code == 3, finished
    state = home.get()
    assert (state["status"], state["restarts"], state["max_restarts"], state["round"]) == ("Failed", 2, 2, 2)
    assert "--max-num-of-job-restart" in state["reason_message"]
    worker_2 = next(one for one in state["instances"] if one["name"].endswith("-worker-2"))
    records = home.records()
    assert [record["restarts"] for record in records] == [1, 2]
    for record in records:
        assert TIMESTAMP.match(record["restart_time"])
        assert record["node_name"] == worker_2["node"]
        assert record["instance_name"] == f"{state['job_id']}-worker-2"
        assert record["error_code"] == 3
        assert record["error_message"] == "loss is not a number"
        assert record["error_source"] in ("process", "log")
        assert record["result"] == "Restarted"
        assert record["rank"] == 2
        assert record["duration_ms"] > 0
    assert [record["round"] for record in records] == [0, 1]


def test_a_restart_that_fails_before_it_is_ready_is_no_success(home):
    """Rank 1 dies before rank 0 has printed anything: no round is ever ready."""
    code = "import os, time\nif os.environ['RANK'] == '1': os._exit(3)\ntime.sleep(600)"
    finished = home.run("--workers", 2, *RESTARTS, "--max-num-of-job-restart=2", "--", *python(code))
    assert finished.code == 3, finished
    assert [record["result"] for record in home.records()] == ["Failed", "Failed"]


def test_no_restart_without_permission(home):
    finished = home.run("--", *WORKER, "--die-rank", 0, "--die-how", "sigkill")
    assert finished.code == 137, finished
    assert "--enable-job-restart" in home.get()["reason_message"]


def test_never_means_never(home):
    finished = home.run("--enable-job-restart=True", "--fault-tolerant-policy=Never", "--", *WORKER, "--die-rank", 0,
                        "--die-how", "sigkill")
    assert finished.code == 137, finished
    assert "--fault-tolerant-policy=Never" in home.get()["reason_message"]


def test_by_default_a_plain_exit_code_is_not_retryable_and_a_kill_is(home):
    finished = home.run("--enable-job-restart=True", "--", *WORKER, "--die-rank", 0, "--die-how", "exit7")
    assert (finished.code, home.get()["restarts"]) == (7, 0), finished
    finished = home.run("--enable-job-restart=True", "--", *WORKER, "--steps", 2, "--die-rank", 0,
                        "--die-how", "sigkill")
    assert (finished.code, home.get()["restarts"]) == (0, 1), finished


def test_a_segfault_is_retried_once_at_the_same_place(home):
    finished = home.run("--enable-job-restart=True", "--", *WORKER, "--die-rank", 0, "--die-how", "segfault",
                        "--die-always")
    assert (finished.code, home.get()["restarts"]) == (139, 1), finished


def test_the_same_error_too_often_ends_the_job(home):
    finished = home.run(*RESTARTS, "--max-num-of-job-restart=9", "--max-num-of-same-error=2", "--", *WORKER,
                        "--die-rank", 0, "--die-how", "exit3", "--die-always")
    assert finished.code == 3, finished
    state = home.get()
    assert state["restarts"] == 2
    assert "--max-num-of-same-error" in state["reason_message"]


def test_too_large_a_share_of_failed_workers_ends_the_job(home):
    code = ("import os, time\n"
            "if os.environ['RANK'] == os.environ['TORCHELASTIC_RESTART_COUNT']: os._exit(5)\n"
            "time.sleep(30)")
    finished = home.run("--workers", 4, *RESTARTS, "--max-num-of-job-restart=9", "--max-tolerated-failure-rate=0.5",
                        "--", *python(code))
    assert finished.code == 5, finished
    state = home.get()
    assert state["restarts"] == 2, "two of four are tolerated, the third one is not"
    assert "--max-tolerated-failure-rate" in state["reason_message"]


def test_one_string_holds_the_parameters_as_the_service_has_them(home):
    string = "  --job-execution-mode=Sync --enable-job-restart TRUE \\\n --max-num-of-job-restart '1' " \
             "--fault-tolerant-policy=onfailure "
    finished = home.run("--error-monitoring-args", string, "--stop-grace", 1, "--", *WORKER, "--die-rank", 0,
                        "--die-how", "exit3", "--die-always")
    assert finished.code == 3, finished
    state = home.get()
    assert (state["restarts"], state["max_restarts"]) == (1, 1)


def test_a_taken_port_is_tried_again_in_place_and_is_no_restart(home, tmp_path):
    """Somebody listens on the port of the round before rank 0 does: the start has failed, not the job."""
    code = ("import os, socket, time\n"
            "address = ('127.0.0.1', int(os.environ['MASTER_PORT']))\n"
            "first = not os.path.exists('been-here'); open('been-here', 'a').write(os.environ['MASTER_PORT'] + ' ')\n"
            "thief = socket.socket(); thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
            "if first: thief.bind(address); thief.listen()\n"
            "ours = socket.socket(); ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
            "ours.bind(address); ours.listen()\n"
            "print('listening')")
    finished = home.run("--workdir", tmp_path, "--", *python(code))
    assert finished.code == 0, finished
    state = home.get()
    assert (state["status"], state["restarts"]) == ("Succeeded", 0)
    assert home.records() == []
    first, second = (tmp_path / "been-here").read_text().split()
    assert first != second
    assert [decision["decision"] for decision in home.explain()].count("RetryStart") == 1


def test_every_round_has_another_port_and_the_same_ranks(home, tmp_path):
    code = ("import os\n"
            "line = ' '.join(os.environ[n] for n in ('RANK', 'TORCHELASTIC_RESTART_COUNT', 'AIMASTER_ROUND',\n"
            "                                        'AIMASTER_INSTANCE', 'MASTER_PORT'))\n"
            "print(line, file=open('seen', 'a'))\n"
            "if os.environ['RANK'] == '1' and os.environ['AIMASTER_ROUND'] == '0': os._exit(1)\n"
            "import time; time.sleep(0.3)")
    finished = home.run("--workers", 2, "--workdir", tmp_path, *RESTARTS, "--", *python(code))
    assert finished.code == 0, finished
    seen = sorted(tuple(line.split()) for line in (tmp_path / "seen").read_text().splitlines())
    job = home.job()
    ports = {line[4] for line in seen}
    assert [line[:4] for line in seen] == [(rank, str(round_), str(round_), f"{job}-worker-{rank}")
                                           for rank in "01" for round_ in (0, 1)]
    assert len(ports) == 2
    assert all(10000 <= int(port) < 32768 for port in ports), "below the ephemeral range"


@pytest.mark.parametrize("arguments, parts", [
    (["--max-num-of-job-restart=-1"], ["max-num-of-job-restart", "-1"]),
    (["--job-execution-mode=Both"], ["job-execution-mode", "Both", "Sync", "Async"]),
    (["--max-num-of-job-restarts=3"], ["max-num-of-job-restarts", "max-num-of-job-restart"]),
    (["--enable-job-restart=True", "--enable-job-restart=False"], ["enable-job-restart"]),
    (["--error-monitoring-args", "--max-tolerated-failure-rate=1.5"], ["max-tolerated-failure-rate", "1.5"]),
])
def test_a_wrong_parameter_is_one_clear_line_and_nothing_is_started(home, arguments, parts):
    finished = home.run(*arguments, "--", "/bin/true")
    assert finished.code == 2, finished
    assert len(finished.stderr.splitlines()) == 1, finished
    for part in parts:
        assert part in finished.stderr, finished
    assert not (home.path / "jobs").exists() or not list((home.path / "jobs").iterdir())
