"""The Python SDK in real jobs, with real agents: what a training says arrives, whoever dies meanwhile."""
import json
import os
import signal
import subprocess
import sys

import pytest

from harness import PYTHON, ROOT, kill, python, shell, wait_for

SDK = str(ROOT / "sdk" / "python")
# Ranks speak to their agent now and then beside what the SDK does, to see what it knows.
ASK = """
import http.client, json, os, signal, socket, sys, time
from aimaster import job_monitor as jm
class Agent(http.client.HTTPConnection):
    def __init__(self): super().__init__("localhost", timeout=20)
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ["AIMASTER_SOCKET"])
def interval():
    agent = Agent()
    agent.request("GET", "/v1/hang_interval")
    return json.loads(agent.getresponse().read())["seconds"]
def wait_for(path):
    while not os.path.exists(path): time.sleep(0.02)
"""
# What the documents show, as it stands there.
DOCUMENTED = """
from aimaster import job_monitor as jm                 # distribution name: pai-aimaster
config = jm.PyTorchConfig(job_hang_interval=1800)      # TFConfig, MPIConfig, ElasticBatchConfig
monitor = jm.Monitor(config=config)
status = monitor.send_custom_message(content="loss is NaN")
if not status.ok(): print(status.to_string())
monitor.set_retryable_errors(["connect timeout", "error_yyy"])
monitor.reset_config(job_hang_interval=10)             # also reset_config({"job_hang_interval": 10})
"""


@pytest.fixture
def home(home):
    home.environment["PYTHONPATH"] = SDK
    return home


def messages(home, job=None):
    lines = home.call("events", "--json", job or home.job()).stdout.splitlines()
    return [event for event in map(json.loads, lines) if event["type"] == "aimaster.custom.message"]


def test_the_documented_program_runs_unchanged_in_a_job(home):
    finished = home.run("--", *python(DOCUMENTED + "print('AT THE END')"))
    assert finished.code == 0, finished
    assert finished.stdout.split("\n")[-2:] == ["AT THE END", ""], "no status had anything to complain of"
    message, = messages(home)
    assert message["data"]["message"] == "rank 0: loss is NaN"
    assert message["subject"] == f"{home.job()}-worker-0"


def test_and_outside_of_one(home):
    done = subprocess.run([sys.executable, "-c", DOCUMENTED], env=home.environment, capture_output=True, text=True,
                          check=True)
    assert done.stdout == "not within a job of AIMaster: AIMASTER_SOCKET is not set\n"
    assert done.stderr == ""


def test_people_see_messages_in_the_listing_of_events(home):
    code = ("from aimaster import job_monitor as jm\n"
            "jm.Monitor().send_custom_message('loss is NaN\\x1b[31m\\nat step 7')")
    assert home.run("--workers", 2, "--", *python(code)).code == 0
    lines = [line for line in home.call("events", home.job()).stdout.splitlines() if "aimaster.custom.message" in line]
    assert len(lines) == 2
    assert all("loss is NaN" in line and "at step 7" in line and "\x1b" not in line for line in lines), lines


def test_who_ends_right_after_speaking_has_been_heard(home):
    # A child of a rank, which nobody finds by its number any more when the agent reads what it has said.
    last_words = ("import os\nfrom aimaster import job_monitor as jm\n"
                  "jm.Monitor().send_custom_message('the child'); os._exit(0)")
    script = f"{PYTHON} -S -c \"$1\"; {PYTHON} -S -c \"$2\""
    rank = last_words.replace("the child", "the rank").replace("_exit(0)", "_exit(3)")
    finished = home.run("--", *shell(script), "sh", last_words, rank)
    assert finished.code == 3, finished
    assert [event["data"]["message"] for event in messages(home)] == ["rank 0: the child", "rank 0: the rank"]


def test_a_message_survives_the_death_of_the_master_and_is_told_once(home):
    go = home.folder / "go"
    code = ASK + ("print('READY', flush=True); wait_for(sys.argv[1])\n"
                  "print(jm.Monitor().send_custom_message('while you were dead').to_string(), flush=True)\n"
                  "wait_for(sys.argv[1] + '2')")
    running = home.start("run", "--", *python(code), go)
    job = home.job_of(running)
    home.wait_for_output(running, "READY")
    master = home.master_pid(job)
    os.kill(master, signal.SIGSTOP)
    go.touch()
    home.wait_for_output(running, "OK")
    kill(master)
    wait_for(lambda: messages(home, job), "the message")
    (home.folder / "go2").touch()
    assert running.wait().code == 0
    assert [event["data"]["message"] for event in messages(home, job)] == ["rank 0: while you were dead"]
    assert home.call("replay", job).code == 0


