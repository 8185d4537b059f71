"""Notifications: whom a job tells of what, and what becomes of it when the other side, or we, are not there. Every sink
talks to a server process of sink_servers.py; what these processes saw is what counts.
"""
import base64
import hashlib
import hmac
import json
import os
import signal
import sqlite3
import time
import urllib.parse
from email import message_from_string, policy

import pytest

from harness import command_line, kill, marked_processes, one_line_error, python, wait_for
from sink_servers import Sink, free_port, make_certificate

QUIET = python("pass")
FAILS_ONCE = python("import os, sys, time\n"
                    "if os.environ['AIMASTER_ROUND'] == '0' and os.environ['RANK'] == '1':\n"
                    "    print('RuntimeError: CUDA error: uncorrectable ECC error encountered', file=sys.stderr)\n"
                    "    sys.exit(1)\n"
                    "time.sleep(0.3)\n")
SECRET = "a-secret-that-nobody-may-see"


@pytest.fixture
def servers(tmp_path):
    """start(kind, **options) → Sink; all of them end with the test."""
    started = []

    def start(kind="http", **options):
        started.append(Sink(tmp_path, kind, **options))
        return started[-1]

    yield start
    for server in started:
        server.stop()


def write_file(home, text, name="notify.yaml"):
    path = home.folder / name
    path.write_text(text)
    return path


def notify_file(home, *sinks, rules="- {events: '*', sinks: [SINKS]}", rest=""):
    """A file with these sinks, each "NAME: {…}"."""
    names = ", ".join(sink.partition(":")[0] for sink in sinks)
    return write_file(home, "sinks:\n" + "".join(f"  {sink}\n" for sink in sinks) + "rules:\n" +
                      rules.replace("SINKS", names) + "\n" + rest)


def try_sink(home, sink, *flags, **options):
    """`aimaster notify test` of one sink → its exit code and what it says of the sink."""
    finished = home.call("notify", "test", notify_file(home, sink), "--json", *flags, **options)
    assert finished.code in (0, 1), finished
    (told,) = json.loads(finished.stdout)
    assert told["delivered"] == (finished.code == 0)
    return told


def events_of(home, job):
    return [json.loads(line) for line in home.call("events", job, "--json").stdout.splitlines()]


def sent_events(home, job):
    """The ids of all events that are meant for a sink with the rule '*'."""
    return [event["id"] for event in events_of(home, job) if not event["type"].startswith("aimaster.notify.")]


def sinks_of(home, job):
    return {sink["sink"]: sink for sink in home.get(job)["notifications"]}


def courier_pid(home):
    found = [pid for pid, _ in marked_processes(home.marker)
             if command_line(pid)[1:2] == ["serve"] and "aimaster-notify" in command_line(pid)[0]]
    return found[0] if found else None


# -- what is told -----------------------------------------------------------------------------------------------------

def test_a_restart_is_told_with_its_reasons_in_order_and_signed(home, servers):
    sink = servers()
    file = notify_file(home, f"ops: {{type: webhook, url: '{sink.origin}/ok', secret: {SECRET}, "
                             "headers: {X-Team: ml}, per_minute: 1000}")
    finished = home.run("--name", "nightly", "--workers", 2, "--enable-job-restart=True", "--stop-grace", 1,
                        "--notify", file, "--", *FAILS_ONCE)
    assert finished.code == 0, finished
    job = home.job()
    assert [event["id"] for event in sink.events()] == sent_events(home, job)
    for entry in sink.received():
        headers = entry["headers"]
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{entry['body']}".encode()
        mac = base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{mac}"
        assert headers["x-team"] == "ml"
        assert headers["content-type"].startswith("application/cloudevents+json")
        assert headers["webhook-id"] == json.loads(entry["body"])["id"]
    (restart,) = [event for event in sink.events() if event["type"] == "aimaster.round.restarting"]
    assert restart["specversion"] == "1.0" and restart["source"] == f"/aimaster/jobs/{job}"
    data = restart["data"]
    assert data["title"] == "Automatic Fault Tolerance" and data["job_name"] == "nightly"
    assert "rank 1" in data["first"] and data["where"].startswith(f"rank 1, {job}-worker-1 on ")
    assert "uncorrectable ECC error" in data["told_by"]
    assert data["decision"].startswith("Restart: ") and data["advice"]
    assert data["look"] == f"aimaster explain {job}"
    assert sinks_of(home, job)["ops"] == {"sink": "ops", "type": "webhook", "delivered": len(sink.received()),
                                          "waiting": 0, "gave_up": 0, "trouble": ""}


