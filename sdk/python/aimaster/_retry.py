"""What could not be told is told later.

An agent that was killed is back within a second or two; a section that was entered in that second must count all the
same, and its end may be an hour away. So whoever has something left to say is called again, from a thread that exists
only then: it ends when all is said, or when nobody has listened for GIVE_UP_SECONDS. The next call tries anew.
"""
import threading
import time

FIRST_SECONDS = 0.05
LONGEST_SECONDS = 1.0
GIVE_UP_SECONDS = 60.0


class Retry(object):
    """`settle()` says what is owed and returns whether that was all. Belongs to one process."""

    def __init__(self, settle):
        self._settle = settle
        self._running = threading.Lock()  # held by the thread for as long as it lives

    def soon(self):
        if not self._running.acquire(False):
            return
        try:
            thread = threading.Thread(target=self._run, name="aimaster-retry")
            thread.daemon = True
            thread.start()
        except RuntimeError:  # no more threads, or the interpreter is ending
            self._running.release()

    def _run(self):
        settled = False
        try:
            pause, until = FIRST_SECONDS, time.monotonic() + GIVE_UP_SECONDS
            while not settled and time.monotonic() < until:
                time.sleep(pause)
                settled = self._settle()
                pause = min(2 * pause, LONGEST_SECONDS)
        finally:
            self._running.release()
        if settled and not self._settle():  # something more was owed while this thread was about to go
            self.soon()
