#!/usr/bin/env python3
"""Trains a small CNN on Fashion-MNIST with DistributedDataParallel, and survives being killed.

A job that restarts from a checkpoint should end where an undisturbed one ends: not nearby, exactly there. So everything
that decides the next step is a function of the seed and the step number (which images, in which order), and everything
else is in the checkpoint (model, optimiser, random state). Continuing "somewhere in the epoch" with a fresh shuffle was
rejected: it trains on some images twice and never on others, and nobody can check that a restart did no harm.

Start it with any launcher that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT:

    aimaster run --workers 4 --enable-job-restart=True -- /usr/bin/python3 train.py --checkpoint-dir /tmp/run
"""
import argparse
import ctypes
import gzip
import os
import signal
import sys
import time

# The reducer warns about an option that we chose on purpose, see train(); these are read while torch is imported.
os.environ.setdefault("GLOG_minloglevel", "2")
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CHECKPOINTS_KEPT = 2


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="folder with the four .gz files")
    parser.add_argument("--checkpoint-dir", required=True, help="on storage that all ranks see")
    parser.add_argument("--checkpoint-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps-per-epoch", type=int, default=0, help="0: as many as the data gives")
    parser.add_argument("--batch-size", type=int, default=32, help="images per rank and step")
    parser.add_argument("--limit", type=int, default=8192, help="train on the first so many images")
    parser.add_argument("--test-limit", type=int, default=2000, help="measure accuracy on so many test images")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--die-rank", type=int, default=-1, help="this rank dies once, for trying things out")
    parser.add_argument("--die-step", type=int, default=-1, help="before this step")
    parser.add_argument("--die-how", choices=["sigkill", "exit7", "exception", "segfault"], default="sigkill")
    return parser.parse_args()


def say(text):
    print(text, flush=True)


# -- data


def read_idx(path):
    """The IDX format: two zero bytes, the type, the number of dimensions, the big-endian sizes, the values."""
    with gzip.open(path, "rb") as file:
        content = file.read()
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"{path} is no IDX file of bytes")
    dimensions = content[3]
    shape = numpy.frombuffer(content, dtype=">u4", count=dimensions, offset=4)
    values = numpy.frombuffer(content, dtype=numpy.uint8, offset=4 + 4 * dimensions)
    return values.reshape([int(size) for size in shape])


def load_images(folder, part, limit):
    images = read_idx(os.path.join(folder, f"{part}-images-idx3-ubyte.gz"))[:limit]
    labels = read_idx(os.path.join(folder, f"{part}-labels-idx1-ubyte.gz"))[:limit]
    inputs = torch.from_numpy(images.astype(numpy.float32) / 255.0 - 0.5).unsqueeze(1)
    return inputs, torch.from_numpy(labels.astype(numpy.int64))


def batch_indices(order, step_in_epoch, rank, world_size, batch_size):
    first = (step_in_epoch * world_size + rank) * batch_size
    return order[first:first + batch_size]


# -- model


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * 5 * 5, 64), nn.ReLU(), nn.Linear(64, 10))


def accuracy_of(model, inputs, labels):
    with torch.no_grad():
        return (model(inputs).argmax(dim=1) == labels).float().mean().item()


# -- checkpoints


def checkpoint_path(folder, step):
    return os.path.join(folder, f"checkpoint-{step:08d}.pt")


def checkpoint_steps(folder):
    names = [name for name in os.listdir(folder) if name.startswith("checkpoint-") and name.endswith(".pt")]
    return sorted(int(name[len("checkpoint-"):-len(".pt")]) for name in names)


