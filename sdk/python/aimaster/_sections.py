"""hang_detect(seconds): a stretch of the program under an interval of its own.

    with jm.hang_detect(600):         # a long evaluation
        evaluate()

    @jm.hang_detect(-1)               # no detection while it runs
    def load(): ...

The same object serves as context manager and as decorator, for whatever the body is: a function, a coroutine, a
generator, an asynchronous generator. In each case it means what `with` around the whole body would: for a generator the
section lasts from the first item until it has ended or is closed, also while nobody asks it for one.
"""
import functools
import warnings

from . import _status
from ._state import STATES, Section
from ._status import Status

OFF = -1.0
SECONDS_MAX = 1e9


def check_interval(seconds):
    """The interval as a float, −1.0 for off; or a Status that says what is wrong with it."""
    try:
        if not isinstance(seconds, bool):
            value = float(seconds)
            if value == OFF or 0.0 < value <= SECONDS_MAX:
                return value
    except Exception:  # pylint: disable=broad-except
        pass
    try:
        what = "%.100r" % (seconds,)
    except Exception:  # pylint: disable=broad-except
        what = "one of type %s" % type(seconds).__name__
    return Status(_status.INVALID, "an interval is a number of seconds above 0, or -1 for none, and not " + what)


class HangDetect(object):
    """May be entered again while it is entered, by several threads and tasks too."""

    def __init__(self, seconds):
        self._seconds = check_interval(seconds)
        self._entered = []

    def __enter__(self):
        """Returns the status of telling the agent."""
        if isinstance(self._seconds, Status):
            return self._seconds
        section = None
        try:
            state = STATES.get()
            section = Section(self._seconds, state)
            self._entered.append(section)
            return state.enter(section)
        except Exception as problem:  # pylint: disable=broad-except
            return _status.from_exception(problem)
        except BaseException:  # a signal's handler has raised; there will be no __exit__
            if section is not None:
                self.__exit__()
            raise

    def __exit__(self, *_):
        try:
            state = STATES.get()
            section = self._entered.pop()
            # A child that was forked within the section leaves what it has never entered.
            if section.state is state:
                state.leave(section)
        except Exception:  # pylint: disable=broad-except
            pass

    async def __aenter__(self):
        return self.__enter__()

    async def __aexit__(self, *_):
        self.__exit__()

    def __call__(self, function):
        if isinstance(self._seconds, Status):
            return _as_it_was(function, self._seconds.message)
        return _decorate(function, self._seconds)


def hang_detect(seconds):
    if callable(seconds):  # @hang_detect without an interval
        return _as_it_was(seconds, "hang_detect needs an interval: @hang_detect(180)")
    return HangDetect(seconds)


def _as_it_was(function, why):
    """A decorator that can't do its work leaves the function in peace; only who looks at warnings hears of it."""
    try:
        warnings.warn(why, stacklevel=3)
    except Exception:  # pylint: disable=broad-except
        pass  # warnings are errors here
    return function


def _decorate(function, seconds):
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_decorate(function.__func__, seconds))
    if isinstance(function, type) or not callable(function):
        return _as_it_was(function, "hang_detect decorates functions, and not %.100r" % (function,))
    import inspect  # pylint: disable=import-outside-toplevel

    body = function
    while isinstance(body, functools.partial):
        body = body.func
    if not inspect.isroutine(body) and not isinstance(body, functools.partial):
        body = getattr(type(body), "__call__", body)  # an object that is called like a function
    if inspect.isasyncgenfunction(body):
        return _wrap(function, _async_generator(function, seconds))
    if inspect.iscoroutinefunction(body):
        return _wrap(function, _coroutine(function, seconds))
    if inspect.isgeneratorfunction(body):
        return _wrap(function, _generator(function, seconds))
    return _wrap(function, _plain(function, seconds))


def _wrap(function, wrapper):
    return functools.update_wrapper(wrapper, function)


def _plain(function, seconds):
    def wrapper(*args, **kwargs):
        with HangDetect(seconds):
            return function(*args, **kwargs)

    return wrapper


def _coroutine(function, seconds):
    async def wrapper(*args, **kwargs):
        with HangDetect(seconds):
            return await function(*args, **kwargs)

    return wrapper


def _generator(function, seconds):
    def wrapper(*args, **kwargs):
        with HangDetect(seconds):
            return (yield from function(*args, **kwargs))

    return wrapper


def _async_generator(function, seconds):
    # What `yield from` does for generators has to be spelled out: items go out, what is sent or thrown goes in.
    async def wrapper(*args, **kwargs):
        with HangDetect(seconds):
            generator = function(*args, **kwargs)
            try:
                item = await generator.__anext__()
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        raise
                    except BaseException as thrown:  # pylint: disable=broad-except
                        item = await generator.athrow(thrown)
                    else:
                        item = await generator.asend(sent)
            except StopAsyncIteration:
                return
            finally:
                await generator.aclose()

    return wrapper
