"""Where a job's master listens: wrong addresses and keys are refused before there is a job, and the right ones are
shown."""
import re
import subprocess

import pytest

from harness import WORKER, kill, one_line_error, wait_for
from test_security import make_certificate

LONG = ["--", *WORKER, "--steps", "600"]


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1"])
def test_an_address_of_another_machine_is_refused_at_once(home, address):
    refused = home.run("--listen", address, "--", "true")
    assert refused.code == 2 and refused.seconds < 3, refused
    one_line_error(refused, "--listen", address)
    assert not (home.path / "jobs").exists()


def test_localhost_is_an_address_too(home):
    assert home.run("--listen", "localhost", "--", "true").code == 0


def test_a_key_with_a_passphrase_is_refused_with_the_cure(home):
    certificate, key = make_certificate(home.folder)
    for words in (["pkcs8", "-topk8", "-passout", "pass:secret"], ["ec", "-aes256", "-passout", "pass:secret"]):
        locked = home.folder / "locked.pem"
        subprocess.run(["openssl", *words, "-in", key, "-out", locked], check=True, capture_output=True)
        refused = home.run("--tls-cert", certificate, "--tls-key", locked, "--", "true")
        assert refused.code == 2, refused
        one_line_error(refused, "--tls-key", "passphrase", "openssl pkey")


def test_port_and_fingerprint_are_shown(home):
    running = home.start("run", "--listen", "0.0.0.0", "--stop-grace=1", *LONG)
    said = wait_for(lambda: re.search(r"master listens on (\S+):(\d+), TLS, certificate SHA-256 ([0-9a-f]{64})",
                                      running.stderr), "run to say where")
    state = home.get()
    assert (state["listen_host"], state["listen_port"]) == (said[1], int(said[2]))
    assert state["tls_fingerprint"] == said[3]
    assert f"on {said[1]}:{said[2]}, TLS, certificate SHA-256 {said[3]}" in home.call("get", home.job()).stdout
    assert home.call("stop", home.job()).code == 0
    running.wait()
    detached = home.run("--detach", "--listen", "127.0.0.1", "--stop-grace=1", *LONG)
    assert detached.code == 0 and re.fullmatch(r"dlc\w{13}\n", detached.stdout), detached
    assert re.fullmatch(r"aimaster: the job's master listens on 127\.0\.0\.1:\d+\n", detached.stderr), detached
    assert home.call("stop", detached.stdout.strip()).code == 0


def test_a_certificate_that_is_away_for_a_moment_is_waited_for(home):
    certificate, key = make_certificate(home.folder)
    home.run("--detach", "--tls-cert", certificate, "--tls-key", key, "--stop-grace=1", *LONG)
    job = home.job()
    ranks = home.wait_for_ranks(1, job)
    certificate.rename(home.folder / "away")
    kill(home.master_pid(job))
    wait_for(lambda: "tried again and again" in (told := home.get(job)["trouble"]) and str(certificate) in told,
             "the reason to be told")
    (home.folder / "away").rename(certificate)
    wait_for(lambda: home.get(job)["trouble"] == "", "a master", timeout=30)
    assert home.rank_processes(job) == ranks
    assert home.call("stop", job).code == 0
