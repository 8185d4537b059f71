"""Flight Recorder dumps of a job made up: a small world in which some ranks stop, and everybody else comes to stand.

Every rank goes through the same program, a few operations ahead of what is done: three AllReduces in its tensor group,
then one in its data group. What it has issued, and what of that is done, is what it writes down.
"""
import json
import pickle
from collections import defaultdict

BEGIN_NS = 1_758_610_505_000_000_000
STEP_NS = 1_000_000


class World:
    def __init__(self, ranks, tensor, ahead=4):
        self.ranks, self.ahead = ranks, ahead
        self.groups = {0: ("default_pg", list(range(ranks)))}
        self.of = {}  # rank: its tensor group and its data group
        for start in range(0, ranks, tensor):
            self.groups[len(self.groups)] = ("TENSOR", list(range(start, start + tensor)))
        for offset in range(tensor):
            self.groups[len(self.groups)] = ("DATA", list(range(offset, ranks, tensor)))
        for rank in range(ranks):
            self.of[rank] = [name for name, (_, members) in self.groups.items() if rank in members]
        self.issued = {rank: [] for rank in range(ranks)}  # (group, sequence, time)
        self.count = defaultdict(int)  # (rank, group): issued
        self.done = defaultdict(int)   # group: complete
        self.stuck = {}                # (rank, group): the first that is never done on that rank

    def next_group(self, rank):
        position = len(self.issued[rank])
        if position == 0:
            return 0
        tensor, data = self.of[rank][1:]
        return data if position % 4 == 0 else tensor

    def done_on(self, rank, group):
        return min(self.done[group], self.count[rank, group], self.stuck.get((rank, group), 1 << 62) - 1)

    def open(self, rank):
        return [entry for entry in self.issued[rank] if entry[1] > self.done_on(rank, entry[0])]

    def run(self, outside=(), inside=(), broken=(), at=40):
        """Until nothing moves. `outside`: ranks that issue no more from their operation `at` on, when all before is
        done. `inside`: what they issue from there on is never done for them, though it is for their peers; a few more,
        and they wait for it. `broken`: it is not done for their peers either."""
        broken_from = {}
        moved = True
        time = 0
        while moved:
            moved = False
            time += 1
            for rank in range(self.ranks):
                position = len(self.issued[rank])
                is_stuck = rank in inside or rank in broken
                limit = 2 if rank in broken and position >= at else self.ahead
                if rank in outside and position >= at or len(self.open(rank)) >= limit:
                    continue
                if position > 20 * at:
                    continue
                group = self.next_group(rank)
                self.count[rank, group] += 1
                if is_stuck and position >= at:
                    self.stuck.setdefault((rank, group), self.count[rank, group])
                if rank in broken and position >= at:
                    broken_from.setdefault(group, self.count[rank, group])
                self.issued[rank].append((group, self.count[rank, group], time))
                moved = True
            for group, (_, members) in self.groups.items():
                ready = min(self.count[member, group] for member in members)
                ready = min(ready, broken_from.get(group, ready + 1) - 1)
                if ready > self.done[group]:
                    self.done[group] = ready
                    moved = True
        return self

    def dump(self, rank, name="nccl:all_reduce", version="2.10", ids=lambda index: index):
        own = self.of[rank]
        # A process counts its groups for itself, in the order in which it made them.
        numbers = {group: ids(index) for index, group in enumerate(own)}
        entries = []
        for record, (group, sequence, time) in enumerate(self.issued[rank]):
            is_done = sequence <= self.done_on(rank, group)
            entries.append({
                "record_id": record, "pg_id": numbers[group],
                "process_group": (str(group), self.groups[group][0]),
                "collective_seq_id": sequence, "p2p_seq_id": 0, "op_id": sequence, "profiling_name": name,
                "time_created_ns": BEGIN_NS + time * STEP_NS,
                "time_discovered_started_ns": None,
                "time_discovered_completed_ns": BEGIN_NS + time * STEP_NS + 10 if is_done else None,
                "input_sizes": [[4096, 1, 512]], "input_dtypes": ["BFloat16"],
                "output_sizes": [[4096, 1, 512]], "output_dtypes": ["BFloat16"],
                "state": "completed" if is_done else "scheduled", "timeout_ms": 600000, "is_p2p": False,
                "retired": is_done})
        return {
            "version": version,
            "pg_config": {str(group): {"name": str(group), "desc": self.groups[group][0],
                                       "ranks": str(self.groups[group][1])} for group in own},
            "pg_status": {str(numbers[group]): {"last_enqueued_collective": self.count[rank, group] or -1,
                                                "last_started_collective": -1,
                                                "last_completed_collective": self.done_on(rank, group) or -1}
                          for group in own},
            "entries": entries}

    def write(self, folder, form="pickle2", prefix="trace_rank_", **options):
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(self.ranks):
            dump = self.dump(rank, **options)
            data = json.dumps(dump).encode() if form == "json" else pickle.dumps(dump, int(form[-1]))
            (folder / f"{prefix}{rank}").write_bytes(data)
        return folder
