"""What belongs to one process, and not to those that it forks.

A forked child, a data loader say, inherits all memory: sections that its parent has entered, a step that its parent has
not sent yet, a lock that some other thread of its parent holds for ever. None of it is the child's. So state is kept by
process, and a child begins with its own.
"""
import os


class PerProcess(object):
    """get() gives this process's state, made by `make(parent's state or None)` when it is first wanted."""

    def __init__(self, make):
        self._make = make
        self._states = {}
        register = getattr(os, "register_at_fork", None)  # Python 3.7
        if register is not None:
            register(after_in_child=self.get)

    def get(self):
        pid = os.getpid()
        state = self._states.get(pid)
        if state is not None:
            return state
        parents = list(self._states.values())
        # Of two threads that come here at once, both get the one that was first.
        state = self._states.setdefault(pid, self._make(parents[-1] if parents else None))
        for other in [other for other in list(self._states) if other != pid]:
            self._states.pop(other, None)
        return state
