"""Reads records (src/probe/record.h) of processes that are done or stand still: enough of them to count by.

What src/c4d/record_reader.h reads with every care is read here in the plainest way, so that a test of who writes does
not lean on who reads.
"""
import struct
from pathlib import Path

MAGIC = b"AIMC4DR\0"
NONE = 0xFFFFFFFF
FUNCTIONS = ("Other", "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "AllToAll", "Gather",
             "Scatter", "Scan", "Barrier", "Send", "Receive")
HEADER = struct.Struct("<8s I I Q I I Q I I Q Q 10I 24x 6Q 16x 3Q 40x 2Q")
COMMUNICATOR = struct.Struct("<Q I I Q I I I I Q 16x 64s 640s 7Q 8x 4Q")
OPERATION = struct.Struct("<Q Q I I Q Q H B B I Q Q")
THREAD = struct.Struct("<Q I I Q Q")
FINISHED = struct.Struct("<Q Q I I Q Q H B B I Q Q")


class Operation:
    def __init__(self, record, fields):
        (self.communicator, self.peer, self.sequence, self.bytes, name, function, self.type, self.flags, self.issued_ns,
         last) = fields
        self.communicator &= 0xFFFF
        self.name, self.function = record.names[name], FUNCTIONS[function]
        self.started_ns = self.duration_ns = last  # open ones have the one, finished ones the other

    def __repr__(self):
        return f"<{self.name} {self.sequence}>"


class Communicator:
    def __init__(self, fields):
        (_, self.state, _, self.id, self.size, self.rank, kind, words, _, name, members, self.issued, _, self.completed,
         *_, self.common_issued, self.common_completed, _, _) = fields
        self.name, self.is_retired = name.rstrip(b"\0").decode(), self.state == 2
        words = struct.unpack(f"<{words}I", members[:4 * words])
        self.members = list(words) if kind == 1 else []
        if kind == 2:
            for first, step, count in zip(*[iter(words)] * 3):
                self.members += [(first + step * i) & NONE for i in range(count)]

    @property
    def counters(self):
        return self.issued, self.completed


class Record:
    def __init__(self, path):
        data = Path(path).read_bytes()
        (magic, _, _, _, self.source, state, self.pid, self.rank, self.size, _, _, names_at, names, communicators_at,
         communicators, operations_at, operations, threads_at, threads, rings_at, ring,
         *losses) = HEADER.unpack_from(data)
        assert magic == MAGIC, magic
        self.is_finished = state == 2
        self.dropped, self.forgotten, (self.elsewhere_begun, self.elsewhere_ended) = losses[:5], losses[5], losses[6:8]
        self.names = [data[names_at + 32 * i:names_at + 32 * (i + 1)].rstrip(b"\0").decode() for i in range(names)]
        table = [COMMUNICATOR.unpack_from(data, communicators_at + 896 * i) for i in range(communicators)]
        self.places = [Communicator(fields) for fields in table]
        self.communicators = [one for one in self.places if one.state != 0]
        table = [OPERATION.unpack_from(data, operations_at + 64 * i) for i in range(operations)]
        self.open = [Operation(self, fields[2:]) for fields in table if fields[1] & 3 == 2]
        self.inside, self.finished = [], []
        for i in range(threads):
            owner, inside, _, _, count = THREAD.unpack_from(data, threads_at + 64 * i)
            if owner and inside:
                self.inside.append(self.names[inside - 1])
            done = [FINISHED.unpack_from(data, rings_at + 64 * (ring * i + n)) for n in range(min(count, ring))]
            self.finished += [Operation(self, fields[2:]) for fields in done]
        self.finished.sort(key=lambda one: (one.issued_ns, one.sequence))

    def group(self, name):
        found, = [one for one in self.communicators if one.name == name]
        return found

    def counts(self, group="default_pg"):
        """How many of each name were finished in a group."""
        place = self.places.index(self.group(group))
        counted = {}
        for one in self.finished:
            if one.communicator == place:
                counted[one.name] = counted.get(one.name, 0) + 1
        return counted


def read(folder):
    """The records of a folder, by rank; of those that tell it. One that is just being made has no magic yet."""
    made = [path for path in Path(folder).glob("*.c4d") if path.read_bytes()[:8] == MAGIC]
    return {record.rank: record for record in map(Record, made) if record.rank != NONE}