def test_rules_choose_by_title_job_and_severity(home, servers):
    sink = servers()
    file = notify_file(home, f"a: {{type: webhook, url: '{sink.origin}/ok?a'}}",
                       f"b: {{type: webhook, url: '{sink.origin}/ok?b'}}",
                       f"c: {{type: webhook, url: '{sink.origin}/ok?c'}}",
                       rules="- {events: Automatic Fault Tolerance, sinks: a}\n"
                             "- {events: '*', severity: warning, jobs: 'night*', sinks: b}\n"
                             "- {events: '*', jobs: 'day*', sinks: c}")
    assert home.run("--name", "nightly", "--workers", 2, "--enable-job-restart=True", "--stop-grace", 1,
                    "--notify", file, "--", *FAILS_ONCE).code == 0
    told = {name: [event["type"] for entry in sink.received() if entry["path"].endswith("?" + name)
                   for event in [json.loads(entry["body"])]] for name in "abc"}
    assert told["a"] == ["aimaster.round.restarting"]
    assert {"aimaster.instance.failed", "aimaster.round.restarting"} <= set(told["b"])
    assert "aimaster.job.succeeded" not in told["b"]
    assert told["c"] == []


def test_events_are_cloud_events(home):
    assert home.run("--", *QUIET).code == 0
    told = events_of(home, home.job())
    assert [event["data"]["number"] for event in told] == list(range(1, len(told) + 1))
    for event in told:
        assert event["specversion"] == "1.0" and event["id"] == f"{home.job()}-{event['data']['number']}"
        assert event["data"]["job_id"] == home.job() and event["data"]["message"]


def test_who_follows_a_job_is_told_when_nobody_leads_it(home):
    job = home.run("--detach", "--", *python("import time; time.sleep(60)")).stdout.strip()
    home.wait_for_ranks(1, job)
    following, communication = home.start("events", "-f", job), home.start("c4d", "-f", job)
    wait_for(lambda: "aimaster.round.started" in following.stdout, "events")
    kill(home.supervisor_pid(job))
    kill(home.master_pid(job))
    for follower in (following, communication):
        wait_for(lambda: "aimaster resume" in follower.stderr, "the news that nobody leads", timeout=30)
    assert home.call("resume", "--detach", job).code == 0
    assert home.call("stop", "--now", job).code == 0
    assert following.wait().code == 0 and communication.wait().code == 0
    assert "aimaster.job.stopped" in following.stdout


def test_the_kinds_of_events_are_listed(home):
    kinds = {kind["type"]: kind for kind in home.call("notify", "events", "--json").json()}
    assert kinds["aimaster.round.restarting"]["title"] == "Automatic Fault Tolerance"
    assert "Automatic Fault Tolerance" in home.call("notify", "events").stdout


# -- the chats --------------------------------------------------------------------------------------------------------

def test_dingtalk_is_signed_in_its_address(home, servers):
    sink = servers()
    told = try_sink(home, f"ding: {{type: dingtalk, url: '{sink.origin}/robot/0?access_token=t', secret: SECx}}")
    assert told["delivered"] and told["answer"] == "200, code 0", told
    (entry,) = sink.received()
    query = urllib.parse.parse_qs(entry["path"].partition("?")[2])
    signed = f"{query['timestamp'][0]}\nSECx".encode()
    assert query["access_token"] == ["t"]
    assert query["sign"] == [base64.b64encode(hmac.new(b"SECx", signed, hashlib.sha256).digest()).decode()]
    assert json.loads(entry["body"])["markdown"]["title"].startswith("[info] Test Message")


def test_feishu_is_signed_in_its_body(home, servers):
    sink = servers()
    assert try_sink(home, f"fei: {{type: feishu, url: '{sink.origin}/robot/0', secret: fs}}")["delivered"]
    (body,) = sink.events()
    key = f"{body['timestamp']}\nfs".encode()
    assert body["sign"] == base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()
    assert body["msg_type"] == "post"


