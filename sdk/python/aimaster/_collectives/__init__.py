"""What a PyTorch rank communicates, written into its record (src/probe/record.h) for those who look from outside.

Think of a flight recorder: it is switched on before the start, nobody in the cockpit hears of it, and it is read when
something went wrong. The hook sits where all of torch.distributed's Python ends, in the methods of the ProcessGroup
class and of the Work that they return. Wrapping the functions of torch.distributed was the alternative: a program that
has said `from torch.distributed import all_reduce` before would not be seen.

    _importing   waits for torch.distributed to be imported, since a program without it shall not pay for it
    _install     wraps what is to be wrapped, once
    _calls       the methods of a process group: which collective each is, and what of its arguments is told
    _works       operations that have been issued, until their end is known
    _session     the record of this process, and its process groups
    _reducer     DistributedDataParallel, whose reducer is C++ and calls none of those methods
    _library     libaimaster-recorder.so

Whatever fails here fails in silence: the program goes on as if it had not been looked at.
"""
import os
import sys

from . import _debug, _importing

FOLDER = "AIMASTER_C4D_DIR"
LIBRARY = "AIMASTER_C4D_RECORDER"


def trace():
    """Returns whether this process is traced, or will be once it imports torch.distributed. Any number of times."""
    try:
        for name in (FOLDER, LIBRARY):
            if not os.environ.get(name, "").startswith("/"):
                return _debug.say("%s names nothing: collectives are not recorded", name)
        if not os.path.exists(os.environ[LIBRARY]):
            return _debug.say("%s is not there: collectives are not recorded", os.environ[LIBRARY])
        loaded = sys.modules.get("torch.distributed")
        if loaded is not None and hasattr(loaded, "is_available"):
            return _begin()
        return _importing.await_import("torch.distributed", _begin)
    except Exception as problem:  # pylint: disable=broad-except
        return _debug.failed("the recording of collectives", problem)


def _begin():
    try:
        from . import _install  # pylint: disable=import-outside-toplevel

        return _install.install()
    except Exception as problem:  # pylint: disable=broad-except
        return _debug.failed("the recording of collectives", problem)
