"""A user's own rules (`aimaster run --rules FILE`): they decide, stay with the job, and a bad file starts nothing."""
import os

from harness import one_line_error, python, wait_for

# Fails with these words and this code in round 0, and is well from then on.
FAILS_ONCE = """
import os, sys
if os.environ["AIMASTER_ROUND"] == "0":
    print(os.environ["WORDS"], file=sys.stderr)
    sys.exit(int(os.environ.get("CODE", "1")))
"""
RESTART = ["--enable-job-restart=True", "--stop-grace=1"]

TOKEN_SERVICE = r"""
rules:
- code: TokenServiceDown
  category: network
  role: root
  retryable: yes
  severity: 2
  message: The token service is down.
  match:
    patterns: ['\bTokenService\b.{0,40}\bdown\b']
"""


def rules_file(home, text, name="rules.yaml"):
    path = home.folder / name
    path.write_text(text)
    return path


def run(home, rules, words, *more, code=1):
    flags = ["--rules", rules] if rules else []
    return home.run(*flags, *RESTART, *more, "--", *python(FAILS_ONCE), env={"WORDS": words, "CODE": str(code)})


def test_a_rule_of_ones_own_makes_an_error_retryable(home):
    words = "fatal: TokenService at 10.0.0.1 is down"
    assert run(home, None, words).code == 1, "nobody but us knows these words"
    finished = run(home, rules_file(home, TOKEN_SERVICE), words)
    assert finished.code == 0, finished
    record, = home.records()
    assert record["error_message"] == words and record["error_source"] == "log", record
    assert any("TokenServiceDown" in reason for decision in home.explain() for reason in decision["reasons"])


def test_a_built_in_rule_is_overridden_by_its_code(home):
    words = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    assert run(home, None, words).code == 1, "what does not fit does not fit the second time"
    retryable = rules_file(home, "rules: [{code: CudaOutOfMemory, retryable: yes}]\n")
    assert run(home, retryable, words).code == 0
    words = "OSError: [Errno 116] Stale file handle: '/data/a'"
    assert run(home, None, words).code == 0
    final = rules_file(home, "rules: [{code: NfsStale, retryable: no}]\n")
    assert run(home, final, words).code == 1


def test_explain_and_judge_know_them(home):
    path = rules_file(home, TOKEN_SERVICE)
    words = "fatal: TokenService at 10.0.0.1 is down"
    assert run(home, path, words, "--max-num-of-job-restart=0").code == 1
    assert "The token service is down." in home.call("explain", home.job()).stdout
    log = home.folder / "train.log"
    log.write_text(words + "\n")
    assert home.call("judge", "--json", log).json()["code"] != "TokenServiceDown"
    judged = home.call("judge", "--json", "--rules", path, log).json()
    assert (judged["code"], judged["label"], judged["line"]) == ("TokenServiceDown", "retryable", words)
    one_line_error(home.call("judge", "--rules", home.folder / "none.yaml", log), "none.yaml")


def test_an_exit_code_of_ones_own(home):
    own = rules_file(home, "rules: [{code: TryAgain, category: system, role: root, retryable: yes, severity: 2, "
                           "message: The program asks to be tried again., match: {exit_codes: [75]}}]\n")
    assert run(home, None, "try again", code=75).code == 75
    assert run(home, own, "try again", code=75).code == 0