@pytest.mark.parametrize("kind, path", (("slack", "ok"), ("wecom", "robot/0")))
def test_the_other_chats_take_a_message(home, servers, kind, path):
    sink = servers()
    assert try_sink(home, f"chat: {{type: {kind}, url: '{sink.origin}/{path}'}}")["delivered"]
    assert "Test Message" in json.dumps(sink.events()[0])


@pytest.mark.parametrize("kind", ("dingtalk", "feishu", "wecom"))
def test_a_robot_that_answers_200_and_an_error_has_not_taken_it(home, servers, kind):
    sink = servers()
    told = try_sink(home, f"chat: {{type: {kind}, url: '{sink.origin}/robot/310000'}}")
    assert not told["delivered"] and "310000" in told["answer"], told


# -- servers that do not do what they should --------------------------------------------------------------------------

@pytest.mark.parametrize("path, words", (
    ("status/500", "500: nothing for"), ("status/403", "403"), ("stall", "timed out"), ("redirect/ok", "redirection"),
    ("hangup", "Empty reply"), ("half", "closed")))
def test_what_a_bad_server_does_is_said_in_its_words(home, servers, path, words):
    sink = servers()
    told = try_sink(home, f"ops: {{type: webhook, url: '{sink.origin}/{path}', timeout: 700ms}}")
    assert not told["delivered"] and words in told["answer"], told
    assert len(sink.received()) == 1, "a test is tried once, and a redirection is not followed"


def test_a_redirection_is_followed_where_the_file_says_so(home, servers):
    sink = servers()
    told = try_sink(home, f"ops: {{type: webhook, url: '{sink.origin}/redirect/ok', follow_redirects: true}}")
    assert told["delivered"], told
    first, second = sink.received()
    assert (first["path"], second["path"]) == ("/redirect/ok", "/ok") and first["body"] == second["body"]


def test_who_is_not_there(home):
    told = try_sink(home, f"ops: {{type: webhook, url: 'http://127.0.0.1:{free_port()}/'}}")
    assert not told["delivered"] and "connect" in told["answer"].lower(), told
    told = try_sink(home, "ops: {type: webhook, url: 'http://nowhere.invalid/', timeout: 5s}")
    assert not told["delivered"] and "nowhere.invalid" in told["answer"], told


def test_tls_is_checked(home, servers, tmp_path):
    good, other = make_certificate(tmp_path, "good"), make_certificate(tmp_path, "other")
    elsewhere = make_certificate(tmp_path, "elsewhere", host="example.org")
    sink = servers(certificate=good)
    answer = f"ops: {{type: webhook, url: '{sink.origin}/ok'%s}}"
    assert try_sink(home, answer % f", ca_file: '{good}'")["delivered"]
    for ca in ("", f", ca_file: '{other}'"):
        told = try_sink(home, answer % ca)
        assert not told["delivered"] and "certificate" in told["answer"], told
    wrong = servers(certificate=elsewhere, name="wrong")
    told = try_sink(home, f"ops: {{type: webhook, url: '{wrong.origin}/ok', ca_file: '{elsewhere}'}}")
    assert not told["delivered"] and "127.0.0.1" in told["answer"], told
    assert len(sink.received()) == 1 and wrong.received() == [], "nothing is said to who is not known"


def test_each_sink_is_tested_and_the_exit_code_tells(home, servers):
    sink = servers()
    file = notify_file(home, f"good: {{type: webhook, url: '{sink.origin}/ok'}}",
                       f"bad: {{type: slack, url: '{sink.origin}/status/404'}}")
    both = home.call("notify", "test", file)
    assert both.code == 1 and "good (webhook at " in both.stdout and "NOT delivered" in both.stdout, both
    assert home.call("notify", "test", file, "--sink", "good").code == 0
    one_line_error(home.call("notify", "tset", file), "did you mean test?")
    unknown = home.call("notify", "test", file, "--sink", "godo")
    assert unknown.code == 2 and "good, bad" in unknown.stderr, unknown


# -- mail -------------------------------------------------------------------------------------------------------------

def mail_sink(server, extra):
    return (f"mail: {{type: smtp, server: '127.0.0.1:{server.port}', from: aimaster@example.org, "
            f"to: [ops@example.org, ml@example.org]{extra}}}")


