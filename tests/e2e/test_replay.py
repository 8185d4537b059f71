"""`aimaster replay`: the same decisions again, other ones with other parameters, and no trace of either."""
import json
import os
import shutil
import sqlite3
import subprocess

from harness import AIMASTER, one_line_error, python

RESTART = ["--enable-job-restart=True", "--fault-tolerant-policy=OnFailure", "--stop-grace=1"]
FAILS_TWICE = python("import os, sys; n = int(os.environ['AIMASTER_ROUND']); "
                     "print('round', n); sys.exit(7 if n < 2 and os.environ['RANK'] == '1' else 0)")


def restarted_job(home):
    assert home.run("--workers", "2", *RESTART, "--", *FAILS_TWICE).code == 0
    return home.job()


def journal(home, job):
    connection = sqlite3.connect(home.directory(job) / "journal.db", isolation_level=None)
    return connection


def test_the_same_is_decided_again(home):
    job = restarted_job(home)
    before = sorted((p.name, p.stat().st_mtime_ns) for p in home.directory(job).iterdir() if "-shm" not in p.name)
    replayed = home.call("replay", job)
    assert replayed.code == 0, replayed
    assert "the same was decided: 3 decisions" in replayed.stdout, replayed
    assert replayed.stdout.count("the same") == 4, replayed
    after = sorted((p.name, p.stat().st_mtime_ns) for p in home.directory(job).iterdir() if "-shm" not in p.name)
    assert [name for name, _ in before] == [name for name, _ in after]


def test_the_json_contract(home):
    job = restarted_job(home)
    answer = home.call("replay", job, "--json").json()
    assert set(answer) == {"job_id", "result", "summary", "parameters", "engine", "masters", "recorded_inputs",
                           "replayed_inputs", "status", "decisions", "judgement_differences"}
    assert answer["job_id"] == job and answer["result"] == "same" and answer["status"] == "Succeeded"
    assert answer["parameters"] == {} and answer["judgement_differences"] == []
    assert answer["recorded_inputs"] == answer["replayed_inputs"] > 10
    assert [d["recorded"][0]["decision"] for d in answer["decisions"]] == ["Restart", "Restart", "Succeed"]
    assert all(d["same"] and d["recorded"] == d["replayed"] for d in answer["decisions"])
    assert set(answer["decisions"][0]) == {"input", "kind", "time", "round", "epoch", "recorded", "replayed", "same",
                                           "differs"}
    assert all(d["differs"] == "" for d in answer["decisions"])
    assert set(answer["masters"][0]) == {"epoch", "program", "engine", "rules"}


def test_another_limit_ends_where_the_histories_part(home):
    job = restarted_job(home)
    replayed = home.call("replay", job, "--max-num-of-job-restart=1")
    assert replayed.code == 0, replayed
    first = replayed.stdout.splitlines()[0]
    assert "with --max-num-of-job-restart=1 the job would have failed at " in first, first
    assert "(round 1): " in first and "--max-num-of-job-restart=1" in first, first
    answer = home.call("replay", job, "--max-num-of-job-restart=1", "--json").json()
    assert answer["result"] == "parts" and answer["parameters"] == {"max-num-of-job-restart": "1"}
    assert answer["decisions"][-1]["replayed"][0]["decision"] == "Fail"
    assert answer["replayed_inputs"] < answer["recorded_inputs"]


def test_what_makes_no_difference_is_said_to_make_none(home):
    job = restarted_job(home)
    replayed = home.call("replay", job, "--max-num-of-job-restart=9")
    assert replayed.code == 0 and "the job would have gone the same way" in replayed.stdout, replayed


def test_another_decision_than_the_recorded_one_is_reported(home):
    job = restarted_job(home)
    journal(home, job).execute("UPDATE decision SET body = replace(body, '\"Restart\"', '\"Fail\"') WHERE seq = 2")
    journal(home, job).execute("UPDATE master SET program = 'aimaster 9.9', engine = 99")
    replayed = home.call("replay", job)
    assert replayed.code == 1, replayed
    first = replayed.stdout.splitlines()[0]
    for part in ("another decision at input ", "(FailureJudged)", "(round 1)", "aimaster 9.9, engine 99"):
        assert part in first, first


def test_what_differs_in_a_decision_that_leads_to_the_same_is_said(home):
    job = restarted_job(home)
    journal(home, job).execute("UPDATE decision SET body = json_set(body, '$.reasons[0]', 'a former reason') "
                               "WHERE seq = 1")
    replayed = home.call("replay", job)
    assert replayed.code == 1 and "only words differ: reason 1 of 'Restart': recorded 'a former reason', now '" in \
        replayed.stdout, replayed
    told = home.call("replay", "--json", job)
    differing = [one for one in json.loads(told.stdout)["decisions"] if not one["same"]]
    assert len(differing) == 1 and differing[0]["differs"].startswith("reason 1 of 'Restart'"), told


def test_a_running_job_and_one_in_a_directory_that_can_only_be_read(home):
    running = home.start("run", "--workers", "2", *RESTART, "--", *python("import time; print('up'); time.sleep(60)"))
    home.wait_for_output(running, "up")
    job = home.job()
    replayed = home.call("replay", job)
    assert replayed.code == 0, replayed
    assert home.call("stop", job).code == 0
    running.wait()
    copy = home.folder / "copy"
    shutil.copytree(home.path, copy)
    # Root may write everywhere, so the copy is somebody else's.
    for path in [copy, *copy.rglob("*")]:
        os.chmod(path, 0o500 if path.is_dir() else 0o400)
        if os.getuid() == 0:
            os.chown(path, 65534, 65534)
    for parent in copy.parents:
        if str(parent).startswith("/tmp/") and parent.stat().st_uid == os.getuid():
            os.chmod(parent, 0o755)
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []
    reader = subprocess.run([*as_nobody, AIMASTER, "replay", job], capture_output=True, text=True,
                            env={**home.environment, "AIMASTER_HOME": str(copy)})
    assert reader.returncode == 0, reader
    assert "the same was decided" in reader.stdout


def test_a_journal_of_a_hundred_thousand_inputs(home):
    job = restarted_job(home)
    connection = journal(home, job)
    (last,) = connection.execute("SELECT max(seq) FROM input").fetchone()
    (at,) = connection.execute("SELECT json_extract(body, '$.at') FROM input WHERE seq = ?", (last,)).fetchone()
    tick = f'{{"at":{at},"kind":"Tick"}}'
    with connection:
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO input VALUES(?, 1, 0, 'Tick', 'rules', ?)",
                               ((last + 1 + i, tick) for i in range(100_000)))
        connection.execute("UPDATE state SET input = input + 100000")
        connection.execute("COMMIT")
    replayed = home.call("replay", job, "--json")
    answer = replayed.json()
    assert answer["result"] == "same" and answer["recorded_inputs"] == last + 100_000
    assert replayed.seconds < 30, f"{replayed.seconds:.1f} s"


def test_wrong_words_are_refused(home):
    job = restarted_job(home)
    one_line_error(home.call("replay", job, "--workers=3"), "aimaster replay has no option", "--workers")
    one_line_error(home.call("replay", job, "--max-num-of-job-restart=many"), "max-num-of-job-restart")
    one_line_error(home.call("replay", "dlcnosuch"), "no job")
