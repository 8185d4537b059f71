"""Operations that have been issued and whose end is not known yet.

An operation ends when the program learns of it: it has waited for the Work, or asked it. One of Gloo's that the
program does not ask about is asked by a thread of ours, four times a second, so that a rank that computes does not look
as if it were still in a collective. When the Work is gone before its end, nobody will learn of it.

Only weak references are kept: a Work holds tensors, and the memory of a training is planned to the last byte. But where
the program has taken a Work's future instead, that is what is asked, and let go of after its end: with the next
operation, or a quarter of a second later. To have the future call us would be more to the point, and would bring Python
into the threads of torch, where it aborts programs that end at that moment.
"""
import _thread
import ctypes
import os
import weakref

LOOK_SECONDS = 0.25
STOP_SECONDS = 1.0


class Handle(weakref.ref):
    """Of a Work; it owns the ticket, so whoever takes it out of the table ends it, once."""

    __slots__ = ("key", "recorder", "ticket", "name", "group", "is_old")


class Works(object):
    def __init__(self, library):
        self.open = {}  # by the identity of the Work
        self.futures = []  # with the recorder and the ticket
        self.is_completed = None  # torch's own
        self._kept, self._kept_before = [], []
        self._library = library
        self._recorder = None
        self._pid = 0
        self._stop = self._stopped = None

    def begin(self, recorder):
        self._recorder = recorder
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        self._stop, self._stopped = _thread.allocate_lock(), _thread.allocate_lock()
        self._stop.acquire()
        self._stopped.acquire()
        try:
            _thread.start_new_thread(self._look, (self._stop, self._stopped))
        except Exception:  # pylint: disable=broad-except
            self._stop = None  # no more threads here: then nobody asks

    def follow(self, work, recorder, ticket, name, group):
        if work is None:
            self._library.end(recorder, ticket)
            return
        try:
            handle = Handle(work, self._is_gone)
        except TypeError:  # of a kind that can't be followed
            self._library.forget(recorder, ticket)
            return
        handle.key = key = id(work)
        handle.recorder = recorder
        handle.ticket = ticket
        handle.name = name
        handle.group = group
        handle.is_old = False
        self.open[key] = handle

    def keep(self, tensors):
        """Of C++, that Python has only come to see through us: from then on the last one to let go of them has to come
        into Python, and where that is a thread of Gloo's and the program is just ending, torch aborts it. So we hold
        them until Gloo has let go of them, which it has soon after the end of an operation."""
        if self._stop is not None:  # else there is no thread that would let go of them
            self._kept.append(tensors)

    def keep_for_ever(self):
        """At the end of the program."""
        for kept in (self._kept, self._kept_before):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))

    def _is_gone(self, handle):
        if self.open.get(handle.key) is handle:
            del self.open[handle.key]
            self._library.forget(handle.recorder, handle.ticket)

    def ask_futures(self):
        """Any thread may come here; what it has taken out is its own."""
        for _ in range(len(self.futures)):
            try:
                asked = self.futures.pop(0)
            except IndexError:
                return
            if _is_over(asked[0].done):
                self._library.end(*asked[1:])
            else:
                self.futures.append(asked)

    def forget_all(self):
        while self.futures:
            try:
                self._library.forget(*self.futures.pop()[1:])
            except IndexError:
                break
        while self.open:
            try:
                handle = self.open.popitem()[1]
            except KeyError:
                return
            self._library.forget(handle.recorder, handle.ticket)

    def clear(self):
        self.open.clear()
        del self.futures[:]

    # -- the thread that asks

    def _look(self, stop, stopped):
        while not stop.acquire(timeout=LOOK_SECONDS):
            try:
                if self.open:
                    self._ask(stop)
                if self.futures:
                    self.ask_futures()
                if self._kept or self._kept_before:
                    self._kept_before, self._kept = self._kept, []
            except Exception:  # pylint: disable=broad-except
                pass
        stopped.release()

    def _ask(self, stop):
        for handle in list(self.open.values()):
            if not stop.locked():
                return
            if not handle.is_old:
                handle.is_old = True
                continue
            # To ask a device may disturb what it is just doing, and to ask MPI is a call of MPI.
            work = handle() if handle.group.is_gloo else None
            if work is None or not _is_over(self.is_completed, work):
                continue
            if self.open.get(handle.key) is handle:
                del self.open[handle.key]
                self._library.end(handle.recorder, handle.ticket)

    def stop(self):
        """Before the interpreter is taken down around it."""
        if self._pid == os.getpid() and self._stop is not None and self._stop.locked():
            self._stop.release()
            self._stopped.acquire(timeout=STOP_SECONDS)
            self._stop = None


def _is_over(ask, *of):
    try:
        return ask(*of)
    except Exception:  # pylint: disable=broad-except
        return True  # it has failed, or can't be asked


def wrap(work_class, works, library):
    """The methods by which a program learns of an end."""
    open_works, begin_wait, end_wait, end = works.open, library.begin_wait, library.end_wait, library.end
    forget, leave, futures = library.forget, library.leave, works.futures
    works.is_completed = work_class.is_completed

    def waiting(original):
        def wait(self, *args, **kwargs):
            handle = open_works.pop(id(self), None)
            if handle is None:
                return original(self, *args, **kwargs)
            begin_wait(handle.recorder, handle.ticket, handle.name)
            try:
                return original(self, *args, **kwargs)
            finally:
                if handle.group.is_host:
                    end_wait(handle.recorder, handle.ticket)
                else:  # the device's queue waits, and not the program
                    forget(handle.recorder, handle.ticket)
                    leave(handle.recorder)

        return wait

    def asking(original):
        def is_completed(self):
            is_over = original(self)
            if is_over:
                handle = open_works.pop(id(self), None)
                if handle is not None:
                    end(handle.recorder, handle.ticket)
            return is_over

        return is_completed

    def calling_back(original):
        def get_future(self):
            future = original(self)
            handle = open_works.get(id(self))
            if handle is not None and handle.group.is_host and open_works.pop(id(self), None) is handle:
                futures.append((future, handle.recorder, handle.ticket))
            return future

        return get_future

    return {"wait": waiting, "synchronize": waiting, "is_completed": asking, "get_future": calling_back}