def test_a_rank_that_says_too_much_is_told_so(home):
    code = ASK + ("monitor = jm.Monitor()\n"
                  "codes = [monitor.send_custom_message('again').code for _ in range(15)]\n"
                  "print(codes.count('refused') > 0, codes[0], monitor.send_custom_message('x' * 5000).to_string())")
    finished = home.run("--", *python(code))
    assert finished.stdout.startswith("True ok the message has 5000 bytes"), finished
    assert 10 <= len(messages(home)) < 15


def test_errors_that_the_sdk_calls_retryable_are(home):
    code = ASK + ("if os.environ['AIMASTER_ROUND'] == '0':\n"
                  "    assert jm.Monitor().set_retryable_errors(['error_yyy at shard']).ok()\n"
                  "    raise ValueError('the reader gave up: error_yyy at shard 7')")
    assert home.run("--enable-job-restart=True", "--", *python(code)).code == 0
    assert home.get()["restarts"] == 1


def test_the_last_step_before_a_hard_death_is_known(home):
    code = ASK + ("for step in range(5, 8): jm.report_step(step, loss=float('nan'))\n"
                  "os.kill(os.getpid(), signal.SIGSEGV)")
    finished = home.run("--enable-job-restart=True", "--fault-tolerant-policy=OnFailure", "--no-progress-limit=3",
                        "--max-num-of-job-restart=9", "--", *python(code))
    assert finished.code != 0, finished
    assert "the same root cause for the 3. time at step 7" in home.get()["reason_message"]


@pytest.mark.parametrize("first", [0, 1], ids=["first in first out", "last in first out"])
def test_two_ranks_that_enter_and_leave_in_any_order_end_at_the_jobs_own_interval(home, first):
    code = ASK + """
rank = int(os.environ["RANK"])
def turn(name):
    wait_for(os.path.join(sys.argv[1], name))
def done(name):
    print(name, flush=True)
turn("enter%d" % rank)
with jm.hang_detect([180, -1][rank]):
    done("entered%d" % rank)
    turn("leave%d" % rank)
done("left%d" % rank)
turn("end")
print("INTERVAL", interval(), flush=True)
"""
    running = home.start("run", "--workers", 2, "--tee", "all", "--", *python(code), home.folder)
    leave = [first, 1 - first]
    for turn, done in (("enter0", "entered0"), ("enter1", "entered1"), *((f"leave{r}", f"left{r}") for r in leave)):
        (home.folder / turn).touch()
        home.wait_for_output(running, done)
    (home.folder / "end").touch()
    finished = running.wait()
    assert finished.stdout.count("INTERVAL None") == 2, finished


@pytest.mark.parametrize("stage", [
    "with jm.hang_detect(60): time.sleep(7)",
    "with jm.hang_detect(-1): time.sleep(7)",
    "jm.hang_detect(60)(time.sleep)(7)",
    "monitor.reset_config(job_hang_interval=60); time.sleep(7); monitor.reset_config(job_hang_interval=3)",
], ids=["longer", "off", "decorator", "reset"])
def test_a_silent_first_step_is_no_hang_and_what_stands_still_after_it_is(home, stage):
    """A model that is compiled, say, says nothing for more than two intervals; nobody has to switch detection off for
    the rest of the run because of that."""
    code = ASK + f"""
monitor = jm.Monitor()
if os.environ['AIMASTER_ROUND'] == '0':
    {stage}
    print('the first step took long', flush=True)
    for step in range(4): assert jm.report_step(step).ok(); time.sleep(1)
    time.sleep(600)
print('done', flush=True)
"""
    finished = home.run("--enable-job-restart=True", "--enable-job-hang-detection=True", "--job-hang-interval=3",
                        "--stop-grace", 1, "--", *python(code), timeout=120)
    assert finished.code == 0, finished
    record, = home.records()
    assert (record["fault"], record["result"]) == ("JobHang", "Restarted")
    assert record["error_message"].startswith("the job hangs: its only rank silent for 3."), record
    assert finished.stdout.splitlines() == ["the first step took long", "done"]


def test_a_new_round_starts_from_the_flag_again(home):
    code = ASK + ("print('FOUND', interval(), flush=True)\n"
                  "if os.environ['AIMASTER_ROUND'] == '0':\n"
                  "    jm.Monitor(config=jm.PyTorchConfig(job_hang_interval=-1))\n"
                  "    print('SET', interval(), flush=True)\n"
                  "    os.kill(os.getpid(), signal.SIGKILL)")
    finished = home.run("--enable-job-restart=True", "--", *python(code))
    assert finished.code == 0, finished
    assert [line for line in finished.stdout.splitlines() if line] == ["FOUND None", "SET -1", "FOUND None"]