def test_a_mail_arrives_as_people_read_it(home, servers):
    server = servers("mail")
    assert try_sink(home, mail_sink(server, ", security: none"))["delivered"]
    (entry,) = server.received()
    assert entry["from"] == "aimaster@example.org" and entry["to"] == ["ops@example.org", "ml@example.org"]
    mail = message_from_string(entry["mail"], policy=policy.default)
    assert mail["Subject"].startswith("[info] Test Message: ")
    assert mail["Message-ID"] and mail["Date"].datetime
    assert "a test of sink 'mail'" in mail.get_content()


@pytest.mark.parametrize("security", ("starttls", "tls"))
def test_a_mail_goes_encrypted_and_with_a_password(home, servers, tmp_path, security):
    certificate = make_certificate(tmp_path, "mx")
    server = servers("mail", certificate=certificate,
                     options=["--auth"] + (["--tls", "--plain-auth"] if security == "tls" else []))
    extra = f", security: {security}, ca_file: '{certificate}', user: me, password: {{env: MAIL_PASSWORD}}"
    told = try_sink(home, mail_sink(server, extra), env={"MAIL_PASSWORD": "pass"})
    assert told["delivered"], told
    assert [(entry["tls"], entry["authenticated"]) for entry in server.received()] == [(True, True)]
    told = try_sink(home, mail_sink(server, extra), env={"MAIL_PASSWORD": "wrong"})
    assert not told["delivered"] and "535" in told["answer"] and "wrong" not in told["answer"], told
    told = try_sink(home, mail_sink(server, f", security: {security}"))
    assert not told["delivered"] and "certificate" in told["answer"], told
    assert len(server.received()) == 1


def test_a_mail_server_without_encryption_is_told_nothing(home, servers):
    server = servers("mail")
    told = try_sink(home, mail_sink(server, ""))
    assert not told["delivered"] and "STARTTLS" in told["answer"], told
    assert server.received() == []


def test_a_mailbox_that_is_full_or_not_there(home, servers):
    server = servers("mail")
    for name, code in (("nobody", "550"), ("full", "452")):
        sink = (f"mail: {{type: smtp, server: '127.0.0.1:{server.port}', security: none, from: a@b.c, "
                f"to: {name}@example.org}}")
        told = try_sink(home, sink)
        assert not told["delivered"] and code in told["answer"], told


# -- commands ---------------------------------------------------------------------------------------------------------

def test_a_command_gets_the_event(home):
    out = home.folder / "told"
    script = write_file(home, "#!/bin/sh\ncat > told\nenv | grep ^AIMASTER_EVENT_ >> told\n", "page.sh")
    script.chmod(0o755)
    assert try_sink(home, "page: {type: command, command: [./page.sh]}")["delivered"]
    event, *variables = out.read_text().splitlines()
    assert json.loads(event)["type"] == "aimaster.notify.test"
    assert "AIMASTER_EVENT_TITLE=Test Message" in variables


def test_a_command_that_does_not_end_is_killed_with_all_its_processes(home):
    pids = home.folder / "pids"
    script = f"sleep 61 & echo $! $$ > '{pids}'; wait"
    told = try_sink(home, f"page: {{type: command, command: [/bin/sh, -c, \"{script}\"], timeout: 500ms}}")
    assert not told["delivered"] and "not finished after 500 ms: killed" in told["answer"], told
    for pid in pids.read_text().split():
        wait_for(lambda pid=pid: not command_line(int(pid)), f"{pid} to be gone")


def test_a_command_that_fails_says_why(home):
    told = try_sink(home, "page: {type: command, command: [/bin/sh, -c, 'echo no signal; exit 3']}")
    assert not told["delivered"] and told["answer"] == "exit code 3: no signal", told
    told = try_sink(home, "page: {type: command, command: [/no/such/program]}")
    assert not told["delivered"] and "No such file" in told["answer"], told


def test_what_a_command_started_ends_with_the_master(home):
    pids = home.folder / "pids"
    file = notify_file(home, "page: {type: command, command: "
                             f"[/bin/sh, -c, \"sleep 61 & echo $! $$ >> '{pids}'; wait\"], timeout: 50s}}",
                       rest="drain: 0\n")
    job = home.run("--detach", "--notify", file, "--", *python("import time; time.sleep(60)")).stdout.strip()
    wait_for(lambda: pids.exists() and pids.read_text().endswith("\n"), "the command to run")
    first = pids.read_text().split()
    kill(home.master_pid(job))
    for pid in first:
        wait_for(lambda pid=pid: not command_line(int(pid)), f"{pid} to be gone", timeout=5)
    wait_for(lambda: len(pids.read_text().split()) > 2, "the same to be told by the next courier")
    assert home.call("stop", "--now", job).code == 0
    wait_for(lambda: not home.leftovers(), "all to be gone")


