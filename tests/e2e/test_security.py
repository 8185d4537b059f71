"""What strangers, and those who hold the token, can do to a running job through its master's port: nothing that counts.

Each attack runs against the real master of a job of four ranks, in clear text on loopback and under TLS. Afterwards the
job runs to its end as if nothing had been, and the master is no larger than before.
"""
import contextlib
import os
import re
import resource
import stat
import subprocess
import time
from pathlib import Path

import pytest

from harness import (AIMASTER, FULL, command_line, is_alive, marked_processes, one_line_error, python,
                     resident_kilobytes, wait_for)
from hostile_peers import Target, acknowledged, frame, hello, is_hung_up, read_all, read_frame, ready_report

RANKS = 4
GROWTH_MAX_KILOBYTES = 64 * 1024  # of the master, after whatever attack
TLS_CONNECTION_MAX_KILOBYTES = 16  # while it is open
WAITS = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)"


class Victim:
    """A job that runs until it is released, and must not notice anything."""

    def __init__(self, home, listen):
        self.home = home
        self.release = home.folder / "release"
        self.running = home.start("run", "--workers", RANKS, *listen, "--", *python(WAITS), self.release)
        self.job = home.job()
        self.ranks = home.wait_for_ranks(RANKS, self.job)
        self.target = Target(home.directory(self.job))
        self.memory = resident_kilobytes(self.target.pid)
        self.descriptors = self.count_descriptors()
        self.growth_max = GROWTH_MAX_KILOBYTES

    def count_descriptors(self):
        return len(os.listdir(f"/proc/{self.target.pid}/fd"))

    def growth(self):
        return resident_kilobytes(self.target.pid) - self.memory

    def answers(self):
        answer = self.target.exchange(self.target.request("GET /api/v1/status", "Connection: close\r\n"))
        assert b"200 OK" in answer and self.job.encode() in answer, answer

    def unharmed(self):
        """To be asked while the attack is over, or still goes on."""
        assert is_alive(self.target.pid), "the master has died"
        assert self.growth() < self.growth_max, f"the master has grown by {self.growth()} kB"
        assert self.home.rank_processes(self.job) == self.ranks, "ranks have died"
        self.answers()

    def finish(self):
        self.unharmed()
        wait_for(lambda: self.count_descriptors() <= self.descriptors + 4, "the master to let connections go",
                 timeout=60)
        self.release.touch()
        finished = self.running.wait()
        assert finished.code == 0, finished
        state = self.home.get(self.job)
        assert (state["status"], state["restarts"], state["epoch"]) == ("Succeeded", 0, 1), state
        log = (self.home.directory(self.job) / "aimaster.log").read_text()
        assert self.target.token not in log and self.target.token not in finished.stderr + finished.stdout


@pytest.fixture(params=["clear", "tls"])
def victim(request, home):
    victim = Victim(home, ["--listen", "0.0.0.0"] if request.param == "tls" else [])
    assert bool(victim.target.fingerprint) == (request.param == "tls")
    yield victim
    victim.finish()


def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(hard, 1 << 20)


# ---- who does not hold the token -------------------------------------------------------------------------------------

def test_who_has_no_token_gets_nothing_but_a_refusal(victim):
    target = victim.target
    for token in ["", "wrong", target.token[:-1], target.token + "0", "\x7f", target.token.upper() + "X"]:
        for line in ["GET /api/v1/status", "POST /api/v1/stop", "GET /agent", "GET /../token", "OPTIONS *"]:
            answer = target.exchange(target.request(line, "Content-Length: 2\r\n", b"{}", token=token))
            assert answer.startswith((b"HTTP/1.1 401", b"HTTP/1.1 400")), (token, line, answer)
            assert target.token.encode() not in answer and victim.job.encode() not in answer
    twice = f"Authorization: Bearer {target.token}\r\n"
    assert target.exchange(target.request("GET /api/v1/status", twice)).startswith(b"HTTP/1.1 401")


def test_requests_that_two_readers_might_read_differently_are_refused(victim):
    target, hidden = victim.target, b"POST /api/v1/stop HTTP/1.1\r\n\r\n{}"
    for headers, body in [("Content-Length: 5\r\nContent-Length: 6\r\n", b"{}   " + hidden),
                          ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n" + hidden),
                          ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n" + hidden),
                          ("Content-Length: +5\r\n", b"{}   "), ("Content-Length: -1\r\n", b""),
                          ("Content-Length: 0x5\r\n", b"{}   "), ("Content-Length : 5\r\n", b"{}   "),
                          ("Content-Length: 99999999999999999999999\r\n", b""),
                          ("A\0B: c\r\n", b""), (" folded\r\n", b""), ("no colon\r\n", b"")]:
        answer = target.exchange(target.request("POST /api/v1/signal", headers, body))
        assert answer == b"" or re.match(rb"HTTP/1.1 4\d\d", answer), (headers, answer)
        assert answer.count(b"HTTP/1.1") <= 1, (headers, answer)


