#!/usr/bin/env python3
"""A worker that needs nothing but Python and starts in milliseconds: it counts steps, and misbehaves when asked to.

    aimaster run --workers 3 -- /usr/bin/python3 worker.py --steps 20
    aimaster run --workers 3 --enable-job-restart=True -- \\
        /usr/bin/python3 worker.py --die-rank 1 --die-step 5 --die-how sigkill

It is what the tests run: every way in which a training process can make life hard for whoever started it has a flag
here, so a new trap is a new flag and not one more script.
"""
import argparse
import ctypes
import os
import signal
import sys
import time

BLOCK = ("a line of sixty-three characters, so that a block is a megabyte\n" * 16384).encode()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10, help="count so far, then end")
    parser.add_argument("--step-seconds", type=float, default=0.1)
    parser.add_argument("--state-dir", help="remember here the step reached and who died already")
    parser.add_argument("--print-env", metavar="NAMES", help="comma-separated: variables of the environment to print")
    parser.add_argument("--die-rank", metavar="RANKS", default="", help="comma-separated ranks that die, or all")
    parser.add_argument("--die-step", type=int, default=0)
    parser.add_argument("--die-how", default="exit1", metavar="HOW", help="exitN, sigkill, segfault, abort, exception")
    parser.add_argument("--die-always", action="store_true", help="in every attempt; otherwise in the first one only")
    parser.add_argument("--die-message", default="", help="printed to stderr before dying")
    parser.add_argument("--ignore-sigterm", action="store_true")
    parser.add_argument("--grandchild", action="store_true", help="leave a setsid child that ignores SIGTERM")
    parser.add_argument("--daemon", action="store_true", help="leave a double-forked daemon with an empty environment")
    parser.add_argument("--write-megabytes", type=int, default=0, help="write so much to stdout first")
    return parser.parse_args()


def say(text):
    print(text, flush=True)


def first_time(arguments, rank):
    """Whether this rank has not died before; remembered in the state folder, else told by the restart count."""
    if arguments.die_always:
        return True
    if arguments.state_dir is None:
        return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
    try:
        os.close(os.open(os.path.join(arguments.state_dir, f"died-{rank}"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def die(how, message):
    if message:
        print(message, file=sys.stderr, flush=True)
    if how == "sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "segfault":
        ctypes.string_at(0)
    elif how == "abort":
        os.abort()
    elif how == "exception":
        raise RuntimeError(message or "asked to fail")
    os._exit(int(how[len("exit"):]))


def stubborn_sleep():
    """The body of a process that should have been cleaned up: it ends by SIGKILL alone, or after a minute."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    time.sleep(60)
    os._exit(0)


def leave_grandchild():
    if os.fork() == 0:
        os.setsid()
        stubborn_sleep()


def leave_daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() > 0:
            os._exit(0)
        # A fresh program, so that the kernel's copy of the environment is empty too.
        code = "import signal,time\nfor s in (15,1): signal.signal(s, signal.SIG_IGN)\ntime.sleep(60)"
        os.execve(sys.executable, [sys.executable, "-S", "-c", code, "left-behind"], {})
    os.wait()


def state_file(arguments, rank):
    return os.path.join(arguments.state_dir, f"step-{rank}")


def load_step(arguments, rank):
    if arguments.state_dir is None:
        return 0
    try:
        with open(state_file(arguments, rank)) as file:
            return int(file.read())
    except FileNotFoundError:
        return 0


def save_step(arguments, rank, step):
    if arguments.state_dir is not None:
        with open(state_file(arguments, rank) + ".tmp", "w") as file:
            file.write(str(step))
        os.rename(state_file(arguments, rank) + ".tmp", state_file(arguments, rank))


def main():
    arguments = parse_arguments()
    rank = int(os.environ.get("RANK", "0"))
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda received, frame: say(f"rank {rank} got {signal.Signals(received).name}"))
    if arguments.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if arguments.grandchild:
        leave_grandchild()
    if arguments.daemon:
        leave_daemon()
    if arguments.print_env:
        for name in arguments.print_env.split(","):
            say(f"{name}={os.environ[name]}" if name in os.environ else f"{name} is not set")
    for _ in range(arguments.write_megabytes):
        os.write(1, BLOCK)

    step = load_step(arguments, rank)
    say(f"rank {rank} of {os.environ.get('WORLD_SIZE', '1')} starts at step {step}, process {os.getpid()}")
    dies = arguments.die_rank == "all" or str(rank) in arguments.die_rank.split(",")
    while step < arguments.steps:
        if dies and step >= arguments.die_step and first_time(arguments, rank):
            die(arguments.die_how, arguments.die_message)
        dies = dies and step < arguments.die_step
        time.sleep(arguments.step_seconds)
        step += 1
        save_step(arguments, rank, step)
        say(f"rank {rank} step {step}")
    if dies and first_time(arguments, rank):
        die(arguments.die_how, arguments.die_message)


if __name__ == "__main__":
    main()