def test_a_mail_that_is_too_large_holds_up_nothing(home, servers):
    server = servers("mail")
    file = notify_file(home, f"mail: {{type: smtp, server: '127.0.0.1:{server.port}', security: none, from: a@b.c, "
                             "to: large@example.org}", rules="- {events: Job Submitted, sinks: [SINKS]}")
    assert home.run("--notify", file, "--", *QUIET).code == 0
    assert sinks_of(home, home.job())["mail"]["gave_up"] == 1
    (told,) = [event for event in events_of(home, home.job()) if event["type"] == "aimaster.notify.gave_up"]
    assert "552" in told["data"]["message"]


# -- at least once, and at most once more -----------------------------------------------------------------------------

def test_what_fails_is_tried_again_and_the_order_stays(home, servers):
    sink = servers()
    file = notify_file(home, f"flaky: {{type: webhook, url: '{sink.origin}/flaky/2'}}",
                       f"busy: {{type: webhook, url: '{sink.origin}/busy/1/2'}}")
    assert home.run("--notify", file, "--", *QUIET).code == 0
    job = home.job()
    wait_for(lambda: not home.leftovers(), "the master to have sent all", timeout=40)
    flaky = [event["id"] for event in sink.events("/flaky/2")]
    assert flaky[0] == flaky[1] == flaky[2] and flaky[2:] == sent_events(home, job)
    first, second = sink.received("/busy/1/2")[:2]
    assert second["time"] - first["time"] >= 1.9, "it was asked to wait for 2 s"
    assert all(one["waiting"] == 0 and one["trouble"] == "" for one in sinks_of(home, job).values())
    assert "did not take a message: 500: not now" in (home.directory(job) / "aimaster.log").read_text()


def test_giving_up_is_an_event_and_holds_up_nothing(home, servers):
    sink = servers()
    file = notify_file(home, f"dead: {{type: webhook, url: '{sink.origin}/status/503', retry_for: 0}}",
                       f"good: {{type: webhook, url: '{sink.origin}/ok'}}",
                       rules="- {events: Job Submitted, sinks: [SINKS]}")
    assert home.run("--notify", file, "--", *QUIET).code == 0
    job = home.job()
    (told,) = [event for event in events_of(home, job) if event["type"] == "aimaster.notify.gave_up"]
    assert told["subject"] == "dead" and "503" in told["data"]["message"]
    states = sinks_of(home, job)
    assert (states["dead"]["gave_up"], states["dead"]["delivered"], states["dead"]["waiting"]) == (1, 0, 0)
    assert states["good"]["delivered"] == 1
    assert "giving up 1 event after 1 try" in (home.directory(job) / "aimaster.log").read_text()
    assert "1 given up; its last answer: 503" in home.call("get", job).stdout


@pytest.mark.parametrize("victim", ("master", "courier"))
def test_a_kill_between_event_and_delivery_loses_nothing_and_repeats_at_most_once(home, servers, victim):
    sink = servers()
    file = notify_file(home, f"ops: {{type: webhook, url: '{sink.origin}/gate', per_minute: 1000}}")
    waits = python(f"import os, time\nwhile not os.path.exists({str(sink.gate)!r}): time.sleep(0.02)")
    job = home.run("--detach", "--notify", file, "--", *waits).stdout.strip()
    wait_for(sink.received, "the first event to be under way")
    killed = home.master_pid(job) if victim == "master" else courier_pid(home)
    kill(killed)
    wait_for(lambda: len(sink.received()) > 1, "the same event to be under way again")
    sink.gate.touch()
    home.wait_for_status("Succeeded", job)
    wait_for(lambda: not home.leftovers(), "the master to have sent all", timeout=40)
    ids = [event["id"] for event in sink.events()]
    wanted = sent_events(home, job)
    assert set(ids) == set(wanted), "nothing is lost"
    assert sorted(ids) == sorted(wanted + wanted[:1]), "the one that was under way came twice, and no other"
    assert list(dict.fromkeys(ids)) == wanted, "in order"