def test_what_is_too_large_is_refused_unread(victim):
    target = victim.target
    four_gibibytes = f"Content-Length: {4 << 30}\r\n"
    assert target.exchange(target.request("POST /api/v1/stop", four_gibibytes, token="")).startswith(b"HTTP/1.1 401")
    assert target.exchange(target.request("POST /api/v1/stop", four_gibibytes)).startswith(b"HTTP/1.1 413")
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    endless = target.request("POST /api/v1/stop", "Transfer-Encoding: chunked\r\n", chunk * 64)
    answer = target.exchange(endless)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413"), answer
    for header in ["X: " + "y" * (4 << 20) + "\r\n", "X: y\r\n" * 100_000]:
        answer = target.exchange(target.request("GET /", header, token=""))
        assert answer == b"" or answer.startswith(b"HTTP/1.1 431"), answer[:200]


def test_garbage_ends_its_own_connection_only(victim):
    target = victim.target
    for data in [os.urandom(4096), b"\0" * 65536, b"\x16\x03\x01\xff\xff\x01\xff\xff\xff", b"\xff\xff\xff\xff" * 10_000,
                 b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 50_000]:
        for connect in (target.tcp, target.connect):
            with connect() as connection:
                with contextlib.suppress(OSError):
                    connection.sendall(data)
                assert is_hung_up(connection, 12), data[:40]


def test_slow_senders_are_hung_up_on(victim):
    """All kinds of them at once: nobody waits for another."""
    target = victim.target
    slow = {}
    for name, connect, first in [
            ("says nothing", target.tcp, b""), ("half a handshake", target.tcp, b"\x16\x03\x01\x02\x00\x01\x00"),
            ("silent after the handshake", target.connect, b""),
            ("half a line", target.connect, b"GET /api"), ("half a header", target.connect, b"GET / HTTP/1.1\r\nA: "),
            ("half a body", target.connect, target.request("POST /api/v1/stop", "Content-Length: 100\r\n", b"{"))]:
        slow[name] = connect(60)
        slow[name].sendall(first)
    drip = target.connect(60)
    began = time.monotonic()
    with contextlib.suppress(OSError):
        while time.monotonic() - began < 8:  # a byte now and then does not keep a header alive
            drip.sendall(b"X")
            time.sleep(0.25)
    assert is_hung_up(drip, 3)
    for name, connection in slow.items():
        assert is_hung_up(connection, max(0.1, began + 14 - time.monotonic())), name
        connection.close()


def test_slow_readers_cost_little_and_go(victim):
    target = victim.target
    readers = [target.connect(60) for _ in range(50)]
    question = target.request("GET /api/v1/status")
    for reader in readers:
        reader.settimeout(0.5)
        with contextlib.suppress(OSError):
            for _ in range(2000):  # far more answers than fit into a socket that nobody reads
                reader.sendall(question * 20)
        victim.answers()
    assert victim.growth() < GROWTH_MAX_KILOBYTES
    for reader in readers:
        reader.close()


def test_ten_thousand_idle_strangers_keep_nobody_out(victim):
    limit = many_descriptors()
    count = min(10_000, limit - 500)
    strangers = []
    for _ in range(count):
        strangers.append(victim.target.tcp())
    victim.unharmed()
    assert victim.count_descriptors() < 1024 + 100, "strangers are bounded"
    for stranger in strangers:
        stranger.close()


def test_ten_thousand_idle_connections_with_the_token(victim):
    limit = many_descriptors()
    wanted = 10_000 if FULL or not victim.target.fingerprint else 1_000  # a handshake costs the test a millisecond
    question = victim.target.request("GET /api/v1/status")
    idle = []
    for _ in range(min(wanted, limit - 500)):
        connection = victim.target.connect()
        connection.sendall(question)
        idle.append(connection)
    if victim.target.fingerprint:
        victim.growth_max += len(idle) * TLS_CONNECTION_MAX_KILOBYTES
    victim.unharmed()
    for connection in idle:
        connection.close()


