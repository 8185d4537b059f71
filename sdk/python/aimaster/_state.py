"""What this process has said, means at present, and still has to say.

Of each thing that a training reports only the newest counts: a step makes the one before it old news, and so does an
interval. So nothing is queued. What could not be told is owed, by kind, and settled with the newest value.
"""
import atexit
import threading
import time

from . import _agent, _status
from ._process import PerProcess
from ._retry import Retry
from ._status import Status

STEP = "/v1/step"
CHECKPOINT = "/v1/checkpoint"
HANG_INTERVAL = "/v1/hang_interval"
UNHEARD = (_status.NO_AGENT, _status.BUSY)  # worth another try

# Steps: a training that makes more of them than this tells some; the last one before the exit in any case.
STEPS_PER_SECOND = 100.0
STEPS_AT_ONCE = 50.0


class Section(object):
    """A stretch of the program under an interval of its own."""

    __slots__ = ("seconds", "state", "is_over")

    def __init__(self, seconds, state):
        self.seconds = seconds
        self.state = state  # of the process that entered it
        self.is_over = False


class State(object):
    """Thread-safe. The lock is only held for calls that never wait, and is not waited for for long."""

    def __init__(self, parent=None):
        self._lock = threading.RLock()  # a signal's handler may report in the middle of a report
        self.agent = _agent.Agent()
        self._owed = {}
        self._retry = Retry(self.settle)
        self._sections = []
        # The Monitor's own, which holds outside of all sections; None: that of the job. A child's sections are its own,
        # the Monitor is what it was.
        self._base = parent._base if parent is not None else None
        self._may_step = STEPS_AT_ONCE
        self._stepped_at = time.monotonic()

    # -- the interval

    def enter(self, section):
        if not self._lock.acquire(timeout=_agent.WAIT_SECONDS):
            return _busy()
        try:
            self._sections.append(section)
            return self._say(HANG_INTERVAL, self._interval)
        finally:
            self._lock.release()

    def leave(self, section):
        """Sections may end in any order: threads and tasks cross one another. The newest that is left counts."""
        section.is_over = True
        if not self._lock.acquire(timeout=_agent.WAIT_SECONDS):
            return _busy()
        try:
            was_newest = self._sections and self._sections[-1] is section
            self._sections = [other for other in self._sections if not other.is_over]
            return self._say(HANG_INTERVAL, self._interval) if was_newest else _status.DONE
        finally:
            self._lock.release()

    def set_base(self, seconds):
        """The interval outside of sections, and, from now until the next section begins or ends, inside."""
        deadline = time.monotonic() + _agent.WAIT_SECONDS
        if not self._lock.acquire(timeout=_agent.WAIT_SECONDS):
            return _busy()
        try:
            self._base = seconds
            fields = {"seconds": seconds}
            opened = self.agent.send(HANG_INTERVAL, fields)
            self._note(HANG_INTERVAL, lambda: fields, opened)
        finally:
            self._lock.release()
        return _agent.read(opened, deadline)[0]

    def _interval(self):
        for section in reversed(self._sections):
            if not section.is_over:
                return {"seconds": section.seconds}
        return {"seconds": self._base}

    # -- progress

    def step(self, fields):
        if not self._lock.acquire(timeout=_agent.WAIT_SECONDS):
            return _busy()
        try:
            now = time.monotonic()
            self._may_step = min(STEPS_AT_ONCE, self._may_step + (now - self._stepped_at) * STEPS_PER_SECOND)
            self._stepped_at = now
            if self._may_step < 1.0 and self.agent.has_job():
                self._owed[STEP] = lambda: fields
                return _status.DONE
            self._may_step -= 1.0
            return self._say(STEP, lambda: fields)
        finally:
            self._lock.release()

    def checkpoint(self, fields):
        if not self._lock.acquire(timeout=_agent.WAIT_SECONDS):
            return _busy()
        try:
            return self._say(CHECKPOINT, lambda: fields)
        finally:
            self._lock.release()

    # -- saying it

    def _say(self, target, make_fields):
        status = self.agent.tell(target, make_fields())
        self._note(target, make_fields, status)
        return status

    def _note(self, target, make_fields, outcome):
        if isinstance(outcome, Status) and outcome.code in UNHEARD:
            self._owed[target] = make_fields
            self._retry.soon()
        else:
            self._owed.pop(target, None)

    def settle(self):
        """Says what is owed. Returns whether that was all."""
        if not self._lock.acquire(timeout=_agent.WAIT_SECONDS):
            return False
        try:
            for target in list(self._owed):
                status = self.agent.tell(target, self._owed[target]())
                if status.code in UNHEARD:
                    return False
                del self._owed[target]
            return True
        except Exception:  # pylint: disable=broad-except
            return True  # what can't be said now can't be said later; nobody is there to hear why
        finally:
            self._lock.release()


def _busy():
    return Status(_status.BUSY, "another thread is just speaking to the agent")


STATES = PerProcess(State)


def _settle_at_exit():
    STATES.get().settle()


atexit.register(_settle_at_exit)
