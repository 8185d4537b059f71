#!/usr/bin/env python3
"""A training, in outline, that tells AIMaster what its output does not show.

    aimaster run --workers 2 --enable-job-restart=True -- python3 examples/sdk/monitored.py

It needs no framework; the loss is made up. Outside of a job it runs just the same.
"""
import argparse
import math
import os
import sys
import time

# From a checkout; with the wheel installed (pip install build/sdk/pai_aimaster-*.whl) this line is not needed.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sdk", "python"))

from aimaster import job_monitor as jm  # noqa: E402


def train_step(step, nan_at):
    time.sleep(0.02)
    return math.nan if step == nan_at else 1.0 / (step + 1)


@jm.hang_detect(600)  # it prints nothing for long, and is no hang
def evaluate():
    time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--nan-at", type=int, default=7, help="the step at which the loss is no number")
    arguments = parser.parse_args()
    rank = int(os.environ.get("RANK", "0"))

    monitor = jm.Monitor(config=jm.PyTorchConfig(job_hang_interval=1800))
    monitor.set_retryable_errors(["connect timeout"])
    for step in range(arguments.steps):
        loss = train_step(step, arguments.nan_at)
        jm.report_step(step, loss=loss)
        if math.isnan(loss):
            status = monitor.send_custom_message(content="loss is NaN at step %d" % step)
            if not status.ok():
                print(status.to_string())
        if step % 10 == 9:
            evaluate()
            if rank == 0:
                jm.report_checkpoint(step)  # after it is saved, for real
    print("rank %d has done %d steps" % (rank, arguments.steps))


if __name__ == "__main__":
    main()