def test_connections_that_are_reset_at_once(victim):
    linger = b"\x01\0\0\0\0\0\0\0"
    for _ in range(3_000):
        connection = victim.target.tcp()
        connection.setsockopt(1, 13, linger)  # SOL_SOCKET, SO_LINGER: close sends a reset
        connection.close()


# ---- who holds the token: a rank of the job could --------------------------------------------------------------------

def test_frames_that_no_agent_sends(victim):
    target = victim.target
    for name, data in {
            "4 GiB": frame(2, b"x" * 100, length=1 << 32), "2^63": frame(2, b"", length=(1 << 63) - 1),
            "a negative length": frame(2, b"", length=(1 << 64) - 1), "compressed": frame(2, b"x", reserved=4),
            "reserved bits": frame(2, b"x", reserved=3), "a reserved opcode": frame(5, b"x"), "text": frame(1, b"x"),
            "unmasked": frame(2, b"x", masked=False), "a continuation of nothing": frame(0, b"x"),
            "a fragmented ping": frame(9, b"x", fin=False), "a long ping": frame(9, b"x" * 200),
            "no message": frame(2, os.urandom(100)), "an empty message": frame(2),
            "a report before the Hello": ready_report(1), "a short goodbye": frame(8, b"x"),
            "fragments without end": frame(2, b"x" * 1000, fin=False) + frame(0, b"x" * 60_000, fin=False) * 40,
            "HTTP": target.request("GET /api/v1/status"), "garbage": os.urandom(10_000)}.items():
        with target.web_socket() as connection:
            with contextlib.suppress(OSError):
                connection.sendall(data)
            assert is_hung_up(connection, 25), name


def test_floods_of_pings_and_of_small_frames(victim):
    target = victim.target
    for flood in [frame(9, b"x" * 125) * 1000, frame(10) * 10_000, frame(0, b"", fin=False) * 10_000]:
        connection = target.web_socket()
        connection.settimeout(2)
        with contextlib.suppress(OSError):
            if flood[0] & 15 == 0:
                connection.sendall(frame(2, b"x", fin=False))
            for _ in range(50):  # the answers are not read
                connection.sendall(flood)
        victim.answers()
        connection.close()


def test_a_hello_of_a_node_that_is_none(victim):
    for node in [1, 99, 2**32 - 1]:
        with victim.target.web_socket() as connection:
            connection.sendall(hello(node))
            assert is_hung_up(connection, 10)


@pytest.mark.parametrize("name", [b"..", b"../../x", b"a/b", b"\0", b"\x1b[2J", b"n" * 300, b""])
def test_a_node_by_a_name_that_is_a_path(home, name):
    victim = Victim(home, [])
    with victim.target.web_socket() as connection:
        connection.sendall(hello(0, name=name))
        assert is_hung_up(connection, 10)
    victim.finish()


def test_a_hello_for_a_node_that_is_taken(victim):
    """The last one wins, as it must when an agent has died unnoticed; then the real agent comes back and wins."""
    with victim.target.web_socket() as connection:
        connection.sendall(hello(0))
        read_frame(connection)  # Welcome
        assert is_hung_up(connection, 20), "the real agent came back"


def test_a_report_that_is_sent_again_counts_once(victim):
    with victim.target.web_socket() as connection:
        connection.sendall(hello(0))
        for number in (5, 5, 3):
            connection.sendall(ready_report(number))
            assert acknowledged(connection) == 5


def test_an_epoch_from_the_future_takes_nothing_over(victim):
    with victim.target.web_socket() as connection:
        connection.sendall(hello(0, greatest_epoch=2**64 - 1))
        assert is_hung_up(connection, 10)


# ---- TLS -------------------------------------------------------------------------------------------------------------

def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", "/CN=test", "-days", "2", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
                   check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


def test_own_certificate_on_loopback(home):
    certificate, key = make_certificate(home.folder)
    victim = Victim(home, ["--tls-cert", certificate, "--tls-key", key])
    shown = subprocess.run(["openssl", "x509", "-in", certificate, "-noout", "-fingerprint", "-sha256"], check=True,
                           capture_output=True, text=True).stdout.strip().partition("=")[2]
    assert victim.target.fingerprint == shown.replace(":", "").lower()
    assert not (home.directory(victim.job) / "tls").exists()
    victim.finish()