def test_kills_again_and_again_lose_nothing(home, servers):
    sink = servers()
    file = notify_file(home, f"ops: {{type: webhook, url: '{sink.origin}/ok', per_minute: 1000}}")
    running = home.start("run", "--workers", 2, "--enable-job-restart=True", "--stop-grace", 1, "--notify", file, "--",
                         *FAILS_ONCE)
    job = home.job_of(running)
    kills = 0
    while running.process.poll() is None and kills < 3:
        before = len(sink.received())
        wait_for(lambda: len(sink.received()) > before or running.process.poll() is not None, "one more event")
        if running.process.poll() is None:
            kill(home.master_pid(job))
            kills += 1
    assert running.wait().code == 0
    wait_for(lambda: not home.leftovers(), "the master to have sent all", timeout=40)
    ids = [event["id"] for event in sink.events()]
    assert list(dict.fromkeys(ids)) == sent_events(home, job)
    assert len(ids) - len(set(ids)) <= kills


def test_what_is_left_at_the_end_is_told_and_sent_by_a_resume(home, servers):
    port = free_port()
    file = notify_file(home, f"ops: {{type: webhook, url: 'http://127.0.0.1:{port}/ok'}}", rest="drain: 0\n")
    assert home.run("--notify", file, "--", *QUIET).code == 0
    job = home.job()
    wait_for(lambda: not home.leftovers(), "the master to leave")
    waiting = sinks_of(home, job)["ops"]["waiting"]
    assert waiting == len(sent_events(home, job)) > 0
    told = home.call("events", job)
    assert told.code == 0 and f"{waiting} events not delivered to sink 'ops'" in told.stderr, told
    assert f"{waiting} waiting" in home.call("get", job).stdout
    sink = servers(port=port)
    file_of_job = home.directory(job) / "notify.json"
    plan = json.loads(file_of_job.read_text())
    plan["drain_ms"] = 20000
    file_of_job.write_text(json.dumps(plan))
    resumed = home.call("resume", job)
    assert resumed.code == 0 and f"ops (webhook): {waiting} delivered" in resumed.stderr, resumed
    assert [event["id"] for event in sink.events()] == sent_events(home, job)
    assert sinks_of(home, job)["ops"]["waiting"] == 0
    again = home.call("resume", job)
    assert again.code == 0 and "delivered" not in again.stderr, "nothing waits: nothing is started"


def test_a_plan_that_is_of_no_use_is_told_once(home, servers):
    file = notify_file(home, f"ops: {{type: webhook, url: '{servers().origin}/ok'}}")
    job = home.run("--detach", "--notify", file, "--", *python("import time; time.sleep(60)")).stdout.strip()
    wait_for(lambda: sinks_of(home, job)["ops"]["delivered"], "a message")
    file_of_job = home.directory(job) / "notify.json"
    plan = json.loads(file_of_job.read_text())
    plan["sinks"][0]["per_minute"] = 0
    file_of_job.write_text(json.dumps(plan))
    kill(courier_pid(home))
    log = home.directory(job) / "aimaster.log"
    wait_for(lambda: "per_minute of sink 'ops' is out of bounds" in log.read_text(), "the reason in the log")
    time.sleep(3)
    assert log.read_text().count("no notifications: ") == 1 and courier_pid(home) is None
    assert home.call("stop", "--now", job).code == 0
    wait_for(lambda: not home.leftovers(), "the master to leave at once", timeout=10)


def test_what_is_not_for_a_sink_is_passed_by(home, servers):
    sink = servers()
    file = notify_file(home, f"ops: {{type: webhook, url: '{sink.origin}/ok'}}",
                       rules="- {events: aimaster.job.failed, sinks: [SINKS]}")
    assert home.run("--notify", file, "--", *QUIET).code == 0
    wait_for(lambda: not home.leftovers(), "the master to leave")
    outbox = sqlite3.connect(home.directory() / "journal.db").execute("SELECT position, delivered FROM outbox")
    assert outbox.fetchone() == (events_of(home, home.job())[-1]["data"]["number"], 0)


def test_a_sink_that_stalls_keeps_nobody(home, servers):
    sink = servers()
    file = notify_file(home, f"ops: {{type: webhook, url: '{sink.origin}/stall', timeout: 60s}}", rest="drain: 0\n")
    finished = home.run("--workers", 2, "--enable-job-restart=True", "--stop-grace", 1, "--notify", file, "--",
                        *FAILS_ONCE)
    assert finished.code == 0, finished
    assert len(home.records()) == 1
    wait_for(lambda: not home.leftovers(), "the master to leave")


