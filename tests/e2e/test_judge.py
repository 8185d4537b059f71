"""`aimaster judge`: logs alone, of any job, and what an expert would say about them."""
import os
import subprocess
import threading

import pytest

from harness import AIMASTER, ROOT, one_line_error

FIELDS = {"label", "class", "code", "message", "node_suspect", "root_rank", "line", "rule", "reasons"}
KEY_ERROR = ("Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    cfg['lr']\n"
             "KeyError: 'lr'\n")
LOST_PEER = "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:4111\n"
WATCHDOG = ("[E ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, "
            "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600031 milliseconds\n")


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()

    def write(**files):
        paths = []
        for name, text in files.items():
            path = folder / name.replace("__", ".")
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            paths.append(str(path))
        return paths
    return write


def judge(home, *arguments):
    return home.call("judge", "--json", *arguments).json()


def test_the_json_contract(home, logs):
    answer = judge(home, *logs(rank0__err=LOST_PEER, rank1__err=KEY_ERROR))
    assert set(answer) == FIELDS
    assert (answer["label"], answer["class"], answer["code"], answer["rule"]) == \
        ("not_retryable", "user_code", "UserException", "UserException")
    assert answer["message"] == answer["line"] == "KeyError: 'lr'"
    assert answer["node_suspect"] is False and answer["root_rank"] == 1
    assert all(isinstance(reason, str) for reason in answer["reasons"]) and len(answer["reasons"]) >= 3


def test_the_two_files_of_a_rank_belong_together_and_so_do_those_of_torchrun(home, logs, tmp_path):
    assert judge(home, *logs(rank2__out="step 1\n", rank2__err=KEY_ERROR, rank0__out="step 1\n"))["root_rank"] == 2
    for rank, text in ((0, LOST_PEER), (3, KEY_ERROR)):
        (tmp_path / "attempt_0" / str(rank)).mkdir(parents=True)
        (tmp_path / "attempt_0" / str(rank) / "stderr.log").write_text(text)
    files = [str(path) for path in sorted(tmp_path.glob("attempt_0/*/stderr.log"))]
    assert judge(home, *files)["root_rank"] == 3


def test_a_rank_may_have_any_name(home, logs):
    files = logs(**{"rankgpu-a__err": LOST_PEER, "ranknode b__out": KEY_ERROR})
    assert judge(home, *files)["root_rank"] == 1
    told = home.call("judge", *files).stdout
    assert "node b began" in told, told


def test_other_files_are_ranks_by_their_order(home, logs):
    assert judge(home, *logs(a__log=LOST_PEER, b__log=KEY_ERROR))["root_rank"] == 1
    assert judge(home, *logs(a__log=KEY_ERROR))["root_rank"] is None, "one log says nothing about ranks"


def test_one_mixed_log_names_the_rank_by_its_labels(home, logs):
    mixed = "".join(f"[rank1]: {line}\n" for line in KEY_ERROR.splitlines()) + "[rank0]: " + LOST_PEER
    assert judge(home, *logs(all__log=mixed))["root_rank"] == 1
    tagged = "[1,0]<stderr>:" + LOST_PEER + "".join(f"[1,2]<stderr>:{line}\n" for line in KEY_ERROR.splitlines())
    assert judge(home, *logs(all__log=tagged))["root_rank"] == 2
    assert judge(home, *logs(all__log="worker-0: " + LOST_PEER + "worker-3: KeyError: 'x'\n"))["root_rank"] == 3


def test_what_aimaster_logs_prints_can_be_judged(home):
    code = "import os, sys\nif os.environ['RANK'] == '1': raise KeyError('lr')\nsys.exit('Connection closed by peer')"
    home.run("--workers", 2, "--stop-grace", 1, "--", "/usr/bin/python3", "-c", code)
    printed = home.call("logs", home.job()).stdout
    answer = subprocess.run([AIMASTER, "judge", "--json", "-"], input=printed, capture_output=True, text=True,
                            check=True)
    assert '"root_rank": 1' in answer.stdout and "UserException" in answer.stdout, answer.stdout


def test_all_ranks_alike(home, logs):
    text = "ModuleNotFoundError: No module named 'apex'\n"
    answer = judge(home, *logs(rank0__err=text, rank1__err=text, rank2__err=text))
    assert answer["root_rank"] == "all" and answer["label"] == "not_retryable"


def test_the_silent_rank_for_which_all_wait(home, logs):
    watchdogs = {f"rank{rank}__err": WATCHDOG.format(rank) for rank in (0, 1, 3)}
    answer = judge(home, *logs(**watchdogs, rank2__err="step 9\n"))
    assert answer["root_rank"] == 2 and answer["code"] == "CollectiveTimeout"
    assert "rank 2 says nothing while 3 ranks wait" in answer["message"]


@pytest.mark.parametrize("code, expected", [
    ("-9", ("Sigkill", "retryable")), ("137", ("Sigkill", "retryable")), ("143", ("Sigterm", "retryable")),
    ("139", ("SegmentationFault", "retryable")), ("127", ("ShellCommandNotFound", "not_retryable")),
    ("2", ("UsageExit", "not_retryable")), ("7", ("ExitCode", "not_retryable"))])
