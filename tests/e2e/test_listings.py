"""What scripts rely on: the JSON of the listing commands, names for jobs, and jobs in the background."""
from harness import JOB_ID, TIMESTAMP, WORKER, shell

NUMBER = (int, float)
OPTIONAL_INT = (int, type(None))


def check(value, shape, where="$"):
    """Compares with {key: type or types or shape}; further keys are allowed, since later versions add some."""
    if isinstance(shape, dict):
        assert isinstance(value, dict), f"{where} is no object: {value}"
        for key, inner in shape.items():
            assert key in value, f"{where} lacks {key}: {value}"
            check(value[key], inner, f"{where}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), f"{where} is no array: {value}"
        for number, element in enumerate(value):
            check(element, shape[0], f"{where}[{number}]")
    elif hasattr(shape, "match"):
        assert isinstance(value, str) and shape.match(value), f"{where} is {value!r}"
    else:
        assert isinstance(value, shape), f"{where} is {value!r}"


LIST = [{"job_id": JOB_ID, "name": str, "status": str, "restarts": int, "framework": str, "create_time": TIMESTAMP}]
GET = {"job_id": JOB_ID, "status": str, "restarts": int, "max_restarts": int, "round": int, "master_pid": OPTIONAL_INT,
       "instances": [{"name": str, "role": str, "index": int, "node": str, "status": str, "attempt": int,
                      "exit_code": OPTIONAL_INT, "signal": OPTIONAL_INT}],
       "reason_code": str, "reason_message": str}
RECORDS = [{"restarts": int, "restart_time": TIMESTAMP, "node_name": str, "instance_name": str,
            "error_code": (int, str), "error_message": str, "error_source": str, "reason": str, "result": str,
            "duration_ms": NUMBER, "round": int, "rank": OPTIONAL_INT}]
ROUNDS = [{"round": int, "start_time": TIMESTAMP, "end_time": TIMESTAMP, "result": str,
           "stages": [{"name": str, "start_time": TIMESTAMP, "duration_ms": NUMBER}]}]
EXPLAIN = [{"decision": str, "summary": str, "reasons": [str]}]


def run_with_a_restart(home):
    finished = home.run("--name", "two-rounds", "--workers", 2, "--local-nodes", 2, "--enable-job-restart=True",
                        "--stop-grace", 1, "--", *WORKER, "--steps", 3, "--die-rank", 1, "--die-how", "sigkill")
    assert finished.code == 0, finished


def test_the_shape_of_everything(home):
    run_with_a_restart(home)
    check(home.list(), LIST)
    check(home.get(), GET)
    check(home.records(), RECORDS)
    check(home.rounds(), ROUNDS)
    check(home.explain(), EXPLAIN)


def test_what_a_job_with_one_restart_says(home):
    run_with_a_restart(home)
    job, = home.list()
    assert (job["name"], job["status"], job["restarts"], job["framework"]) == ("two-rounds", "Succeeded", 1, "pytorch")
    state = home.get()
    assert state["master_pid"] is None, "it has left"
    assert [(one["role"], one["index"], one["status"], one["attempt"], one["exit_code"], one["signal"])
            for one in home.workers()] == [("worker", index, "Succeeded", 1, 0, None) for index in (0, 1)]
    assert len({one["node"] for one in home.workers()}) == 2
    own, = [one for one in state["instances"] if one["role"] == "aimaster"]
    assert own["name"] == f"{job['job_id']}-aimaster-0"

    record, = home.records()
    assert (record["error_code"], record["result"], record["round"], record["rank"]) == (137, "Restarted", 0, 1)
    first, second = home.rounds()
    assert (first["round"], first["result"]) == (0, "Failed")
    assert (second["round"], second["result"]) == (1, "Succeeded")
    names = [stage["name"] for stage in second["stages"]]
    assert names[:4] == ["detect", "collect", "decide", "stop"]
    assert names[-2:] == ["start", "ready"]
    assert first["start_time"] <= first["end_time"] <= second["end_time"]
    assert [decision["decision"] for decision in home.explain()].count("Restart") == 1


def test_listings_for_people(home):
    run_with_a_restart(home)
    job = home.job()
    assert job in home.call("list").stdout
    assert "Succeeded" in home.call("get", job).stdout
    record = home.call("records", job).stdout
    assert "worker-1" in record and "137" in record
    rounds = home.call("rounds", job).stdout
    assert "collect" in rounds and "ready" in rounds
    assert "137" in home.call("explain", job).stdout or "SIGKILL" in home.call("explain", job).stdout
    for command in ("list", "get", "records", "rounds", "explain"):
        assert "\x1b" not in home.call(command, *([] if command == "list" else [job])).stdout


def test_the_newest_job_is_first(home):
    for name in ("first", "second", "third"):
        assert home.run("--name", name, "--", "/bin/true").code == 0
    assert [job["name"] for job in home.list()] == ["third", "second", "first"]
    assert [job["name"] for job in home.call("list", "--json", "--limit", 1).json()] == ["third"]


def test_listing_by_status(home):
    assert home.run("--", "/bin/true").code == 0
    assert home.run("--", "/bin/false").code == 1
    assert [job["status"] for job in home.call("list", "--json", "--status", "Failed").json()] == ["Failed"]


def test_an_empty_home_has_an_empty_list(home):
    assert home.list() == []
    assert home.call("list").code == 0


def test_of_several_jobs_with_a_name_the_one_that_runs_is_meant_else_the_newest(home):
    for code in (0, 3):
        assert home.run("--name", "bert", "--", *shell(f"exit {code}")).code == code
    newest = home.list()[0]["job_id"]
    told = home.call("get", "--json", "bert")
    assert (told.code, told.json()["job_id"], told.json()["status"]) == (0, newest, "Failed"), told
    assert told.stderr == f"aimaster: 'bert' names 2 jobs that have ended; this is about the newest, {newest}\n"
    assert home.run("--name", "bert", "--detach", "--", "/bin/sleep", 100).code == 0
    told = home.call("get", "--json", "bert")
    assert (told.json()["job_id"], told.stderr) == (home.list()[0]["job_id"], "")
    assert home.run("--name", "bert", "--detach", "--", "/bin/sleep", 100).code == 0
    refused = home.call("get", "bert")
    assert refused.code == 1 and "'bert' names 4 jobs (" in refused.stderr, refused
    listed = home.list()
    assert all(job["job_id"] in refused.stderr for job in listed), refused
    for job in [job["job_id"] for job in listed[:2]]:
        assert home.call("stop", job).code == 0


def test_a_name_that_ids_begin_with_names_no_other_jobs(home):
    for name in ("d", "d", "bert"):
        assert home.run("--name", name, "--", "/bin/true").code == 0
    assert "'d' names 2 jobs that" in home.call("get", "d").stderr


def test_a_job_is_found_by_name_and_by_the_beginning_of_its_id(home):
    assert home.run("--name", "resnet", "--", "/bin/true").code == 0
    job = home.job()
    assert home.get("resnet")["job_id"] == job
    assert home.get(job[:10])["job_id"] == job


def test_detach_returns_at_once_and_says_the_id(home):
    finished = home.run("--detach", "--", *WORKER, "--steps", 5)
    assert finished.code == 0, finished
    assert JOB_ID.search(finished.stdout)[0] == home.job()
    assert home.get()["status"] != "Succeeded"
    assert home.call("attach", home.job()).code == 0


def test_two_jobs_at_a_time_do_not_meet(home):
    one = home.start("run", "--name", "one", "--workers", 2, "--", *WORKER, "--steps", 10)
    two = home.start("run", "--name", "two", "--workers", 2, "--stop-grace", 1, "--", *WORKER, "--steps", 10,
                     "--die-rank", 0, "--die-how", "exit9")
    assert (one.wait().code, two.wait().code) == (0, 9)
    assert (home.get("one")["status"], home.get("two")["status"]) == ("Succeeded", "Failed")


def test_parameters_are_listed(home):
    names = ["job-execution-mode", "enable-job-restart", "max-num-of-job-restart", "enable-job-hang-detection",
             "job-hang-interval", "enable-c4d-hang-detection", "enable-job-exit-hang-detection",
             "job-exit-hang-interval", "fault-tolerant-policy", "max-num-of-same-error", "max-tolerated-failure-rate",
             "c4d-log-level", "c4d-common-envs"]
    for arguments in ([], ["--markdown"], ["--json"]):
        finished = home.call("params", *arguments)
        assert finished.code == 0
        for name in names:
            assert name in finished.stdout, (arguments, name)


def test_secrets_are_for_their_owner_alone(home):
    assert home.run("--", "/bin/true", env={"API_KEY": "secret"}).code == 0
    assert home.directory().stat().st_mode & 0o077 == 0
    assert (home.directory() / "token").stat().st_mode & 0o177 == 0


def test_our_token_is_on_no_command_line(home):
    home.run("--detach", "--", *WORKER, "--steps", 5)
    home.wait_for_ranks(1)
    token = (home.directory() / "token").read_text().strip()
    assert len(token) >= 32
    assert not [line for line in home.leftovers().values() if token in line]
    assert home.call("attach", home.job()).code == 0
