"""DistributedDataParallel. Its reducer is C++ and calls no method of Python's, so it is handed a process group of ours,
which records and passes on to the real one what it is asked.

A communication hook was the alternative, since there the reducer asks Python of its own accord. But a hook has to
answer with a future that Python fulfils, on a thread of Gloo's, and a program that ends while that thread is in Python
is aborted: one in ten was, with torch's own hooks. It would also have to divide as the reducer does, which multiplies
here and divides there; and a program may want the one place for a hook that a reducer has. So the reducer keeps all its
ways.

What it waits for, it waits for at the end of the backward pass, within C++. To be seen waiting we wait there just
before it does; by then there is nothing else left to do.

Only on the host. On a device the end of an operation can't be known here, and who asks NCCL itself knows more.
"""
from . import _calls, _debug


def make_group_class(process_group_class, originals, session, recording, queue_callback):
    """The class of such a group. C++ calls its methods by these names, some of which only hooks need."""
    begin, follow, end = recording.begin, session.works.follow, session.library.end
    keep = session.works.keep

    class ReducerGroup(process_group_class):
        def __init__(self, real):
            process_group_class.__init__(self, real.rank(), real.size())
            self._real = real

        def getBackendName(self):  # pylint: disable=invalid-name
            """None of theirs: what is called gloo, torch takes for its own class, and reads beyond the end of ours."""
            return "aimaster"

        def allreduce(self, tensors, *options):
            work = self._issue(_calls.ALL_REDUCED, "allreduce", tensors, options)
            try:
                queue_callback(lambda: _wait(work))
            except Exception:  # pylint: disable=broad-except
                _ask_later(work)  # no backward pass waits for it: a reduction for ranks that have come to their end
            return work

        def broadcast(self, tensors, *options):
            """Of the order of the buckets, once; the reducer waits at once."""
            work = self._issue(_calls.BROADCAST_ONE, "broadcast", tensors, options)
            _wait(work)
            return work

        def allgather(self, *args):
            return self._real.allgather(*args)

        def reduce_scatter(self, *args):
            return self._real.reduce_scatter(*args)

        def barrier(self, *args):
            return self._real.barrier(*args)

        def send(self, *args):
            return self._real.send(*args)

        def recv(self, *args):
            return self._real.recv(*args)

        def _issue(self, call, method, tensors, options):
            keep(tensors)
            begun = begin(self._real, call, (tensors,) + options, {})
            if begun is None:
                return originals[method](self._real, tensors, *options)
            group, ticket = begun
            recorder = session.recorder
            try:
                work = originals[method](self._real, tensors, *options)
            except BaseException:
                end(recorder, ticket)
                raise
            follow(work, recorder, ticket, call.name, group)
            return work

    return ReducerGroup


def _wait(work):
    try:
        work.wait()
    except Exception:  # pylint: disable=broad-except
        pass  # the reducer comes upon the same, and it is the one to say so


def _ask_later(work):
    """The reducer waits for its future alone."""
    try:
        work.get_future()
    except Exception:  # pylint: disable=broad-except
        pass


class Reducers(object):
    def __init__(self, session, recording, originals, process_group_class):
        self._session, self._recording = session, recording
        self._originals = originals  # torch's own methods
        self._process_group_class = process_group_class
        self._is_installed = False

    def install(self):
        """When groups are made: by then all of torch has been imported."""
        if self._is_installed:
            return
        self._is_installed = True
        try:
            self._install()
        except Exception as problem:  # pylint: disable=broad-except
            _debug.failed("the way into DistributedDataParallel", problem)

    def _install(self):
        import torch.autograd  # pylint: disable=import-outside-toplevel,import-error
        import torch.distributed as distributed  # pylint: disable=import-outside-toplevel,import-error

        engine = torch.autograd.Variable._execution_engine
        group_class = make_group_class(self._process_group_class, self._originals, self._session, self._recording,
                                       engine.queue_callback)
        distributed.Reducer = self._observed(distributed.Reducer, group_class)
        distributed._broadcast_coalesced = self._blocking(distributed._broadcast_coalesced, _calls.BROADCAST_COALESCED)
        distributed._verify_params_across_processes = self._blocking(distributed._verify_params_across_processes,
                                                                     _calls.VERIFY_PARAMETERS)

    def _observed(self, original, group_class):
        reducers = self

        class Reducer(original):
            """Holds its group, which C++ alone would not keep alive."""

            def __init__(self, *args, **kwargs):
                if len(args) > 3:
                    self._aimaster_group = reducers.group_for(args[3], group_class)
                    args = args[:3] + (self._aimaster_group,) + args[4:]
                original.__init__(self, *args, **kwargs)

        return Reducer

    def group_for(self, process_group, group_class):
        try:
            group = self._session.register(process_group)
            if group is not None and group.is_host:
                return group_class(process_group)
        except Exception as problem:  # pylint: disable=broad-except
            _debug.failed("the way into a reducer", problem)
        return process_group

    def _blocking(self, original, call):
        """Functions that are C++ down to the end of the operation."""
        def function(process_group, *args, **kwargs):
            begun = self._recording.begin(process_group, call, args, kwargs)
            recorder = self._session.recorder
            try:
                return original(process_group, *args, **kwargs)
            finally:
                if begun is not None:
                    self._session.library.end(recorder, begun[1])

        return function
