"""What the end-to-end tests share: a private home, jobs run to their end or in the background, and a look at what is
left.

Every process that a test causes carries a marker in its environment, so the fixture can tell after each test whether
something was left behind, whoever its parent is by then. A process that erases its environment escapes this look; the
tests of test_leftovers.py therefore run in a pid namespace of their own and look at everything in it.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("AIMASTER_BIN", ROOT / "build" / "bin"))
AIMASTER = str(BIN / "aimaster")
PYTHON = "/usr/bin/python3"
WORKER = [PYTHON, "-S", str(ROOT / "examples" / "plain" / "worker.py")]
TRAIN = [PYTHON, str(ROOT / "examples" / "pytorch" / "train.py")]
LONG = os.environ.get("AIMASTER_TEST_LONG") == "1"  # what takes many minutes, as often and as long as it is promised
FULL = LONG or os.environ.get("AIMASTER_TEST_FULL") == "1"  # the counts of the specification; otherwise smaller ones
JOB_ID = re.compile(r"\bdlc[a-z0-9]{13}\b")
TIMESTAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


def wait_for(condition, what, timeout=20.0, every=0.02):
    """Returns the first true value of condition(); fails with `what` when there is none in time."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {timeout:g} s in vain for: {what}"
        time.sleep(every)


class Finished:
    """How a command ended."""

    def __init__(self, arguments, code, stdout, stderr, seconds):
        self.arguments, self.code, self.stdout, self.stderr, self.seconds = arguments, code, stdout, stderr, seconds

    def __repr__(self):
        return (f"{' '.join(map(str, self.arguments))}\nexit code {self.code} after {self.seconds:.2f} s\n"
                f"--- stdout\n{self.stdout[-4000:]}\n--- stderr\n{self.stderr[-8000:]}")

    def json(self):
        assert self.code == 0, self
        return json.loads(self.stdout)


class Background:
    """A command of ours that runs while the test does other things. Its output goes to files, so it never blocks."""

    def __init__(self, home, arguments, **options):
        self.arguments = arguments
        self.began = time.monotonic()
        number = next(home.numbers)
        self.out_path, self.err_path = home.folder / f"command{number}.out", home.folder / f"command{number}.err"
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            start_new_session=True, **options)

    @property
    def stdout(self):
        return self.out_path.read_text(errors="replace")

    @property
    def stderr(self):
        return self.err_path.read_text(errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=60.0):
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"did not end within {timeout} s: {self.finished(None)}") from None
        return self.finished(code)

    def finished(self, code):
        return Finished(self.arguments, code, self.stdout, self.stderr, time.monotonic() - self.began)