def test_a_bad_file_starts_nothing_and_says_where_it_is_wrong(home):
    bad = {
        "rules:\n- code: Own\n  categry: user\n": ("line 3", "'Own'", "unknown field 'categry'"),
        TOKEN_SERVICE.replace("down\\b", "(down"): ("line 10", "TokenServiceDown", "match.patterns",
                                                     "can't be compiled"),
        TOKEN_SERVICE.replace("yes", "perhaps"): ("line 6", "retryable", "'perhaps' is not one of yes, no, once"),
        "rules: [\n": ("not valid YAML", "line 2"),
        "": ("must be a map",),
        "rules: [{code: Own, category: user}]\n": ("'Own'", "field 'role': is missing"),
    }
    for text, parts in bad.items():
        path = rules_file(home, text)
        one_line_error(home.run("--rules", path, "--", "/bin/true"), str(path), *parts)
    one_line_error(home.run("--rules", home.folder / "none.yaml", "--", "/bin/true"), "none.yaml")
    one_line_error(home.run("--rules", home.folder, "--", "/bin/true"), "not a regular file")
    large = rules_file(home, "#" + "x" * (1 << 20))
    one_line_error(home.run("--rules", large, "--", "/bin/true"), "larger than 1048576 bytes")
    assert not (home.path / "jobs").exists() or home.list() == []


def test_they_are_compiled_once(home):
    path = rules_file(home, TOKEN_SERVICE)
    assert home.run("--rules", path, "--", "/bin/true").code == 0
    cached, = (home.path / "cache" / "rules").iterdir()
    before = cached.stat()
    assert home.run("--rules", path, "--", "/bin/true").code == 0
    assert cached.stat().st_mtime_ns == before.st_mtime_ns
    cached.write_bytes(b"damage")
    assert run(home, path, "fatal: TokenService is down").code == 0, "a damaged cache is none"
    assert len(list((home.path / "cache" / "rules").iterdir())) == 1


def test_without_a_cache_they_work_all_the_same(home):
    (home.path).mkdir()
    (home.path / "cache").write_text("no folder")
    assert run(home, rules_file(home, TOKEN_SERVICE), "fatal: TokenService is down").code == 0


def test_a_pattern_that_slows_reading_down_is_named(home):
    path = rules_file(home, TOKEN_SERVICE.replace(r"\bTokenService\b.{0,40}\bdown\b", r"^\d+-\d+$"))
    finished = run(home, path, "12-34")
    assert finished.code == 0, finished
    assert r"^\d+-\d+$" in finished.stderr and "no plain text" in finished.stderr, finished


def test_the_rules_stay_with_the_job(home):
    path = rules_file(home, TOKEN_SERVICE)
    assert run(home, path, "fatal: TokenService is down").code == 0
    job = home.job()
    assert (home.directory(job) / "rules.yaml").read_text() == TOKEN_SERVICE
    assert (home.directory(job) / "rules.compiled").stat().st_mode & 0o777 == 0o600
    path.unlink()
    replayed = home.call("replay", job, "--json").json()
    assert replayed["result"] == "same" and replayed["judgement_differences"] == []
    own = replayed["masters"][0]["rules"]
    assert home.run("--", "/bin/true").code == 0
    assert home.call("replay", home.job(), "--json").json()["masters"][0]["rules"] != own, "the hash covers them"


WAITS_AND_FAILS = """
import os, sys, time
while not os.path.exists(os.environ["GO"]): time.sleep(0.01)
if os.environ["AIMASTER_ROUND"] == "0": sys.exit("fatal: TokenService is down")
"""


def test_they_hold_over_a_resume_also_where_what_was_compiled_is_lost(home):
    go = home.folder / "go"
    running = home.start("run", "--rules", rules_file(home, TOKEN_SERVICE), *RESTART, "--", *python(WAITS_AND_FAILS),
                         env={"GO": str(go)})
    job = home.job()
    home.wait_for_ranks(1)
    master = home.master_pid()
    for pid in (home.supervisor_pid(), master, *home.agent_pids().values()):
        os.kill(pid, 9)
    running.wait()
    (home.directory(job) / "rules.compiled").write_bytes(b"damage")
    resumed = home.start("resume", job)
    wait_for(lambda: home.get(job)["master_pid"] not in (None, master), "another master")
    go.touch()
    assert resumed.wait().code == 0
    assert home.records(job)[0]["error_message"] == "fatal: TokenService is down"
