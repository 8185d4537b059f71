"""What both trainings share: the data, the model, checkpoints, and a way to die on purpose.

The model is a softmax regression, written down in plain TensorFlow: what these examples show is how a distributed job
comes up, loses a process and goes on. A network would only make them slower.
"""
import ctypes
import gzip
import os
import signal

import numpy

CLASSES = 10
PIXELS = 28 * 28


def say(text):
    print(text, flush=True)


def add_arguments(parser):
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="folder with the four .gz files")
    parser.add_argument("--checkpoint-dir", required=True, help="on storage that all instances see")
    parser.add_argument("--checkpoint-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=64, help="images per worker and step")
    parser.add_argument("--limit", type=int, default=4096, help="train on the first so many images")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--die-task", default="", metavar="TYPE:INDEX", help="this instance dies once, for trying out")
    parser.add_argument("--die-step", type=int, default=-1, help="before this step")
    parser.add_argument("--die-how", choices=["sigkill", "exit7", "exception", "segfault", "shape"], default="sigkill")


# -- data


def read_idx(path, limit):
    """The IDX format: two zero bytes, the type, the number of dimensions, the big-endian sizes, the values."""
    with gzip.open(path, "rb") as file:
        content = file.read()
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"{path} is no IDX file of bytes")
    dimensions = content[3]
    shape = [int(size) for size in numpy.frombuffer(content, dtype=">u4", count=dimensions, offset=4)]
    return numpy.frombuffer(content, dtype=numpy.uint8, offset=4 + 4 * dimensions).reshape(shape)[:limit]


def load_images(folder, part, limit):
    images = read_idx(os.path.join(folder, f"{part}-images-idx3-ubyte.gz"), limit)
    labels = read_idx(os.path.join(folder, f"{part}-labels-idx1-ubyte.gz"), limit)
    return images.reshape(len(images), PIXELS).astype(numpy.float32) / 255.0, labels.astype(numpy.int64)


def batch_of(step, worker, workers, size, seed, images, labels):
    """Which images a worker sees at a step: a function of nothing but these, so a restart repeats and skips none."""
    chosen = numpy.random.default_rng([seed, step]).integers(0, len(labels), size * workers)
    mine = chosen[worker * size:(worker + 1) * size]
    return images[mine], labels[mine]


# -- model: logits = images @ weights + bias


def initial_values():
    return numpy.zeros((PIXELS, CLASSES), numpy.float32), numpy.zeros(CLASSES, numpy.float32)


def loss_and_accuracy(weights, bias, images, labels):
    logits = images @ weights + bias
    logits -= logits.max(axis=1, keepdims=True)
    chosen = logits[numpy.arange(len(labels)), labels]
    loss = numpy.mean(numpy.log(numpy.exp(logits).sum(axis=1)) - chosen)
    return float(loss), float((logits.argmax(axis=1) == labels).mean())


# -- checkpoints


def save_checkpoint(folder, step, weights, bias):
    """Whole or not at all, whenever the power goes: a temporary file, on the disk, then its final name."""
    path = os.path.join(folder, "checkpoint.npz")
    with open(path + ".tmp", "wb") as file:
        numpy.savez(file, step=step, weights=weights, bias=bias)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".tmp", path)
    directory = os.open(folder, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def load_checkpoint(folder):
    """(step, weights, bias); the beginning when there is none."""
    path = os.path.join(folder, "checkpoint.npz")
    if not os.path.exists(path):
        return 0, *initial_values()
    with numpy.load(path) as state:
        return int(state["step"]), state["weights"], state["bias"]


# -- dying on purpose


def die_once(arguments, task, step):
    if task != arguments.die_task or step != arguments.die_step:
        return
    marker = os.path.join(arguments.checkpoint_dir, f"died-{task.replace(':', '-')}-step{step}")
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    say(f"{task} dies now, before step {step}: {arguments.die_how}")
    if arguments.die_how == "sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif arguments.die_how == "exit7":
        os._exit(7)
    elif arguments.die_how == "segfault":
        ctypes.string_at(0)
    elif arguments.die_how == "shape":
        import tensorflow
        tensorflow.matmul(tensorflow.zeros([2, 3]), tensorflow.zeros([2, 3]))
    raise RuntimeError(f"{task} was asked to fail before step {step}")