def test_an_exit_code_as_a_shell_or_python_tells_it(home, logs, code, expected):
    answer = judge(home, "--exit-code", code, *logs(rank0__err="step 7\n"))
    assert (answer["code"], answer["label"]) == expected


def test_an_exit_code_of_the_whole_blames_no_rank(home, logs):
    files = logs(rank0__err=KEY_ERROR, rank1__err="step 7\n")
    answer = judge(home, "--exit-code", "-9", *files)
    assert (answer["code"], answer["root_rank"]) == ("UserException", 0)
    assert "how the job ended" in answer["reasons"][-1]
    answer = judge(home, "--exit-code=137", *logs(rank0__err="step 7\n", rank1__err="step 7\n"))
    assert (answer["code"], answer["root_rank"]) == ("Sigkill", None)


def test_a_person_is_told_a_story(home, logs):
    files = logs(rank0__err=LOST_PEER, rank1__err="epoch 1\nepoch 2\n" + KEY_ERROR)
    told = home.call("judge", *files)
    assert told.code == 0
    lines = told.stdout.splitlines()
    assert lines[0] == "not worth another try: UserException, rank 1 began"
    assert f"{files[1]}:6" in told.stdout, "the telling line with its place"
    assert "rank 0 is a consequence" in told.stdout
    assert "\x1b" not in told.stdout, "colours are for terminals"


def test_a_pipe_standard_input_and_bytes_that_are_no_text(home, tmp_path, logs):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_text(KEY_ERROR))
    writer.start()
    assert judge(home, str(fifo))["code"] == "UserException"
    writer.join()
    told = subprocess.run([AIMASTER, "judge", "-"], input=KEY_ERROR, capture_output=True, text=True, check=True)
    assert "standard input, byte " in told.stdout
    binary = b"\x00" * 5000 + b"\xff\xfe\x00step\r" + KEY_ERROR.encode()
    assert judge(home, *logs(rank0__err=binary))["code"] == "UserException"
    assert judge(home, *logs(rank0__err=b""))["label"] == "ambiguous"


def test_a_large_log_is_read_in_little_memory(home, tmp_path):
    path = tmp_path / "large.log"
    block = b"".join(b"[rank%d]: step %d loss 0.1234 grad 5.678 lr 0.0001\n" % (i % 8, i) for i in range(20_000))
    with open(path, "wb") as file:
        file.write(b"[rank3]: KeyError: 'lr'\n")
        for _ in range(200):
            file.write(block)
        file.write(b"[rank3]: KeyError: 'lr'\n[rank5]: " + LOST_PEER.encode())
    limited = ["bash", "-c", f"ulimit -v 400000; exec {AIMASTER} judge --json {path}"]
    answer = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert '"root_rank": 3' in answer.stdout, answer.stdout


def test_rules_of_ones_own_override_and_add(home, logs):
    rules, log, wrong = logs(rules__yaml="rules:\n- code: ShardTorn\n  category: storage\n  role: root\n"
                                        "  retryable: yes\n  severity: 2\n  message: A shard is torn.\n"
                                        "  match: {patterns: ['\\bshard \\d+ is torn\\b']}\n",
                            train__log="shard 7 is torn\n", wrong__yaml="rules: 3\n")
    assert judge(home, log)["label"] == "ambiguous"
    answer = judge(home, "--rules", rules, log)
    assert (answer["label"], answer["code"], answer["class"]) == ("retryable", "ShardTorn", "storage")
    one_line_error(home.call("judge", "--rules", wrong, log), "wrong.yaml")
    one_line_error(home.call("judge", "--rules", rules + "x", log), "rules.yamlx")


def test_wrong_words_are_one_line_each(home, logs, tmp_path):
    file, = logs(train__log="x\n")
    one_line_error(home.call("judge", str(tmp_path / "no.log")), "no.log", "No such file")
    one_line_error(home.call("judge", str(tmp_path)), "is a folder")
    one_line_error(home.call("judge", "--exit-code", "nine", file), "--exit-code", "'nine'", "0 to 255")
    one_line_error(home.call("judge", "--exit-code", "256", file), "256")
    one_line_error(home.call("judge"), "FILE")
    one_line_error(home.call("judge", "-", "-"), "once")
    one_line_error(home.call("judge", "--jsn", file), "--jsn", "--json")


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_log_that_may_not_be_read(home, logs):
    file, = logs(secret__log="x\n")
    os.chmod(file, 0)
    refused = home.call("judge", file)
    assert refused.code == 1 and "Permission denied" in refused.stderr


def test_the_labelled_logs_come_out_as_asked():
    files = sorted((ROOT / "tests" / "data" / "logs").glob("*.jsonl"))
    told = subprocess.run([str(ROOT / "tests" / "judge_cases.py"), "--bin", os.path.dirname(AIMASTER), "--misses",
                           *map(str, files)], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
