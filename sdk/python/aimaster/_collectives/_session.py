"""The record of this process, and its process groups.

A process has a record from its first init_process_group on, and a new one after each destroy_process_group of
everything: groups made after that bear the names of those before. A child that is forked has none until it makes groups
of its own.

All members of a group have to come to the same id without asking each other. torch has solved that already, for the
members meet in a store under the group's name, which counts the groups in the order in which all ranks make them. So
the id is made of that name and of the members.
"""
import atexit
import hashlib
import os
import weakref

from . import _debug, _library, _works

RECORDS_MAX = 16  # of a process, half a megabyte each
HOST_BACKENDS = ("gloo", "mpi")  # where an operation that has been waited for has ended

UNRECORDED = _library.NONE  # the place of a group of which not enough is known


class Group(object):
    __slots__ = ("place", "is_host", "is_gloo", "watch")

    def __init__(self, place, backend):
        self.place = place
        self.is_host = backend in HOST_BACKENDS
        self.is_gloo = backend == "gloo"
        self.watch = None


class Session(object):
    """One for each process; under the interpreter's lock. `recorder` is None as long as nothing is recorded."""

    def __init__(self, library, distributed, names):
        self.library = library
        self.recorder = None
        self.groups = {}  # by the identity of the process group
        self.works = _works.Works(library)
        self._distributed = distributed  # torch.distributed.distributed_c10d
        self._names = _library.text_array(names)
        self._pid = 0
        self._opened = 0

    def open(self):
        """Whether there is a record now."""
        if self._pid != os.getpid():
            self.recorder, self._opened = None, 0
            self.groups.clear()
            self.works.clear()
            self._pid = os.getpid()
            atexit.register(self._finish_at_exit, self._pid)
        if self.recorder is None and self._opened < RECORDS_MAX:
            self._opened += 1
            self.recorder = self.library.open(_library.TORCH, self._names, len(self._names))
            if self.recorder is None:
                self._opened = RECORDS_MAX
                return _debug.say("no record could be made in %s", os.environ.get("AIMASTER_C4D_DIR"))
            self.works.begin(self.recorder)
        return self.recorder is not None

    def set_world(self, rank, size):
        if 0 <= rank < size:
            self.library.set_world(self.recorder, rank, size)

    def close(self):
        """Of everything: the program has destroyed its groups."""
        if self.recorder is None:
            return
        self.works.forget_all()
        for group in list(self.groups.values()):
            self.library.retire_communicator(self.recorder, group.place)
        self.groups.clear()
        self.library.finish(self.recorder)
        self.recorder = None

    def _finish_at_exit(self, pid):
        if pid != os.getpid():
            return
        self.works.stop()
        self.works.keep_for_ever()
        if self.recorder is not None:
            self.library.finish(self.recorder)
        self.recorder, self._opened = None, RECORDS_MAX
        self.groups.clear()
        self.works.clear()

    # -- process groups

    def register(self, process_group):
        """The Group of it, or None: nothing is recorded."""
        try:
            if not self.open():
                return None
            found = self.groups.get(id(process_group))
            if found is None:
                found = self._add(process_group)
            return found
        except Exception as problem:  # pylint: disable=broad-except
            _debug.failed("to register a process group", problem)
            return None

    def retire(self, process_group):
        self._retire(id(process_group))

    def _retire(self, key):
        group = self.groups.pop(key, None)
        if group is not None and self.recorder is not None:  # of a parent's it does nothing
            self.library.retire_communicator(self.recorder, group.place)

    def _add(self, process_group):
        known = self._known()
        backend, members = known("map").get(process_group, ("",))[0], self._members(known, process_group)
        place = UNRECORDED
        if members is not None:
            name = known("names").get(process_group, "")
            is_world = process_group is self._world()
            if is_world:
                self.set_world(process_group.rank(), process_group.size())
            place = self.library.add_communicator(
                self.recorder, _id_of(name, members), _title_of(name, is_world, process_group),
                _library.word_array(members), len(members), process_group.rank())
        group = Group(place, str(backend))
        key = id(process_group)
        group.watch = weakref.ref(process_group, lambda _: self._retire(key))
        self.groups[key] = group
        return group

    def _known(self):
        """torch's own tables of its groups, which have moved once."""
        world = getattr(self._distributed, "_world", None)
        if world is not None:
            return lambda name: getattr(world, "pg_" + name)
        return lambda name: getattr(self._distributed, "_pg_" + name)

    def _members(self, known, process_group):
        """World ranks by rank in the group; None: not told."""
        ranks = known("group_ranks").get(process_group)
        size = process_group.size()
        if ranks is None:
            is_world = self._world() in (None, process_group)  # it is just being made
            return list(range(size)) if is_world else None
        members = sorted(ranks, key=ranks.get)
        return members if len(members) == size else None

    def _world(self):
        member = getattr(self._distributed, "GroupMember", None)
        return getattr(member, "WORLD", None)


def _id_of(name, members):
    digest = hashlib.sha256(("%s %s" % (name, members)).encode()).digest()
    return int.from_bytes(digest[:8], "little") | 2  # 0 and 1 are no ids


def _title_of(name, is_world, process_group):
    if is_world:
        return b"default_pg"
    described = getattr(process_group, "group_desc", None)
    if described and described not in ("undefined", name):
        return str(described).encode()
    return ("group %s" % name).encode()
