#!/usr/bin/env python3
"""A rank whose training output can be checked to the last line: it counts steps from a checkpoint, writes one line per
step, and holds a lock, so that a second life beside it shows at once.

    rank.py DIRECTORY STEPS SECONDS_PER_STEP

DIRECTORY is shared by all ranks and all lives. For each rank it gets RANK.lock, RANK.checkpoint (the last step whose
line is written) and RANK.log (one line per life and per step: attempt, step or `begins`). A life that finds the lock
taken writes to `doubled` and ends with 99. With RANK.fail-N in the directory, life N of the rank prints that file and
ends with 3 at its next step.
"""
import contextlib
import fcntl
import os
import sys
import time

DIRECTORY, STEPS, SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
RANK, ATTEMPT = os.environ["RANK"], os.environ["AIMASTER_ATTEMPT"]


def path(ending):
    return os.path.join(DIRECTORY, f"{RANK}.{ending}")


def append(name, text):
    descriptor = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, text.encode())
    os.close(descriptor)


def say(text):
    """Training does not end because its words find no room."""
    with contextlib.suppress(OSError):
        os.write(1, (text + "\n").encode())


def checkpoint():
    with contextlib.suppress(FileNotFoundError), open(path("checkpoint")) as file:
        return int(file.read())
    return -1


def save(step):
    with open(path("checkpoint.new"), "w") as file:
        file.write(str(step))
    os.rename(path("checkpoint.new"), path("checkpoint"))


def asked_to_fail():
    with contextlib.suppress(FileNotFoundError):
        with open(path(f"fail-{ATTEMPT}")) as file:
            print(file.read(), file=sys.stderr, flush=True)
        os._exit(3)


def main():
    lock = os.open(path("lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        append(os.path.join(DIRECTORY, "doubled"), f"rank {RANK} attempt {ATTEMPT}\n")
        sys.exit(99)
    first = checkpoint() + 1
    append(path("log"), f"{ATTEMPT} begins\n")
    say(f"rank {RANK} attempt {ATTEMPT} starts at step {first}")
    for step in range(first, STEPS):
        time.sleep(SECONDS)
        asked_to_fail()
        append(path("log"), f"{ATTEMPT} {step}\n")
        say(f"step {step}")
        save(step)
    say(f"rank {RANK} attempt {ATTEMPT} is done")


main()