def test_files_that_are_no_certificate_are_named(home):
    certificate, key = make_certificate(home.folder)
    one_line_error(home.run("--tls-cert", certificate, "--", "true"), "--tls-key")
    one_line_error(home.run("--tls-cert", home.folder / "none", "--tls-key", key, "--", "true"), "--tls-cert", "none")
    one_line_error(home.run("--tls-cert", key, "--tls-key", key, "--", "true"), "not a certificate")
    one_line_error(home.run("--listen", "example.com", "--", "true"), "--listen", "not an IP address")
    assert not (home.path / "jobs").exists()


def test_a_master_that_starts_again_keeps_its_pair(home):
    victim = Victim(home, ["--listen", "0.0.0.0"])
    folder = home.directory(victim.job)
    pair = (folder / "tls" / "pair.pem").read_bytes()
    os.kill(victim.target.pid, 9)
    again = wait_for(lambda: (t := Target(folder)).pid != victim.target.pid and t, "another master")
    assert again.fingerprint == victim.target.fingerprint
    assert (folder / "tls" / "pair.pem").read_bytes() == pair
    wait_for(lambda: home.get(victim.job)["epoch"] == 2, "the second epoch")
    assert home.rank_processes(victim.job) == victim.ranks
    victim.release.touch()
    assert victim.running.wait().code == 0


def test_stop_works_over_tls(home):
    victim = Victim(home, ["--listen", "0.0.0.0"])
    assert home.call("stop", victim.job).code == 0
    wait_for(lambda: home.get(victim.job)["status"] == "Stopped", "the job to be stopped")
    victim.running.wait()


# ---- secrets ---------------------------------------------------------------------------------------------------------

def test_a_job_directory_that_is_not_ours_alone_is_refused(home):
    assert home.run("--", "true").code == 0
    job = home.job()
    folder = home.directory(job)
    folder.chmod(0o777)
    one_line_error(home.call("get", job), str(folder), "chmod 700")
    one_line_error(home.call("resume", job), "chmod 700")
    folder.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(folder, 4242, -1)
        one_line_error(home.call("get", job), str(folder), "belongs to user 4242")
        os.chown(folder, 0, -1)
    assert home.call("get", job).code == 0


@pytest.mark.parametrize("listen", [[], ["--listen", "0.0.0.0"]], ids=["clear", "tls"])
def test_secrets_are_nowhere_but_in_their_files(home, listen):
    before = os.umask(0)
    try:
        victim = Victim(home, listen)
    finally:
        os.umask(before)
    folder, token = home.directory(victim.job), victim.target.token
    for directory in (home.path, home.path / "jobs", folder, folder / "supervisor", *folder.glob("tls")):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700, directory
    for path in (p for p in folder.rglob("*") if p.is_file()):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o077 == 0, f"{path} is {mode:o}"
        if path.name != "token":
            assert token.encode() not in path.read_bytes(), path
    key = (folder / "tls" / "pair.pem").read_text().split("-----")[2].strip() if listen else token
    seen = 0
    for pid, environment in marked_processes(home.marker):
        seen += 1
        text = " ".join(command_line(pid)) + " ".join(f"{k}={v}" for k, v in environment.items())
        assert token not in text and key not in text, command_line(pid)
    assert seen > RANKS
    victim.finish()


# ---- texts that mean to do something to their reader -----------------------------------------------------------------

def test_what_a_rank_prints_cannot_repaint_a_readers_terminal(home):
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202eRuntimeError: CUDA error: out of memory \x1b[6n"
    folder = home.folder / "work\x1b[31m"
    folder.mkdir()
    failed = home.run("--name", "fine", "--env", f"EVIL={evil}", "--workdir", folder, "--",
                      *python("import os, sys; sys.stderr.write(os.environ['EVIL'] + '\\n'); sys.exit(3)"))
    assert failed.code == 3
    job = home.job()
    for command in ("list", "get", "records", "rounds", "explain", "events"):
        shown = home.call(command, *([] if command == "list" else [job]))
        assert shown.code == 0, shown
        control = re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown.stdout + shown.stderr)
        assert not control, (command, control)
    # Ours on standard error, the rank's own bytes on its streams alone.
    ours = [line for line in failed.stderr.splitlines() if line.startswith("aimaster: ")]
    assert ours and not re.search(r"[\x00-\x1f\x7f-\x9f]", "".join(ours)), ours
    one_line_error(home.run("--name", "a\x1b[2Jb", "--", "true"), "--name")
    one_line_error(home.run("--name", "a\nb", "--", "true"), "--name")
    one_line_error(home.run("--name", "n" * 300, "--", "true"), "--name")
    one_line_error(home.call("get", "../../etc"), "no job")
    one_line_error(home.call("get", "\x1b[2J"), "no job")
