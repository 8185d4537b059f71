"""Wraps what is to be wrapped in torch.distributed, once for each process.

ProcessGroup and Work are classes of C++ whose methods can be replaced from Python. C++ that calls them calls its own:
nothing of ours is in its way.
"""
import functools
import os
import sys

from . import _calls, _debug, _library, _reducer, _session, _works

MARK = "_aimaster_is_traced"


def install():
    try:
        return _install()
    except Exception as problem:  # pylint: disable=broad-except
        return _debug.failed("the recording of collectives", problem)


def _install():
    torch, distributed = sys.modules["torch"], sys.modules["torch.distributed"]
    if not distributed.is_available():
        return _debug.say("this torch has no torch.distributed: collectives are not recorded")
    functions = sys.modules["torch.distributed.distributed_c10d"]
    process_group = functions.ProcessGroup
    if MARK in vars(process_group):
        return True
    library = _library.Library(os.environ["AIMASTER_C4D_RECORDER"])
    session = _session.Session(library, functions, _calls.NAMES)
    recording = _calls.Recording(session, torch)
    work_class = getattr(sys.modules[process_group.__module__], "Work", None) or getattr(process_group, "Work")

    originals = {call.method: getattr(process_group, call.method) for call in _calls.METHODS
                 if call.method in vars(process_group)}
    reducers = _reducer.Reducers(session, recording, originals, process_group)
    for method, wrapping in _works.wrap(work_class, session.works, library).items():
        if method in vars(work_class):
            original = getattr(work_class, method)
            setattr(work_class, method, _named(method, functools.wraps(original)(wrapping(original))))
    for call in _calls.METHODS:
        if call.method in originals:
            original = originals[call.method]
            wrapped = functools.wraps(original)(_calls.wrap(call, original, recording, session))
            setattr(process_group, call.method, _named(call.method, wrapped))
    setattr(process_group, MARK, True)

    _replace(functions, "init_process_group", _initializing(functions, session, recording, reducers))
    _replace(functions, "new_group", _making(session, recording))
    _replace(functions, "destroy_process_group", _destroying(functions, session))
    if functions.is_initialized():
        session.register(functions.GroupMember.WORLD)
        reducers.install()
    return True


def _named(name, function):
    """A class in Python that is derived from ProcessGroup calls a method that it has not, and C++ looks by the name of
    the running code whether it is being called back."""
    code = function.__code__
    if hasattr(code, "replace"):
        function.__code__ = code.replace(co_name=name)
    else:  # before Python 3.8
        function.__code__ = type(code)(
            code.co_argcount, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize, code.co_flags, code.co_code,
            code.co_consts, code.co_names, code.co_varnames, code.co_filename, name, code.co_firstlineno,
            code.co_lnotab, code.co_freevars, code.co_cellvars)
    return function


def _replace(module, name, wrapping):
    """Wherever it is known by now: `from torch.distributed import init_process_group`."""
    original = getattr(module, name)
    replacement = functools.wraps(original)(wrapping(original))
    for other in list(sys.modules.values()):
        try:
            names = object.__getattribute__(other, "__dict__")  # to ask a lazy one would load it
        except Exception:  # pylint: disable=broad-except
            continue
        if isinstance(names, dict) and names.get(name) is original:
            names[name] = replacement


def _initializing(functions, session, recording, reducers):
    def wrapping(original):
        def init_process_group(*args, **kwargs):
            with Elsewhere(session, recording, _calls.INIT):
                _tell_world(session, kwargs)
                reducers.install()
                result = original(*args, **kwargs)
            _register(session, lambda: functions.GroupMember.WORLD)
            return result

        return init_process_group

    return wrapping


def _tell_world(session, arguments):
    """Before the group is there: who waits for others in vain has a number all the same."""
    try:
        rank = int(arguments.get("rank", -1))
        size = int(arguments.get("world_size", -1) or -1)
        session.set_world(rank if rank >= 0 else int(os.environ["RANK"]), size if size > 0 else
                          int(os.environ["WORLD_SIZE"]))
    except Exception:  # pylint: disable=broad-except
        pass


def _making(session, recording):
    def wrapping(original):
        def new_group(*args, **kwargs):
            with Elsewhere(session, recording, _calls.NEW_GROUP):
                made = original(*args, **kwargs)
            _register(session, lambda: made if hasattr(made, "size") and made.size() > 0 else None)  # and we are in it
            return made

        return new_group

    return wrapping


def _register(session, get):
    try:
        process_group = get()
        if process_group is not None:
            session.register(process_group)
    except Exception as problem:  # pylint: disable=broad-except
        _debug.failed("to register a process group", problem)


def _destroying(functions, session):
    def wrapping(original):
        def destroy_process_group(*args, **kwargs):
            group = args[0] if args else kwargs.get("group")
            is_world = group is None or group is getattr(getattr(functions, "GroupMember", None), "WORLD", None)
            result = original(*args, **kwargs)
            try:
                if is_world:
                    session.close()
                else:
                    session.retire(group)
            except Exception as problem:  # pylint: disable=broad-except
                _debug.failed("the end of a process group", problem)
            return result

        return destroy_process_group

    return wrapping


class Elsewhere(object):
    """The process is in a call of which no more is recorded."""

    def __init__(self, session, recording, call):
        self._session, self._recording, self._call = session, recording, call
        self._begun = None

    def __enter__(self):
        try:
            if self._session.open():
                self._begun = self._session.recorder, self._recording.begin_elsewhere(self._call)
        except Exception as problem:  # pylint: disable=broad-except
            _debug.failed("the record", problem)

    def __exit__(self, *_):
        if self._begun is not None:
            self._session.library.end(*self._begun)