def test_a_section_that_was_entered_while_the_agent_was_away_counts_when_one_is_back(home):
    go = home.folder / "go"
    code = ASK + """
print("READY", flush=True); wait_for(sys.argv[1])
with jm.hang_detect(60) as status:
    print("STATUS", status.code, flush=True)
    wait_for(sys.argv[1] + "2")
    print("INTERVAL", interval(), flush=True)
"""
    running = home.start("run", "--", *python(code), go)
    job = home.job_of(running)
    home.wait_for_output(running, "READY")
    agent, = home.agent_pids(job).values()
    for pid in (home.supervisor_pid(job), home.master_pid(job), agent):
        kill(pid)
    running.wait()
    go.touch()
    output, = home.directory(job).glob("nodes/*/*/0/rank0.out")
    wait_for(lambda: "STATUS no_agent" in output.read_text(), "the section to begin")
    resumed = home.start("resume", job)

    def setting():
        path, = home.directory(job).glob("nodes/*/agent.json")
        return json.loads(path.read_text()).get("hang_setting") or {}

    wait_for(lambda: setting().get("interval_ms") == 60_000, "the interval to be told")
    (home.folder / "go2").touch()
    assert resumed.wait().code == 0
    assert "INTERVAL 60.0" in output.read_text()


def test_a_stopped_agent_holds_no_rank_up_and_hears_all_of_it_afterwards(home):
    go = home.folder / "go"
    code = ASK + """
print("READY", flush=True); wait_for(sys.argv[1])
monitor = jm.Monitor()
began = time.monotonic()
with jm.hang_detect(60):
    for step in range(20): assert jm.report_step(step).ok()
assert monitor.send_custom_message("are you there?").code == "no_answer"
print("AFTER", time.monotonic() - began, flush=True)
wait_for(sys.argv[1] + "2")
"""
    running = home.start("run", "--", *python(code), go)
    job = home.job_of(running)
    home.wait_for_output(running, "READY")
    agent, = home.agent_pids(job).values()
    os.kill(agent, signal.SIGSTOP)
    go.touch()
    home.wait_for_output(running, "AFTER")
    os.kill(agent, signal.SIGCONT)
    assert float(running.stdout.split("AFTER ")[1].split()[0]) < 2.0
    assert wait_for(lambda: messages(home, job), "the message")[0]["data"]["message"] == "rank 0: are you there?"
    (home.folder / "go2").touch()
    assert running.wait().code == 0


def test_data_loaders_speak_without_disturbing_the_rank_that_forked_them(home):
    code = ASK + """
import multiprocessing
def load(number):
    with jm.hang_detect(30):
        return jm.report_step(number).ok()
if __name__ == "__main__":
    with jm.hang_detect(600):
        with multiprocessing.get_context("fork").Pool(4) as pool:
            assert all(pool.map(load, range(40)))
        assert jm.Monitor().send_custom_message("all loaded").ok()
    print("INTERVAL", interval())
"""
    finished = home.run("--", *python(code))
    assert finished.code == 0, finished
    assert "INTERVAL None" in finished.stdout
    assert [event["data"]["message"] for event in messages(home)] == ["rank 0: all loaded"]


def test_a_command_beside_an_instance_may_change_the_interval(home):
    go = home.folder / "go"
    code = ASK + "print('READY', flush=True); wait_for(sys.argv[1]); print('INTERVAL', interval())"
    running = home.start("run", "--", *python(code), go)
    job = home.job_of(running)
    home.wait_for_output(running, "READY")
    beside = "from aimaster import job_monitor as jm\nprint(jm.Monitor().reset_config(job_hang_interval=-1))"
    done = home.call("exec", f"{job}-worker-0", "--", *python(beside))
    assert done.stdout == "OK\n", done
    go.touch()
    assert "INTERVAL -1" in running.wait().stdout


def test_the_example_tells_what_its_output_does_not_show(home):
    finished = home.run("--workers", 2, "--", PYTHON, ROOT / "examples" / "sdk" / "monitored.py", "--steps", 12)
    assert finished.code == 0, finished
    assert sorted(event["data"]["message"] for event in messages(home)) == [f"rank {rank}: loss is NaN at step 7"
                                                                    for rank in range(2)]
    assert home.rounds()[0]["checkpoint_step"] == 9
