"""A PyTorch training on CPUs with Gloo: an all-reduce per step, whose rank 2 hangs at step 5 of the first round in the
way that is asked for. Each way is one of real life, and a function of its own, so that a stack says which."""
import argparse
import ctypes
import os
import signal
import threading
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

HANGS_AT = 5
STEPS = 12


def hold_the_lock_of_the_interpreter():
    ctypes.PyDLL(None).sleep(1000)  # unlike CDLL it keeps the lock while C code runs


def stop_by_a_signal():
    os.kill(os.getpid(), signal.SIGSTOP)


def lock_in_the_wrong_order():
    one, other = threading.Lock(), threading.Lock()
    ready = threading.Barrier(2)

    def take(first, second):
        with first:
            ready.wait()
            with second:
                pass

    threading.Thread(target=take, args=(other, one), daemon=True).start()
    take(one, other)


class Numbers(Dataset):
    """The data: what goes wrong there goes wrong while an item is being made."""

    def __init__(self, hang, rank):
        self.hang = hang if rank == 2 and os.environ["AIMASTER_ROUND"] == "0" else None

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        if index == HANGS_AT and self.hang == "loader":
            self.fetch_from_storage()
        if index == HANGS_AT and self.hang == "fifo":
            self.read_a_pipe_that_nobody_fills()
        return torch.full((8,), float(index))

    @staticmethod
    def fetch_from_storage():
        time.sleep(1000)

    @staticmethod
    def read_a_pipe_that_nobody_fills():
        path = "/tmp/aimaster-fifo-%d" % os.getpid()
        os.mkfifo(path)
        with open(path, "rb") as pipe:
            pipe.read()


def train(hang, rank):
    loader = DataLoader(Numbers(hang, rank), batch_size=1, num_workers=1 if hang == "fifo" else 0)
    hangs = rank == 2 and os.environ["AIMASTER_ROUND"] == "0"
    for step, batch in enumerate(loader):
        if hangs and step == HANGS_AT:
            if hang == "skip":
                dist.barrier()  # the others are in an all-reduce, and it never comes to theirs
            elif hang == "gil":
                hold_the_lock_of_the_interpreter()
            elif hang == "sigstop":
                stop_by_a_signal()
            elif hang == "deadlock":
                lock_in_the_wrong_order()
        total = batch.sum()
        dist.all_reduce(total)
        print("rank", rank, "step", step, "sum", total.item(), flush=True)
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hang")
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print("rank", rank, "is up", flush=True)
    train(arguments.hang, rank)
    dist.barrier()
    print("rank", rank, "is done", flush=True)


main()
