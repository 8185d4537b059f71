"""A line for people who look for the reason why nothing is recorded: with C4D_RUNTIME_LOG_LEVEL at Debug or Trace."""
import os
import sys


def say(text, *values):
    """False, for who has to return that it did not work."""
    try:
        if os.environ.get("C4D_RUNTIME_LOG_LEVEL", "").lower() in ("debug", "trace"):
            sys.stderr.write("aimaster: " + text % values + "\n")
    except Exception:  # pylint: disable=broad-except
        pass
    return False


def failed(what, problem):
    return say("%s failed: %s: %s", what, type(problem).__name__, problem)