def test_a_storm_is_told_in_a_few_messages(home, servers):
    sink = servers()
    file = notify_file(home, f"ops: {{type: webhook, url: '{sink.origin}/ok', per_minute: 2}}",
                       rules="- {events: '*', severity: warning, sinks: [SINKS]}", rest="drain: 100s\n")
    # Each of the workers fails three times, within a few seconds.
    home.run("--workers", 12, "--job-execution-mode=Async", "--fault-tolerant-policy=OnFailure",
             "--enable-job-restart=True", "--max-num-of-same-error", 2, "--stop-grace", 1, "--notify", file, "--",
             *python("raise SystemExit(9)"))
    job = home.job()
    wait_for(lambda: not home.leftovers(), "the master to have sent all", timeout=90)
    wanted = [event["data"]["number"] for event in events_of(home, job) if event["data"]["severity"] != "info"]
    assert len(wanted) > 30
    messages = sink.events()
    digests = [event["data"] for event in messages if event["type"] == "aimaster.notify.digest"]
    assert digests and len(messages) <= 4, [event["type"] for event in messages]
    assert sum(digest["events"] for digest in digests) + len(messages) - len(digests) == len(wanted)
    whole = [event["data"].get("event", event)["type"] for event in messages]
    assert "aimaster.job.failed" in whole, "the worst one is told in whole"
    assert digests[0]["message"].startswith(f"and {digests[0]['events'] - 1} more: ")


# -- files and secrets ------------------------------------------------------------------------------------------------

def test_a_bad_file_is_refused_before_anything_starts(home):
    file = write_file(home, "sinks:\n  ops: {type: webhook, url: 'https://a', timout: 3s}\n")
    for arguments in (("run", "--notify", file, "--", *QUIET), ("notify", "test", file)):
        finished = home.call(*arguments)
        assert finished.code == 2 and finished.stdout == "", finished
        assert f"{file}:2: sink 'ops': unknown key 'timout'; did you mean timeout?" in finished.stderr, finished
    missing = home.run("--notify", home.folder / "none.yaml", "--", *QUIET)
    assert missing.code == 2
    one_line_error(missing, "none.yaml")
    assert not (home.path / "jobs").exists()


def test_no_secret_is_shown_or_journaled(home, servers):
    sink = servers()
    key = write_file(home, SECRET + "-file\n", "key")
    file = notify_file(home, f"a: {{type: webhook, url: '{sink.origin}/status/404/{SECRET}', secret: {SECRET}, "
                             f"retry_for: 0, headers: {{Authorization: {SECRET}}}}}",
                       f"b: {{type: webhook, url: {{env: HOOK}}, secret: {{file: '{key}'}}}}")
    url = f"{sink.origin}/status/500?{SECRET}"
    assert home.run("--notify", file, "--", *QUIET, env={"HOOK": url}).code == 0
    job = home.job()
    shown = "".join(home.call(*command, job).stdout + home.call(*command, job, "--json").stdout
                    for command in (("get",), ("events",), ("explain",), ("records",)))
    shown += home.call("list", "--json").stdout + home.call("notify", "test", file, env={"HOOK": url}).stdout
    assert SECRET not in shown
    directory = home.directory(job)
    wait_for(lambda: not home.leftovers(), "the master to leave", timeout=60)
    holders = {path.name for path in directory.iterdir() if path.is_file() and SECRET.encode() in path.read_bytes()}
    assert holders == {"notify.json"}, holders
    assert (directory / "notify.json").stat().st_mode & 0o777 == 0o600
    assert SECRET + "-file" not in (directory / "notify.json").read_text(), "a secret in a file stays there"
    assert sqlite3.connect(directory / "journal.db").execute("SELECT count(*) FROM outbox").fetchone() == (2,)


def test_a_job_without_notifications_has_no_courier(home):
    running = home.start("run", "--", *python("import time; time.sleep(60)"))
    home.wait_for_ranks(1)
    assert courier_pid(home) is None
    running.signal(signal.SIGINT)
    running.wait()
    assert home.get()["notifications"] == []
    assert not os.path.exists(home.directory() / "notify.json")
