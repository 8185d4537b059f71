#!/usr/bin/env python3
"""Checks that the include graph of src/ points downwards, and that the pure folders do no input or output.

The design is a picture of layers; a picture that nothing checks is wrong after a month. Each folder is on one level and
may include its own files and those of lower levels. What is pure can be replayed, simulated and explained, so the pure
folders include nothing that could read a clock, a file, a socket or a thread.
"""
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"

LEVELS = [
    {"core"},
    {"engine", "detect", "c4d", "stacks"},
    {"journal", "wire"},
    {"agent", "master", "mpi", "nodes", "notify"},
    {"console", "cli", "sim"},
]
# The shim and the probe run where nothing else of ours may be; they stand alone, but others may read their formats.
ALONE = {"shim", "probe"}
# What of them is a format and no more: bytes can be read where nothing else of theirs may be included.
FORMATS = {"probe/record.h"}
# Neighbours on one level that are allowed, each with its reason.
SIDEWAYS = {
    ("master", "nodes"): "the master drives the node providers",
    ("master", "notify"): "the master sends what it decided",
}
PURE = {"core", "engine", "detect", "c4d", "stacks"}
# Programs that run at build time, and tests, live beside what they are for; they may read and write files.
# core/check.cc prints why the process stops, with its last breath.
NOT_PURE_FILES = re.compile(r"(_test|_fuzzer)\.cc$|_harness\.h$|^(detect/rules_compiler|core/check)\.cc$")
INPUT_OUTPUT = re.compile(
    r"^(fstream|iostream|istream|ostream|filesystem|cstdio|stdio\.h|thread|mutex|shared_mutex|condition_variable|"
    r"future|atomic|random|ctime|time\.h|unistd\.h|fcntl\.h|poll\.h|dirent\.h|signal\.h|csignal|pthread\.h|netdb\.h|"
    r"sys/.*|netinet/.*|arpa/.*|linux/.*|boost/asio.*|boost/beast.*|sqlite3\.h|google/protobuf/.*|aimaster/v1/.*)$")
# The one exception: text is formatted with snprintf, which does no output.
FORMATTING_ONLY = {"cstdio": re.compile(r"\b(printf|fprintf|puts|fopen|fread|fwrite|FILE|stdout|stderr)\b")}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def level_of(folder):
    for number, folders in enumerate(LEVELS):
        if folder in folders:
            return number
    return None


def check_direction(folder, included):
    """Why `folder` must not include `included`, or None."""
    if folder == included or included in ALONE and folder not in PURE:
        return None
    if folder in ALONE:
        return f"{folder}/ stands alone; copy the constant, or move what is shared into a header of {folder}/"
    own, other = level_of(folder), level_of(included)
    if other is None:
        return f"{included}/ is on no level yet: add it to LEVELS in tools/check_layering.py"
    if other < own or (folder, included) in SIDEWAYS:
        return None
    return f"{folder}/ is below {included}/ or beside it: move what is needed down, or pass it in as an argument"


def is_test(path):
    return re.search(r"(_test|_fuzzer|_bench)\.cc$|_harness\.h$", path.name) is not None


def check_file(path, complaints):
    relative = path.relative_to(SOURCE)
    folder = relative.parts[0]
    text = path.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        kind, included = match.groups()
        where = f"src/{relative}:{number}: includes {included}: "
        first = included.split("/")[0]
        if kind == '"' and (SOURCE / first).is_dir() and "/" in included and not is_test(path):
            remedy = None if included in FORMATS else check_direction(folder, first)
            if remedy:
                complaints.append(where + remedy)
        if folder in PURE and not NOT_PURE_FILES.search(str(relative)) and INPUT_OUTPUT.match(included):
            forbidden = FORMATTING_ONLY.get(included)
            if forbidden is None or forbidden.search(re.sub(r"//.*", "", text)):
                complaints.append(where + f"{folder}/ is pure: let the caller do it and pass the result in")


def main():
    complaints = []
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    for folder in sorted(folders):
        if level_of(folder) is None and folder not in ALONE:
            complaints.append(f"src/{folder}: on no level; add it to LEVELS in tools/check_layering.py")
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix in (".h", ".cc", ".c"):
            check_file(path, complaints)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
