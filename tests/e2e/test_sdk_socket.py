"""What ranks tell their agent through AIMASTER_SOCKET: texts that make a failure retryable, and how far they are."""
import http.client
import json
import os
import socket
import stat

import pytest

from harness import kill, python, wait_for

# A client of nothing but the standard library, as the SDK's will be.
CLIENT = """
import http.client, json, os, socket, sys, time
class Agent(http.client.HTTPConnection):
    def __init__(self): super().__init__("localhost", timeout=5)
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ["AIMASTER_SOCKET"])
def tell(path, **body):
    agent = Agent()
    agent.request("POST", path, json.dumps(body))
    answer = agent.getresponse()
    return answer.status, json.loads(answer.read())
"""
FAILS_ONCE = CLIENT + """
if os.environ["AIMASTER_ROUND"] == "0":
    if len(sys.argv) > 1: print(tell("/v1/retryable_errors", errors=[sys.argv[1]]), flush=True)
    print("READY", flush=True)
    while len(sys.argv) > 2 and not os.path.exists(sys.argv[2]): time.sleep(0.02)
    raise ValueError("the reader gave up: error_yyy at shard 7")
"""
KEYWORD = "error_yyy at shard"


def restarts_of(home, policy, *arguments):
    finished = home.run("--enable-job-restart=True", f"--fault-tolerant-policy={policy}", "--", *python(FAILS_ONCE),
                        *arguments)
    state = home.get()
    assert (finished.code == 0) == (state["restarts"] > 0), finished
    return state["restarts"]


def test_a_text_of_the_jobs_own_makes_its_failure_retryable(home):
    assert restarts_of(home, "ExitCodeAndErrorMsg", KEYWORD) == 1
    assert any(KEYWORD in reason and "calls retryable" in reason for reason in home.explain()[0]["reasons"])
    assert home.call("replay", home.job()).code == 0


def test_without_the_text_or_with_another_the_same_failure_ends_the_job(home):
    assert restarts_of(home, "ExitCodeAndErrorMsg") == 0
    assert restarts_of(home, "ExitCodeAndErrorMsg", "Error_YYY at shard") == 0, "case matters"


def test_where_no_failure_is_retryable_a_text_changes_nothing(home):
    assert restarts_of(home, "Never", KEYWORD) == 0


@pytest.mark.parametrize("agent_too", [False, True], ids=["master", "master and agent"])
def test_texts_hold_after_everything_of_ours_was_killed_and_the_job_resumed(home, agent_too):
    go = home.folder / "go"
    running = home.start("run", "--enable-job-restart=True", "--", *python(FAILS_ONCE), KEYWORD, go)
    job = home.job_of(running)
    home.wait_for_output(running, "READY")
    wait_for(lambda: f"calls these errors retryable: '{KEYWORD}'" in running.stderr, "the journal to know")
    agent, = home.agent_pids(job).values()
    for pid in (home.supervisor_pid(job), home.master_pid(job), *([agent] if agent_too else [])):
        kill(pid)
    running.wait()
    resumed = home.start("resume", job)
    wait_for(lambda: home.agent_pids(job) and home.get(job)["master_pid"], "a master")
    go.touch()
    finished = resumed.wait()
    assert finished.code == 0, finished
    assert home.get(job)["restarts"] == 1


def test_the_same_step_again_and_again_is_no_progress(home):
    code = CLIENT + ("for step in range(5, 8): assert tell('/v1/step', step=step) == (200, {})\n"
                     "os._exit(4)")
    finished = home.run("--enable-job-restart=True", "--fault-tolerant-policy=OnFailure", "--no-progress-limit=3",
                        "--max-num-of-job-restart=9", "--", *python(code))
    assert finished.code == 4, finished
    assert "the same root cause for the 3. time at step 7" in home.get()["reason_message"]


def test_a_child_of_a_rank_speaks_for_it(home):
    code = CLIENT + ("import subprocess\n"
                     "if len(sys.argv) > 1: print(tell('/v1/step', step=3)); sys.exit()\n"
                     "subprocess.run([sys.executable, '-S', '-c', sys.orig_argv[-1], 'child'], check=True)\n")
    finished = home.run("--", *python(code))
    assert finished.code == 0, finished
    assert "(200, {})" in finished.stdout


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def ask(self, method, target, body=None):
        self.request(method, target, body)
        answer = self.getresponse()
        return answer.status, json.loads(answer.read())


def start_sleeper(home):
    running = home.start("run", "--stop-grace", 1, "--", *python(
        "import os, time\nprint('SOCKET', os.environ['AIMASTER_SOCKET'], flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.02)"))
    home.wait_for_output(running, "SOCKET ")
    return running, running.stdout.split("SOCKET ")[1].splitlines()[0]


def test_hostile_clients_disturb_nobody(home):
    running, path = start_sleeper(home)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert len(path) <= 107
    held = []
    for number in range(300):
        one = socket.socket(socket.AF_UNIX)
        one.setblocking(False)
        one.connect(path)
        one.send([b"", b"POST /v1/step HTTP/1.1\r\nContent-Length: 10\r\n\r\n{", b"\xff\x00\r\n", b"G"][number % 4])
        held.append(one)
    assert Unix(path).ask("POST", "/v1/retryable_errors", "x" * (70 << 10))[0] == 413
    assert Unix(path).ask("POST", "/v1/retryable_errors", json.dumps({"errors": ["x" * 257]}))[0] == 400
    many = json.dumps({"errors": [f"text {i}" for i in range(65)]})
    status, answer = Unix(path).ask("POST", "/v1/retryable_errors", many)
    assert (status, "64 retryable errors" in answer["error"]) == (400, True), answer
    status, state = Unix(path).ask("GET", "/v1/status")
    assert (status, state["connected"], state["retryable_errors"]) == (200, True, [])
    status, answer = Unix(path).ask("POST", "/v1/step", '{"step": 1}')
    assert (status, "belongs to no rank" in answer["error"]) == (400, True), "we are none of its ranks"
    assert Unix(path).ask("POST", "/v1/step", '{"step": 1, "rank": 0}') == (200, {})
    (home.folder / "go").touch()
    assert running.wait().code == 0
    assert not os.path.exists(path)
    for one in held:
        one.close()


def test_the_socket_has_a_short_path_however_long_the_home_is(home, tmp_path):
    home.path = tmp_path / ("long" * 25) / "home"
    home.environment["AIMASTER_HOME"] = str(home.path)
    running, path = start_sleeper(home)
    assert len(path) <= 107
    assert Unix(path).ask("GET", "/v1/status")[0] == 200
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    (home.folder / "go").touch()
    assert running.wait().code == 0
    assert not os.path.exists(path)
