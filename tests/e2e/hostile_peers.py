"""Peers that no client of ours would ever be: they speak in bytes, over TCP or TLS, and keep to no protocol."""
import contextlib
import hashlib
import json
import socket
import ssl
import struct
import time


class Target:
    """Where a job's master listens, from the job's directory."""

    def __init__(self, directory):
        address = json.loads((directory / "master.json").read_text())
        self.host, self.port, self.pid = address["host"], address["port"], address["pid"]
        self.fingerprint = address["tls_fingerprint"]
        self.token = (directory / "token").read_text().strip()

    def tcp(self, timeout=20.0):
        return socket.create_connection((self.host, self.port), timeout)

    def connect(self, timeout=20.0):
        """A connection as far as bytes for the master's own protocol can be sent: with TLS where it speaks TLS."""
        connection = self.tcp(timeout)
        if not self.fingerprint:
            return connection
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        encrypted = context.wrap_socket(connection)
        assert hashlib.sha256(encrypted.getpeercert(binary_form=True)).hexdigest() == self.fingerprint
        return encrypted

    def request(self, line, headers="", body=b"", token=None):
        token = self.token if token is None else token
        authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        return f"{line} HTTP/1.1\r\nHost: x\r\n{authorization}{headers}\r\n".encode() + body

    def exchange(self, data, timeout=20.0):
        """What the master answers until it hangs up, or says nothing more for half a second after an answer."""
        with self.connect(timeout) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(data)
            return read_all(connection)

    def web_socket(self, timeout=20.0):
        """An open WebSocket, as an agent has one before it says Hello."""
        connection = self.connect(timeout)
        connection.sendall(self.request(
            "GET /agent", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"))
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += connection.recv(1)
        assert answer.startswith(b"HTTP/1.1 101"), answer
        return connection


def read_all(connection, quiet=0.5):
    answer = b""
    with contextlib.suppress(OSError):
        while piece := connection.recv(65536):
            answer += piece
            connection.settimeout(quiet)
    return answer


def is_hung_up(connection, timeout):
    """Whether the master ends the connection within this time, whatever it says before."""
    deadline = time.monotonic() + timeout
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while (left := deadline - time.monotonic()) > 0:
            connection.settimeout(left)
            try:
                if not connection.recv(65536):
                    return True
            except (TimeoutError, ssl.SSLWantReadError):
                return False
        return False
    return True


def frame(opcode, payload=b"", fin=True, reserved=0, length=None, masked=True):
    """A WebSocket frame, masked with zeros; `length` may be a lie."""
    length = len(payload) if length is None else length
    first = (0x80 if fin else 0) | reserved << 4 | opcode
    mask = 0x80 if masked else 0
    if length < 126:
        header = struct.pack("!BB", first, mask | length)
    elif length < 65536:
        header = struct.pack("!BBH", first, mask | 126, length)
    else:
        header = struct.pack("!BBQ", first, mask | 127, length)
    return header + (b"\0\0\0\0" if masked else b"") + payload


# ---- the few messages of proto/aimaster/v1/agent.proto that a hostile agent needs ----

def varint(number):
    out = bytearray()
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def hello(node, agent_id=b"stranger", greatest_epoch=0, name=b"node"):
    return frame(2, field(1, field(1, 1) + field(2, node) + field(3, name) + field(4, agent_id) +
                          field(5, greatest_epoch)))


def ready_report(sequence, instance=0):
    return frame(2, field(2, field(1, sequence) + field(3, field(1, field(1, instance)))))


def read_frame(connection):
    """(opcode, payload) of the next frame from the master."""
    def exactly(size):
        data = b""
        while len(data) < size:
            piece = connection.recv(size - len(data))
            if not piece:
                raise ConnectionError("hung up")
            data += piece
        return data

    first, length = exactly(2)
    if length == 126:
        length = struct.unpack("!H", exactly(2))[0]
    elif length == 127:
        length = struct.unpack("!Q", exactly(8))[0]
    return first & 15, exactly(length)


def acknowledged(connection):
    """The number in the next Acknowledge; other messages are passed over."""
    while True:
        opcode, payload = read_frame(connection)
        if opcode == 2 and payload[:1] == bytes([3 << 3 | 2]):
            number, shift = 0, 0
            for byte in payload[3:]:
                number |= (byte & 0x7f) << shift
                shift += 7
            return number
