"""Servers that notifications are sent to, each a process of its own: `python3 sink_servers.py http|mail OPTIONS`.

What arrives is written to a file, a JSON object a line, before it is answered. How an HTTP request is answered is said
by its path, so that one server plays all the parts:

    /ok                200
    /flaky/2           500 twice, then 200
    /busy/1/2          once 429 with "Retry-After: 2", then 200
    /status/418        that, with the path in its body
    /robot/310000      200, and that code in the body
    /redirect/ok       307 to /ok
    /stall             no answer, ever
    /gate              200 as soon as the file GATE is there
    /hangup            takes the request and closes the connection
    /half              closes in the middle of the answer
"""
import argparse
import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PYTHON = "/usr/bin/python3"
LOCK = threading.Lock()


def write_down(path, entry):
    with LOCK, open(path, "a") as file:
        file.write(json.dumps(entry) + "\n")


# -- servers ----------------------------------------------------------------------------------------------------------

def make_handler(options):
    seen = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            with LOCK:
                before = seen[self.path] = seen.get(self.path, -1) + 1
            write_down(options.log, {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()},
                                     "body": body, "time": time.monotonic()})
            part, *words = self.path.partition("?")[0].strip("/").split("/")
            getattr(self, part)(before, *words)

        def answer(self, status, text="", **headers):
            body = text.encode()
            self.send_response(status)
            for name, value in {"Content-Length": len(body), **headers}.items():
                self.send_header(name.replace("_", "-"), str(value))
            self.end_headers()
            self.wfile.write(body)

        def ok(self, _before):
            self.answer(200, "ok")

        def flaky(self, before, times):
            self.answer(*(500, "not now") if before < int(times) else (200, "ok"))

        def busy(self, before, times, seconds):
            if before < int(times):
                self.answer(429, "too many", Retry_After=seconds)
            else:
                self.answer(200, "ok")

        def status(self, _before, status):
            self.answer(int(status), f"nothing for {self.path} here")

        def robot(self, _before, code):
            self.answer(200, json.dumps({"errcode": int(code), "code": int(code), "errmsg": f"robot {code}"}))

        def redirect(self, _before, where):
            self.answer(307, "", Location="/" + where)

        def stall(self, _before):
            time.sleep(3600)

        def gate(self, _before):
            while not os.path.exists(options.gate):
                time.sleep(0.01)
            self.answer(200, "ok")

        def hangup(self, _before):
            self.close_connection = True

        def half(self, _before):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of")
            self.close_connection = True

    return Handler


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass  # the other side was killed


def serve_http(options):
    server = Server(("127.0.0.1", options.port), make_handler(options))
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    Path(options.ready).write_text(str(server.server_address[1]))
    server.serve_forever()


def serve_mail(options):
    from aiosmtpd.controller import Controller
    from aiosmtpd.smtp import AuthResult

    class Handler:
        async def handle_RCPT(self, _server, _session, envelope, address, _options):
            if address.startswith("nobody@"):
                return "550 5.1.1 there is nobody of that name"
            if address.startswith("large@"):
                return "552 5.3.4 the mail is too large"
            if address.startswith("full@"):
                return "452 4.2.2 the mailbox is full"
            envelope.rcpt_tos.append(address)
            return "250 OK"

        async def handle_DATA(self, _server, session, envelope):
            write_down(options.log, {"from": envelope.mail_from, "to": envelope.rcpt_tos,
                                     "mail": envelope.content.decode(), "tls": session.ssl is not None or options.tls,
                                     "authenticated": bool(session.authenticated)})
            return "250 2.0.0 taken"

    def authenticate(_server, _session, _envelope, mechanism, data):
        return AuthResult(success=mechanism in ("LOGIN", "PLAIN") and data.login == b"me" and data.password == b"pass",
                          handled=False)

    context = None
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate)
    settings = {"authenticator": authenticate, "auth_required": options.auth,
                "auth_require_tls": not options.plain_auth}
    if context and options.tls:
        settings["ssl_context"] = context
    elif context:
        settings["tls_context"] = context
    port = options.port or free_port()
    Controller(Handler(), hostname="127.0.0.1", port=port, **settings).start()
    Path(options.ready).write_text(str(port))
    threading.Event().wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("http", "mail"))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ready", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--gate", default="")
    parser.add_argument("--certificate", default="")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--auth", action="store_true")
    parser.add_argument("--plain-auth", action="store_true")
    options = parser.parse_args()
    (serve_http if options.kind == "http" else serve_mail)(options)


# -- the side of the tests --------------------------------------------------------------------------------------------

def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Sink:
    """A server that runs, and what it was sent."""

    def __init__(self, folder, kind, name="sink", port=0, certificate="", options=()):
        self.log = folder / f"{name}.log"
        self.gate = folder / f"{name}.gate"
        ready = folder / f"{name}.ready"
        ready.unlink(missing_ok=True)
        command = [PYTHON, __file__, kind, "--port", str(port), "--ready", str(ready), "--log", str(self.log),
                   "--gate", str(self.gate), "--certificate", str(certificate), *options]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while not ready.exists() or not ready.read_text():
            assert self.process.poll() is None and time.monotonic() < deadline, f"{command} does not start"
            time.sleep(0.02)
        self.port = int(ready.read_text())
        self.origin = f"http{'s' if certificate else ''}://127.0.0.1:{self.port}"

    def received(self, path=None):
        if not self.log.exists():
            return []
        entries = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [entry for entry in entries if path is None or entry["path"].partition("?")[0] == path]

    def events(self, path=None):
        """The CloudEvents among them."""
        return [json.loads(entry["body"]) for entry in self.received(path)]

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()


def make_certificate(folder, name, host="127.0.0.1"):
    """A private key and a certificate for it, signed by itself, in one file."""
    path, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", key, "-out", path, "-days", "2", "-subj", f"/CN={host}", "-addext",
                    f"subjectAltName={'IP' if host[0].isdigit() else 'DNS'}:{host}"],
                   check=True, stderr=subprocess.DEVNULL)
    path.write_bytes(path.read_bytes() + key.read_bytes())
    return path


if __name__ == "__main__":
    sys.exit(main())
