#!/usr/bin/env python3
"""./dev demo: a real training loses a process in mid-epoch, and ends exactly where an undisturbed one ends.

It runs the same training twice, once left alone and once with rank 2 killed, shows what happens as it happens, and
compares. What it says in the end it has checked: it exits with 1 when anything did not hold.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = "/usr/bin/python3"
RANKS = 4
DYING_RANK, DYING_STEP = 2, 93
TRAINING = ["--limit", "8192", "--epochs", "2", "--batch-size", "32", "--checkpoint-every", "10",
            "--report-every", "16"]


class Screen:
    """Narration in bold where there is a terminal, plain elsewhere."""

    def __init__(self):
        self.colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def say(self, text):
        print(f"\n\x1b[1m{text}\x1b[0m" if self.colour else f"\n== {text}", flush=True)


def training(folder, *further):
    script = str(ROOT / "examples" / "pytorch" / "train.py")
    return [PYTHON, script, "--checkpoint-dir", str(folder), *TRAINING, *further]


def run_job(aimaster, environment, name, flags, command):
    """Runs a job in the foreground, shows its output as it comes, and returns its exit code and that output."""
    arguments = [aimaster, "run", "--name", name, "--workers", str(RANKS), *flags, "--", *command]
    print("$ aimaster run", *shorten(arguments[2:]), flush=True)
    process = subprocess.Popen(arguments, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            if not is_traceback_noise(line):
                print("  " + line, end="", flush=True)
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        process.wait()
        sys.exit(130)
    return process.wait(), "".join(lines)


def shorten(arguments):
    return [argument.replace(str(ROOT) + "/", "") for argument in arguments]


def is_traceback_noise(line):
    """The frames between `Traceback` and the error itself: they hide the story."""
    return line.startswith(("  File ", "    "))


def show(aimaster, environment, *arguments):
    print("$ aimaster", *arguments, flush=True)
    finished = subprocess.run([aimaster, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True)
    print("".join("  " + line + "\n" for line in (finished.stdout + finished.stderr).splitlines()), flush=True)
    return finished.returncode == 0


def read_json(aimaster, environment, *arguments):
    finished = subprocess.run([aimaster, *arguments, "--json"], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
    return json.loads(finished.stdout) if finished.returncode == 0 else None


def final(output):
    found = re.search(r"final step=(\d+) loss=(\S+) accuracy=(\S+)", output)
    return found.groups() if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=str(ROOT / "build" / "bin"), help="folder with the programs")
    aimaster = str(Path(parser.parse_args().bin).resolve() / "aimaster")
    screen = Screen()
    began = time.monotonic()
    checks = []

    with tempfile.TemporaryDirectory(prefix="aimaster-demo-") as folder:
        environment = {**os.environ, "AIMASTER_HOME": f"{folder}/home"}
        screen.say(f"1. A small network learns Fashion-MNIST on {RANKS} processes. Nobody disturbs it.")
        code, output = run_job(aimaster, environment, "undisturbed", [], training(f"{folder}/undisturbed"))
        undisturbed = final(output)
        checks.append(("the undisturbed training ends", code == 0 and undisturbed is not None))

        screen.say(f"2. The same again. Before step {DYING_STEP}, rank {DYING_RANK} is killed with SIGKILL.")
        dying = ["--die-rank", str(DYING_RANK), "--die-step", str(DYING_STEP)]
        code, output = run_job(aimaster, environment, "killed", ["--enable-job-restart=True"],
                               training(f"{folder}/killed", *dying))
        killed = final(output)
        resumed = re.search(r"resumed at step (\d+)", output)
        checks.append(("the training with the killed rank ends", code == 0 and killed is not None))
        checks.append(("round 1 resumed from a checkpoint at a step > 0", resumed is not None and int(resumed[1]) > 0))
        checks.append((f"same final step, loss and accuracy: {killed} and {undisturbed}",
                       killed is not None and killed == undisturbed))

        screen.say("3. What the records say.")
        checks += [(f"aimaster {command} answers", show(aimaster, environment, command, "killed"))
                   for command in ("records", "rounds", "explain")]
        records = read_json(aimaster, environment, "records", "killed") or []
        checks.append(("there is one record, and it names the killed rank",
                       [(record["rank"], record["error_code"]) for record in records] == [(DYING_RANK, 137)]))

    screen.say("4. What was promised, and what was seen.")
    for text, held in checks:
        print(f"  {'yes' if held else 'NO '}  {text}")
    print(f"\nThe demo took {time.monotonic() - began:.0f} s.")
    return 0 if all(held for _, held in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
