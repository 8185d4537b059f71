"""One call to the agent: HTTP over the Unix socket that AIMASTER_SOCKET names.

Think of a letter box: a call opens a connection of its own, drops the request in, and leaves. What is dropped in stays
there when this process ends the next moment, and is read when a stopped agent wakes up, since the kernel keeps it.
Neither connect nor send ever waits: where the box is full, the call says so. Only who wants the answer stands by, and
for no longer than WAIT_SECONDS.

A connection that stays open costs less per call and was rejected: a forked data loader shares it, a program that closes
all its descriptors gives its number to another file, and the agent closes it between two calls. A thread with a queue
was rejected too: it is gone after a fork, and takes the interpreter's lock from the training.
"""
import json
import os
import socket
import time

from . import _status
from ._status import Status

WAIT_SECONDS = 0.05
ANSWER_BYTES_MAX = 1 << 16

_now_ns = getattr(time, "monotonic_ns", lambda: int(time.monotonic() * 1e9))  # Python 3.6 has none


class Agent(object):
    """The agent of this process, as its environment names it. What every request says is put together once."""

    def __init__(self):
        environment = os.environ
        self.path = environment.get("AIMASTER_SOCKET")
        # Who speaks: the agent finds out by the process, and goes by this where it can't, since the process is gone.
        identity = {}
        for name, variable in (("round", "AIMASTER_ROUND"), ("attempt", "AIMASTER_ATTEMPT")):
            value = environment.get(variable, "")
            if value.isdigit():
                identity[name] = int(value)
        if environment.get("AIMASTER_INSTANCE"):
            identity["instance"] = environment["AIMASTER_INSTANCE"]
        self._identity = json.dumps(identity)[1:-1] + (", " if identity else "")

    def has_job(self):
        return bool(self.path)

    def tell(self, target, fields):
        """Hands the request over. OK means that the agent will read it, not that it has."""
        opened = self.send(target, fields)
        if isinstance(opened, Status):
            return opened
        opened.close()
        return _status.DONE

    def ask(self, target, fields):
        """Hands the request over and waits for its answer: a status, and the answer or None."""
        deadline = time.monotonic() + WAIT_SECONDS
        return read(self.send(target, fields), deadline)

    def send(self, target, fields):
        """The connection on which the answer will come, or a status that says why there is none."""
        path = self.path
        if not path:
            return Status(_status.NO_JOB, "not within a job of AIMaster: AIMASTER_SOCKET is not set")
        body = '{%s"at_ns": %d, %s' % (self._identity, _now_ns(), json.dumps(fields)[1:])
        request = ("POST %s HTTP/1.1\r\nHost: agent\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (
            target, len(body), body)).encode("ascii")
        connection = None
        try:
            # The plain class, of which the usual one is a subclass with more to do at each step.
            connection = socket.SocketType(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            connection.connect(path)
            sent = connection.send(request, socket.MSG_NOSIGNAL)
        except (BlockingIOError, InterruptedError):
            connection.close()
            return Status(_status.BUSY, "the agent of this node takes no more calls for now")
        except OSError as problem:
            if connection is not None:
                connection.close()
            return Status(_status.NO_AGENT, "the agent of this node can't be reached at %s: %s" % (
                path, problem.strerror or problem))
        if sent < len(request):  # a fresh socket takes more than any request has, where the system is not narrowed
            connection.close()
            return Status(_status.BUSY, "the socket to the agent takes no %d bytes" % len(request))
        return connection


def read(connection, deadline):
    if isinstance(connection, Status):
        return connection, None
    try:
        return _read(connection, deadline)
    finally:
        connection.close()


def _read(connection, deadline):
    answer = b""
    try:
        while not _is_whole(answer):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise socket.timeout()
            connection.settimeout(remaining)
            part = connection.recv(ANSWER_BYTES_MAX)
            if not part or len(answer) > ANSWER_BYTES_MAX:
                break
            answer += part
    except socket.timeout:
        return Status(_status.NO_ANSWER, "the agent of this node was told, and has not confirmed within %d ms"
                      % (WAIT_SECONDS * 1000)), None
    except OSError as problem:
        return Status(_status.NO_ANSWER, "the agent of this node was told, and went away: %s" % problem.strerror), None
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[1].isdigit() or not _is_whole(answer):
        return Status(_status.NO_ANSWER, "the agent of this node was told, and hung up"), None
    try:
        content = json.loads(body.decode("utf-8"))
    except ValueError:
        content = {}
    if not isinstance(content, dict):
        content = {}
    if words[1] == b"200":
        return _status.DONE, content
    return Status(_status.REFUSED, str(content.get("error", "refused with %s" % words[1].decode()))), None


def _is_whole(answer):
    head, end, body = answer.partition(b"\r\n\r\n")
    if not end:
        return False
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return len(body) >= int(value)
    return False
