"""A PyTorch program on Gloo whose ranks meet in a collective at every step; one of them hangs, once.

    meets.py STEPS [sleep|stop RANK STEP SECONDS MARK]
    meets.py STEPS slow RANK STEP SECONDS
    meets.py STEPS well 0 0 0 - NUMBERS

sleep: before it meets the others, and no longer than until there is a file MARK.enough; stop: while it is among them.
The file MARK remembers it for a restarted job. slow: it computes for so long in each step from that one on. well:
nothing is wrong, and so many numbers are summed up.
"""
import os
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist


def is_first(mark):
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


def sleep(seconds, enough):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not os.path.exists(enough):
        time.sleep(0.05)


def main():
    steps = int(sys.argv[1])
    how, culprit, when, seconds, mark = (sys.argv[2:7] + [""] * 5)[:5]
    will_hang = how in ("sleep", "stop") and not os.path.exists(mark)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print(f"rank {rank} is process {os.getpid()}", flush=True)
    dist.barrier()
    has_fault = will_hang and rank == int(culprit) and is_first(mark)
    values = torch.ones(int(sys.argv[7]) if how == "well" else 64)
    for step in range(steps):
        is_slow = how == "slow" and rank == int(culprit) and step >= int(when)
        time.sleep(float(seconds) if is_slow else 0.02)
        if will_hang and step == int(when):
            if has_fault and how == "sleep":
                sleep(float(seconds), mark + ".enough")
            elif has_fault:
                threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGSTOP)).start()
            elif how == "stop":
                time.sleep(1)
        dist.all_reduce(values)
        values /= dist.get_world_size()
    if rank == 0:
        print(f"met {steps} times", flush=True)
    dist.destroy_process_group()


main()