class Home:
    """A private AIMASTER_HOME, and the commands that use it."""

    def __init__(self, folder, marker, prefix=(), path=None):
        self.folder = folder  # of what the commands print
        self.prefix = prefix  # of every command: another user, say
        self.path = path or folder / "home"
        self.marker = marker
        self.numbers = iter(range(1, 10_000))
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("AIMASTER_")}
        self.environment.update(AIMASTER_HOME=str(self.path), AIMASTER_TEST_MARKER=marker, NO_COLOR="1",
                                PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")

    def call(self, *arguments, timeout=60.0, env=None, cwd=None):
        """Runs a command of `aimaster` to its end."""
        return self.start(*arguments, env=env, cwd=cwd).wait(timeout)

    def start(self, *arguments, env=None, cwd=None, prefix=()):
        command = [*self.prefix, *prefix, AIMASTER, *map(str, arguments)]
        return Background(self, command, env={**self.environment, **(env or {})}, cwd=cwd or str(self.folder))

    # -- the job that a test is about ---------------------------------------------------------------------------------

    def run(self, *flags_and_command, timeout=60.0, **options):
        return self.call("run", *flags_and_command, timeout=timeout, **options)

    def list(self):
        return self.call("list", "--json").json()

    def job(self):
        """The id of the newest job; waits for it to be there and to have begun its journal."""
        def begun():
            found = self.list() if (self.path / "jobs").is_dir() else []
            return found and self.call("get", found[0]["job_id"]).code == 0 and found[0]["job_id"]

        return wait_for(begun, "a job that has begun")

    def job_of(self, running):
        """The id of the job that a `run` in the background has made."""
        return wait_for(lambda: JOB_ID.search(running.stderr), f"a job: {running.finished(None)}")[0]

    def get(self, job=None):
        return self.call("get", job or self.job(), "--json").json()

    def workers(self, job=None):
        """The instances of the job less the master's own, which is listed too."""
        return [one for one in self.get(job)["instances"] if one["role"] != "aimaster"]

    def records(self, job=None):
        return self.call("records", job or self.job(), "--json").json()

    def rounds(self, job=None):
        return self.call("rounds", job or self.job(), "--json").json()

    def explain(self, job=None):
        return self.call("explain", job or self.job(), "--json").json()

    def directory(self, job=None):
        return self.path / "jobs" / (job or self.job())

    def wait_for_output(self, running, text, times=1, timeout=30.0):
        """Until the ranks themselves have said something: a process that exists may not yet have set up anything."""
        wait_for(lambda: running.stdout.count(text) >= times, f"{times} times {text!r}", timeout)

    def wait_for_status(self, status, job=None, timeout=30.0):
        job = job or self.job()
        return wait_for(lambda: (state := self.get(job))["status"] == status and state, f"{job} to be {status}",
                        timeout)

    # -- its processes ------------------------------------------------------------------------------------------------

    def rank_processes(self, job=None):
        """rank → process id of what runs now, from the environments of all processes and nothing that we wrote."""
        job = job or self.job()
        found = {}
        for pid, environment in marked_processes(self.marker):
            if environment.get("AIMASTER_JOB_ID") == job and "RANK" in environment and is_group_leader(pid):
                found[int(environment["RANK"])] = pid
        return found

    def wait_for_ranks(self, count, job=None, timeout=30.0):
        return wait_for(lambda: len(found := self.rank_processes(job)) == count and found, f"{count} ranks to run",
                        timeout)

    def master_pid(self, job=None):
        return wait_for(lambda: self.get(job)["master_pid"], "a master")

    def supervisor_pid(self, job=None):
        return json.loads((self.directory(job) / "supervisor" / "supervisor.json").read_text())["pid"]

    def agent_pids(self, job=None):
        return {path.parent.name: json.loads(path.read_text())["pid"]
                for path in sorted(self.directory(job).glob("nodes/*/agent.json"))}

    def leftovers(self):
        return {pid: " ".join(command_line(pid)) for pid, _ in marked_processes(self.marker)}


def marked_processes(marker):
    """(pid, environment) of every process that a test with this marker caused."""
    needle = f"AIMASTER_TEST_MARKER={marker}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError):
            raw = Path("/proc", name, "environ").read_bytes()
            if needle in raw.split(b"\0") and is_alive(int(name)):
                pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if entry)
                yield int(name), {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}


def command_line(pid):
    with contextlib.suppress(OSError):
        return [os.fsdecode(part) for part in Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")[:-1]]
    return []


def stat_fields(pid):
    """/proc/PID/stat from its third field on; the second may contain anything."""
    with contextlib.suppress(OSError):
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return None


def is_alive(pid):
    fields = stat_fields(pid)
    return fields is not None and fields[0] not in "ZX"


def is_group_leader(pid):
    fields = stat_fields(pid)
    return fields is not None and int(fields[2]) == pid


def start_ticks(pid):
    fields = stat_fields(pid)
    return int(fields[19]) if fields else None


def resident_kilobytes(pid):
    match = re.search(r"^VmRSS:\s+(\d+)", Path("/proc", str(pid), "status").read_text(), re.MULTILINE)
    return int(match[1]) if match else 0


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def python(code):
    """A rank's command: this Python text."""
    return [PYTHON, "-S", "-c", code]


def shell(script):
    return ["/bin/sh", "-c", script]


def one_line_error(finished, *parts):
    """The manners of every error: one line on stderr, from us, that says what matters; nothing on stdout."""
    lines = finished.stderr.splitlines()
    assert len(lines) == 1, finished
    assert lines[0].startswith("aimaster: "), finished
    for part in parts:
        assert part in lines[0], f"{part!r} is not in: {lines[0]}"
    assert finished.stdout == "", finished
