"""The methods of torch's ProcessGroup: which operation each is, and what of its arguments is told.

All Python of torch.distributed ends in them, whichever of its functions a program calls and however it came by them;
those for objects end in two or three of these. What is not in the table is not seen.
"""
from . import _library
from ._library import (ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BARRIER, BLOCKING, BROADCAST, GATHER, NONE, OTHER,
                       POINT_TO_POINT, RECEIVE, REDUCE, REDUCE_SCATTER, SCATTER, SEND, SIZE_VARIES)


class Call(object):
    """`tensors` and `peer` are positions among the arguments; None: there are none."""

    __slots__ = ("method", "name", "what", "tensors", "peer", "differs")

    def __init__(self, method, name, function, tensors=None, peer=None, flags=0, differs=False):
        self.method = method
        self.name = name  # its index, and that of what a program calls, in NAMES
        self.what = name | function << 16 | flags << 32
        self.tensors = tensors
        self.peer = peer
        self.differs = differs  # members may give different sizes, but for Gloo, which demands equal ones


NAMES = []
METHODS = []


def _call(method, name, function, **more):
    call = Call(method, len(NAMES), function, **more)
    NAMES.append(name)
    if method is not None:
        METHODS.append(call)
    return call


_VARIES = {"flags": SIZE_VARIES}
ALL_REDUCED = _call("allreduce", "all_reduce", ALL_REDUCE, tensors=0)
_call("allreduce_coalesced", "all_reduce_coalesced", ALL_REDUCE, tensors=0)
BROADCAST_ONE = _call("broadcast", "broadcast", BROADCAST, tensors=0, peer=1)
_call("reduce", "reduce", REDUCE, tensors=0, peer=1)
_call("allgather", "all_gather", ALL_GATHER, tensors=1, differs=True)
_call("_allgather_base", "all_gather_into_tensor", ALL_GATHER, tensors=1)
_call("allgather_coalesced", "all_gather_coalesced", ALL_GATHER, tensors=1, differs=True)
_call("allgather_into_tensor_coalesced", "all_gather_into_coalesced", ALL_GATHER, tensors=1)
_call("gather", "gather", GATHER, tensors=1, peer=2)
_call("scatter", "scatter", SCATTER, tensors=0, peer=2)
_call("reduce_scatter", "reduce_scatter", REDUCE_SCATTER, tensors=0, differs=True)
_call("_reduce_scatter_base", "reduce_scatter_tensor", REDUCE_SCATTER, tensors=1)
_call("reduce_scatter_tensor_coalesced", "reduce_scatter_coalesced", REDUCE_SCATTER, tensors=1)
_call("alltoall_base", "all_to_all_single", ALL_TO_ALL, tensors=1, **_VARIES)
_call("alltoall", "all_to_all", ALL_TO_ALL, tensors=1, **_VARIES)
_call("barrier", "barrier", BARRIER)
_call("monitored_barrier", "monitored_barrier", BARRIER, flags=BLOCKING)
_call("send", "send", SEND, tensors=0, peer=1, flags=POINT_TO_POINT)
_call("recv", "recv", RECEIVE, tensors=0, peer=1, flags=POINT_TO_POINT)
_call("recv_anysource", "recv", RECEIVE, tensors=0, flags=POINT_TO_POINT)

# Functions that are no methods. Who is in the making of a group is somewhere, and there is no group yet to be in.
INIT = _call(None, "init_process_group", OTHER, flags=BLOCKING)
NEW_GROUP = _call(None, "new_group", OTHER, flags=BLOCKING)
BROADCAST_COALESCED = _call(None, "_broadcast_coalesced", BROADCAST, flags=BLOCKING | SIZE_VARIES)
VERIFY_PARAMETERS = _call(None, "_verify_params", ALL_GATHER, flags=BLOCKING | SIZE_VARIES)


class Recording(object):
    """Begins operations. Nothing here raises: what can't be told of an operation is left out."""

    def __init__(self, session, torch):
        self._session = session
        self._groups = session.groups
        self._begin = session.library.begin
        self._types = {}
        for name, number in _library.TYPES.items():
            if hasattr(torch, name):
                self._types[getattr(torch, name)] = number << 24
        self._is_tensor = torch.is_tensor
        self._futures, self._ask_futures = session.works.futures, session.works.ask_futures

    def begin(self, process_group, call, args, kwargs):
        """The group and a ticket; None: nothing is recorded."""
        group = self._groups.get(id(process_group))
        if group is None:
            group = self._session.register(process_group)
            if group is None:
                return None
        what, size, peer = call.what, 0, NONE
        try:
            if self._futures:
                self._ask_futures()
            if call.tensors is not None:
                tensors = args[call.tensors]
                if type(tensors) is list and len(tensors) == 1:  # as nearly always
                    tensors = tensors[0]
                if self._is_tensor(tensors):
                    size = tensors.numel() * tensors.element_size()
                    what |= self._types.get(tensors.dtype, 0)
                else:
                    size, kind = self._measure(tensors)
                    what |= kind
            if call.peer is not None:
                peer = self._rank_of(args, kwargs, call.peer)
            if call.differs and not group.is_gloo:
                what |= SIZE_VARIES << 32
            return group, self._begin(self._session.recorder, group.place, peer, size, what)
        except Exception:  # pylint: disable=broad-except
            what |= SIZE_VARIES << 32
        return group, self._begin(self._session.recorder, group.place, NONE, 0, what)

    def begin_elsewhere(self, call):
        return self._begin(self._session.recorder, NONE, NONE, 0, call.what)

    def _measure(self, tensors):
        """Lists, and lists of lists."""
        size, kind = 0, 0
        for tensor in tensors:
            if isinstance(tensor, (list, tuple)):
                more, kind = self._measure(tensor)
                size += more
            else:
                size += tensor.numel() * tensor.element_size()
                kind = self._types.get(tensor.dtype, 0)
        return size, kind

    @staticmethod
    def _rank_of(args, kwargs, position):
        """Rank in the group: by itself, or in the options."""
        given = args[position] if position < len(args) else kwargs.get("opts", kwargs.get("root", NONE))
        return int(getattr(given, "rootRank", given)) & NONE


def wrap(call, original, recording, session):
    """The method `original`, recorded."""
    begin, follow, end = recording.begin, session.works.follow, session.library.end
    name, is_blocking = call.name, bool(call.what >> 32 & BLOCKING)

    def method(self, *args, **kwargs):
        begun = begin(self, call, args, kwargs)
        if begun is None:
            return original(self, *args, **kwargs)
        group, ticket = begun
        recorder = session.recorder
        try:
            work = original(self, *args, **kwargs)
        except BaseException:
            end(recorder, ticket)
            raise
        if is_blocking:
            end(recorder, ticket)
        else:
            follow(work, recorder, ticket, name, group)
        return work

    return method
