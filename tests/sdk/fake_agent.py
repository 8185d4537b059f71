"""An agent's socket for tests: it keeps what it is told, and answers as the test wants."""
import json
import os
import shutil
import socket
import tempfile
import threading
import unittest

DEADLINE = 20.0  # for what has to happen at some time


class FakeAgent(object):
    """Reads requests one by one, each on a connection of its own, in a thread."""

    def __init__(self, path, answer=(200, {})):
        self.path = path
        self.answer = answer  # (status, body); None: hangs up without one; "never": keeps silent
        self.heard = []  # (target, body)
        self._changed = threading.Condition()
        self._kept = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(1024)
        self._thread = threading.Thread(target=self._serve)
        self._thread.daemon = True
        self._thread.start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for connection in self._kept:
            connection.close()
        os.unlink(self.path)

    def wait_for(self, count):
        """What was heard, once it is so much."""
        return self.wait_until(lambda heard: len(heard) >= count)

    def wait_until(self, is_enough):
        with self._changed:
            if not self._changed.wait_for(lambda: is_enough(self.heard), DEADLINE):
                raise AssertionError("heard only %r" % (self.heard,))
            return list(self.heard)

    def intervals(self, count):
        return [body["seconds"] for target, body in self.wait_for(count) if target == "/v1/hang_interval"]

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(65536)
            head, _, body = request.partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            length = [int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:")][0]
            while len(body) < length:
                body += connection.recv(65536)
            with self._changed:
                self.heard.append((lines[0].split(" ")[1], json.loads(body.decode())))
                self._changed.notify_all()
            self._respond(connection)

    def _respond(self, connection):
        if self.answer == "never":
            self._kept.append(connection)
            return
        if self.answer is not None:
            status, content = self.answer
            text = content if isinstance(content, bytes) else json.dumps(content).encode()
            try:
                connection.sendall(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(text)) + text)
            except OSError:
                pass  # it did not wait for the answer
        connection.close()


class WithAgent(unittest.TestCase):
    """A test within a job: AIMASTER_SOCKET names a fake agent, and the process has said nothing yet."""

    def setUp(self):
        from aimaster import _agent, _state

        _agent.WAIT_SECONDS = DEADLINE  # on a busy machine this agent may be slow; a test of slowness sets its own
        self.folder = tempfile.mkdtemp()
        self.socket = os.path.join(self.folder, "s")
        os.environ.update(AIMASTER_SOCKET=self.socket, AIMASTER_ROUND="2", AIMASTER_ATTEMPT="1",
                          AIMASTER_INSTANCE="dlc0123456789abc-worker-0")
        _state.STATES._states.clear()
        self.agent = FakeAgent(self.socket)

    def tearDown(self):
        from aimaster import _state

        _state.STATES.get()._owed.clear()  # else it is told to the next test
        for name in ("SOCKET", "ROUND", "ATTEMPT", "INSTANCE"):
            os.environ.pop("AIMASTER_" + name, None)
        if self.agent is not None:
            self.agent.close()
        shutil.rmtree(self.folder)

    def without_agent(self):
        self.agent.close()
        self.agent = None
