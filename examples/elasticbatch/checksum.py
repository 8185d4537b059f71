#!/usr/bin/env python3
"""Checks a data set by many processes that know nothing of each other: each digests its share of the images.

It stands for any offline batch work: inference over files, conversion, checking. What makes such work restart well is
that each share's result is written whole or not at all, and that a share goes on where its former life stopped:

    aimaster run --framework elasticbatch --workers 4 -- python3 checksum.py --out /tmp/run
    python3 checksum.py --out /tmp/run --combine
"""
import argparse
import ctypes
import gzip
import hashlib
import json
import os
import signal
import sys
import time

IMAGE_BYTES = 28 * 28
HEADER_BYTES = 16


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz")
    parser.add_argument("--out", required=True, help="folder for the results, one file per share")
    parser.add_argument("--limit", type=int, default=20000, help="only the first so many images")
    parser.add_argument("--keep-every", type=int, default=500, metavar="IMAGES", help="how often the progress is kept")
    parser.add_argument("--combine", action="store_true", help="put the results of all shares together, and end")
    parser.add_argument("--rest", type=float, default=0, metavar="SECONDS", help="after each kept progress")
    parser.add_argument("--die-shard", type=int, default=-1, help="this share dies once, for trying things out")
    parser.add_argument("--die-image", type=int, default=-1, help="before its so manieth image")
    parser.add_argument("--die-how", choices=["sigkill", "exit7", "exception", "segfault", "memory", "disk"],
                        default="sigkill")
    return parser.parse_args()


def say(text):
    print(text, flush=True)


def read_images(path, limit):
    with gzip.open(path, "rb") as file:
        if file.read(HEADER_BYTES)[:3] != b"\0\0\x08":
            raise ValueError(f"{path} is no IDX file of bytes")
        content = file.read(limit * IMAGE_BYTES)
    return [content[start:start + IMAGE_BYTES] for start in range(0, len(content), IMAGE_BYTES)]


def write_whole(path, value):
    with open(path + ".tmp", "w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".tmp", path)


def result_path(folder, shard, shards):
    return os.path.join(folder, f"shard-{shard}-of-{shards}.json")


def die_once(arguments, shard, done):
    if shard != arguments.die_shard or done != arguments.die_image:
        return
    try:
        os.close(os.open(os.path.join(arguments.out, f"died-shard{shard}"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    say(f"shard {shard} dies now: {arguments.die_how}")
    if arguments.die_how == "sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif arguments.die_how == "exit7":
        os._exit(7)
    elif arguments.die_how == "segfault":
        ctypes.string_at(0)
    elif arguments.die_how == "memory":
        bytearray(1 << 62)
    elif arguments.die_how == "disk":
        with open("/dev/full", "w") as full:
            full.write("a result that finds no room")
    raise RuntimeError(f"shard {shard} was asked to fail")


def digest_share(arguments, shard, shards):
    path = result_path(arguments.out, shard, shards)
    state = {"done": 0, "sum": 0}
    if os.path.exists(path):
        with open(path) as file:
            state = json.load(file)
    say(f"shard {shard} of {shards} begins at image {state['done']} of its share")
    mine = read_images(arguments.data, arguments.limit)[shard::shards]
    for done in range(state["done"], len(mine)):
        die_once(arguments, shard, done)
        # A sum of digests does not depend on the order, so any number of shares gives the same.
        digest = hashlib.sha256(mine[done]).digest()
        state = {"done": done + 1, "sum": (state["sum"] + int.from_bytes(digest, "big")) % (1 << 256)}
        if (done + 1) % arguments.keep_every == 0:
            write_whole(path, state)
            time.sleep(arguments.rest)
    write_whole(path, state)
    say(f"shard {shard} is done: {state['done']} images")


def combine(folder):
    names = sorted(name for name in os.listdir(folder) if name.startswith("shard-") and name.endswith(".json"))
    total, images = 0, 0
    for name in names:
        with open(os.path.join(folder, name)) as file:
            state = json.load(file)
        total, images = (total + state["sum"]) % (1 << 256), images + state["done"]
    say(f"{images} images in {len(names)} shares: {total:064x}")


def main():
    arguments = parse_arguments()
    if arguments.combine:
        return combine(arguments.out)
    os.makedirs(arguments.out, exist_ok=True)
    return digest_share(arguments, int(os.environ["AIMASTER_SHARD_INDEX"]), int(os.environ["AIMASTER_SHARD_COUNT"]))


if __name__ == "__main__":
    sys.exit(main())