def save_checkpoint(folder, step, model, optimizer):
    """Whole or not at all, whenever the power goes: a temporary file, on the disk, then its final name."""
    path = checkpoint_path(folder, step)
    with open(path + ".tmp", "wb") as file:
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "random": torch.get_rng_state()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".tmp", path)
    directory = os.open(folder, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
    for old in checkpoint_steps(folder)[:-CHECKPOINTS_KEPT]:
        os.unlink(checkpoint_path(folder, old))


def load_checkpoint(folder, rank, model, optimizer):
    """Rank 0 chooses, so that all ranks continue from the same step even where a folder is seen late."""
    latest = torch.zeros(1, dtype=torch.int64)
    if rank == 0:
        latest[0] = (checkpoint_steps(folder) or [0])[-1]
    dist.broadcast(latest, src=0)
    step = int(latest.item())
    if step > 0:
        state = torch.load(checkpoint_path(folder, step))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
    return step


# -- dying on purpose


def die_once(arguments, rank, step):
    if rank != arguments.die_rank or step != arguments.die_step:
        return
    marker = os.path.join(arguments.checkpoint_dir, f"died-rank{rank}-step{step}")
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    say(f"rank {rank} dies now, before step {step}: {arguments.die_how}")
    if arguments.die_how == "sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif arguments.die_how == "exit7":
        os._exit(7)
    elif arguments.die_how == "segfault":
        ctypes.string_at(0)
    raise RuntimeError(f"rank {rank} was asked to fail before step {step}")


# -- training


def train(arguments, rank, world_size):
    inputs, labels = load_images(arguments.data, "train", arguments.limit)
    steps_per_epoch = len(labels) // (world_size * arguments.batch_size)
    if arguments.steps_per_epoch > 0:
        steps_per_epoch = min(steps_per_epoch, arguments.steps_per_epoch)
    if steps_per_epoch == 0:
        raise ValueError(f"{len(labels)} images are too few for {world_size} ranks of {arguments.batch_size} each")

    torch.manual_seed(arguments.seed)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.learning_rate, momentum=0.9)
    step = load_checkpoint(arguments.checkpoint_dir, rank, model, optimizer)
    if rank == 0:
        say(f"resumed at step {step}" if step > 0 else "started at step 0")
    # Without this option the reducer lays its buckets out anew after its first step, sums in another order from then
    # on, and a resumed run ends some bits away from an undisturbed one.
    parallel = DistributedDataParallel(model, find_unused_parameters=True)

    total = arguments.epochs * steps_per_epoch
    loss = torch.zeros(())
    epoch_of_order, order = None, None
    while step < total:
        epoch, step_in_epoch = divmod(step, steps_per_epoch)
        if epoch != epoch_of_order:
            shuffle = torch.Generator().manual_seed(arguments.seed * 1_000_003 + epoch)
            epoch_of_order, order = epoch, torch.randperm(len(labels), generator=shuffle)
        die_once(arguments, rank, step)
        batch = batch_indices(order, step_in_epoch, rank, world_size, arguments.batch_size)
        optimizer.zero_grad()
        loss = cross_entropy(parallel(inputs[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        step += 1
        if rank == 0 and step % arguments.report_every == 0:
            say(f"epoch {epoch + 1} step {step}/{total} loss={loss.item():.4f}")
        if rank == 0 and (step % arguments.checkpoint_every == 0 or step == total):
            save_checkpoint(arguments.checkpoint_dir, step, model, optimizer)

    dist.barrier()
    if rank == 0:
        test_inputs, test_labels = load_images(arguments.data, "t10k", arguments.test_limit)
        mean_loss = 0.0
        with torch.no_grad():
            mean_loss = cross_entropy(model(test_inputs), test_labels).item()
        say(f"final step={step} loss={mean_loss:.6f} accuracy={accuracy_of(model, test_inputs, test_labels):.4f}")


def main():
    arguments = parse_arguments()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    os.makedirs(arguments.checkpoint_dir, exist_ok=True)
    started = time.monotonic()
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    say(f"rank {rank} of {world_size} is connected, restart {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}")
    train(arguments, rank, world_size)
    if rank == 0:
        say(f"trained for {time.monotonic() - started:.1f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
