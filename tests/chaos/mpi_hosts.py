"""Several hosts for MPI on one machine: network, UTS and mount namespaces, joined by a bridge, each with an address, a
name and shared memory of its own. The agents of one job live in them; what starts daemons across is AIMaster's own
remote start.

    AIMASTER_BIN=DIR unshare --pid --fork --mount-proc --kill-child --net --mount --uts \\
        /usr/bin/python3 tests/chaos/mpi_hosts.py STORY FOLDER LIBRARY PROGRAM ARGUMENTS…

The first process of the world lives on host 0, where the master is, and the launcher.
"""
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from world import BIN, World, check, kill, processes, read, start, tell, wait_for

FINAL = "final step=40 warmth=21000.000000 spread=2131.346421"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# UCX, under MPICH, sees that two hosts are one machine, and copies from process to process.
BY_NETWORK = {"UCX_TLS": "tcp,self"}

# In place of the agent's program: puts it onto its host.
AGENT = """#!/bin/sh
number=$(echo " $*" | sed 's/.* --node \\([0-9]*\\) .*/\\1/')
pid=$(cat {folder}/host$number)
[ "$pid" = 1 ] || exec nsenter --net=/proc/$pid/ns/net --mount=/proc/$pid/ns/mnt --uts=/proc/$pid/ns/uts -- \\
    {agent} "$@" --address 10.77.0.$((number + 1))
exec {agent} "$@" --address 10.77.0.1
"""


def system(*command):
    subprocess.run(list(map(str, command)), check=True)


def settle(number):
    """What makes a namespace a host of its own; said in it."""
    return (f"hostname host{number} && mount --make-rprivate / && mount -t tmpfs none /dev/shm && "
            f"ip link set lo up")


class Hosts:
    """`count` hosts, and a folder of programs in which agents go where they belong."""

    def __init__(self, folder, count):
        self.folder = Path(folder) / "hosts"
        self.folder.mkdir()
        system("sh", "-c", settle(0))
        names = self.folder / "names"
        names.write_text("127.0.0.1 localhost\n" + "".join(f"10.77.0.{n + 1} host{n}\n" for n in range(count)))
        system("mount", "--bind", names, "/etc/hosts")
        system("ip", "link", "add", "bridge0", "type", "bridge")
        system("ip", "address", "add", "10.77.0.1/24", "dev", "bridge0")
        system("ip", "link", "set", "bridge0", "up")
        (self.folder / "host0").write_text("1")
        for number in range(1, count):
            self.add(number)
        self.programs = self.folder / "bin"
        self.programs.mkdir()
        for name in ("aimaster", "aimaster-shim", "aimaster-mpi"):
            os.link(BIN / name, self.programs / name) if self.same_disk() else system("cp", BIN / name, self.programs)
        (self.programs / "aimaster-agent").write_text(AGENT.format(folder=self.folder, agent=BIN / "aimaster-agent"))
        (self.programs / "aimaster-agent").chmod(0o755)

    def same_disk(self):
        return os.stat(BIN).st_dev == os.stat(self.folder).st_dev

    def add(self, number):
        ready = self.folder / f"host{number}"
        script = f"{settle(number)} && echo $$ > {ready}.new && mv {ready}.new {ready} && exec sleep infinity"
        start(["unshare", "--net", "--mount", "--uts", "sh", "-c", script])
        pid = wait_for(lambda: ready.exists() and ready.read_text().strip(), f"host {number}")
        enter = ["nsenter", f"--net=/proc/{pid}/ns/net", "ip"]
        system("ip", "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", pid)
        system("ip", "link", "set", f"port{number}", "master", "bridge0", "up")
        system(*enter, "address", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
        system(*enter, "link", "set", "eth0", "up")


class Job:
    """`mpirun -np RANKS` over the hosts, `slots` on each worker's. The program saves where it is told to, unless it
    is one that saves nothing."""

    def __init__(self, folder, library, program, *arguments, hosts=2, workers=2, ranks=4, slots=2,
                 flags=(), saves=True, environment={}):
        self.open_world(folder, hosts)
        # OpenMPI names its folders by host and process, and other worlds have the same; its sockets' paths are short.
        self.temporary = tempfile.TemporaryDirectory(prefix="mpi", dir="/tmp")
        saving = ["--checkpoint", self.world.work / "rod"] if saves else []
        command = [f"mpirun.{library}", "-np", ranks, program, *saving, *arguments]
        self.run("--framework", "mpi", "--workers", workers, "--nproc-per-node", slots, *flags, "--", *command,
                 env={**os.environ, **AS_ROOT, **environment, "TMPDIR": self.temporary.name})

    def open_world(self, folder, hosts):
        self.hosts = Hosts(folder, hosts)
        self.count = hosts
        self.world = World(folder, aimaster=self.hosts.programs / "aimaster")

    def run(self, *arguments, env):
        self.follower = self.world.follow("run", "--local-nodes", self.count, "--listen", "10.77.0.1",
                                          "--enable-job-restart=True", "--stop-grace", 2, *arguments, env=env)
        self.job = self.world.new_job(self.follower)

    def output(self):
        return self.follower.out.read_text()

    def await_ranks(self, count=4):
        """The process of each rank."""
        def all_there():
            found = dict(re.findall(r"^rank (\d+) is process (\d+)$", self.output(), re.MULTILINE))
            return len(found) == count and {int(rank): int(pid) for rank, pid in found.items()}

        return wait_for(all_there, f"{count} ranks: {self.follower.err.read_text()[-3000:]}", timeout=60)

    def end(self, code):
        got = self.follower.wait(120)
        check(got == code, f"run ended with {got}, not {code}: {self.follower.err.read_text()[-6000:]}")
        left = [process for process in self.world.everything_gone() if "sleep infinity" not in process]
        check(not left, f"left behind: {left}")

    def end_well(self):
        self.end(0)
        check(FINAL in self.output().splitlines(), f"the last line is missing: {self.output()[-2000:]}")

    def query(self, command):
        return self.world.query(command, self.job)

    def record(self):
        record, = self.query("records")
        return record

    def summary(self):
        record = self.record()
        root, = [detail for detail in record["details"] if detail["root"]]
        return {"instance": record["instance_name"].removeprefix(self.job + "-"), "node": record["node_name"],
                "code": record["error_code"], "fault": record["fault"], "mpi_rank": root.get("mpi_rank"),
                "message": record["error_message"]}


def dies(folder, library, program, rank, how, *more):
    """One rank dies once, by itself; the job restarts and ends as if nothing had been."""
    job = Job(folder, library, program, "--die-rank", rank, "--die-step", 12, "--die-how", how, *more)
    job.end_well()
    check("resumed at step 10 of 40 on 4 ranks" in job.output(), "it did not go on from its checkpoint")
    return job.summary()


def fails(folder, library, program, rank, how, *more):
    """One rank ends in a way that no restart helps against."""
    job = Job(folder, library, program, "--die-rank", rank, "--die-step", 12, "--die-how", how, *more)
    code = job.follower.wait(120)
    job.end(code)
    state = job.query("get")
    failed, = [one for one in job.query("explain") if one["decision"] == "Fail"]
    return {"code": code, "fault": state["reason_code"], "message": state["reason_message"],
            "reasons": failed["reasons"], "records": len(job.query("records"))}


def killed_from_outside(folder, library, program, what):
    """A rank on host 1, what holds it there, or mpirun itself."""
    job = Job(folder, library, program, "--steps", 40, "--step-seconds", 0.1)
    ranks = job.await_ranks()
    victim = read(ranks[3])
    names = {"daemon": ("orted", "hydra_pmi_proxy"), "station": ("aimaster-mpi",), "mpirun": (f"mpirun.{library}",)}
    if what != "rank":  # up from rank 3 to its daemon and its station; mpirun is above rank 0
        victim = read(ranks[0 if what == "mpirun" else 3])
        while os.path.basename(victim.arguments[0]) not in names[what] or \
                what == "station" and victim.arguments[1:2] != ["--station"]:
            victim = read(victim.parent)
            check(victim is not None and victim.pid != 1, f"there is no {what}")
        if what == "station":  # its calls have the same name; the station is the one below the shim
            while read(victim.parent).kind != "shim":
                victim = read(victim.parent)
    kill(victim)
    job.end_well()
    return job.summary()


def stopped(folder, library, program):
    job = Job(folder, library, program, "--steps", 100_000, "--step-seconds", 0.1)
    job.await_ranks()
    os.kill(job.follower.process.pid, signal.SIGINT)
    job.end(130)
    return {"status": job.query("get")["status"]}


def launcher_apart(folder, library, program):
    """Three hosts: the launcher's own has no ranks."""
    job = Job(folder, library, program, "--die-rank", 2, "--die-step", 12, "--die-how", "sigkill", hosts=3)
    job.end_well()
    return job.summary()


C4D = ("--enable-job-hang-detection=True", "--enable-c4d-hang-detection=True")


class TorchJob(Job):
    """A PyTorch program on Gloo, a rank on each of two hosts."""

    def __init__(self, folder, python, program, *arguments, flags):
        self.open_world(folder, 2)
        self.run("--workers", 2, *flags, "--", python, program, *arguments, env=os.environ)


def slow_link(job, ranks, period, rate):
    """The network of host 1 becomes slow in the middle of a training that is well."""
    job.await_ranks(ranks)
    time.sleep(2 * float(period) + 2)
    check(job.query("c4d")["verdicts"] == [], "nobody is slow yet")
    system("tc", "qdisc", "add", "dev", "port1", "root", "tbf", "rate", rate, "burst", "64kb", "latency", "200ms")
    began = time.monotonic()
    verdicts = wait_for(lambda: job.query("c4d")["verdicts"], "a verdict", timeout=60)
    took = time.monotonic() - began
    os.kill(job.follower.process.pid, signal.SIGTERM)
    job.end(143)
    return {"verdicts": verdicts, "took": took}


def gets_a_slow_link(folder, library, program, period, rate):
    job = Job(folder, library, program, 100_000, 0.02, "well", 0, 0, 0, Path(folder) / "mark", 65_536, hosts=3,
              ranks=2, slots=1, saves=False, environment=BY_NETWORK,
              flags=(*C4D, f"--c4d-common-envs=C4D_CONN_BW_CHECK_PERIOD={period}"))
    return slow_link(job, 2, period, rate)


def torch_gets_a_slow_link(folder, python, program, period, rate):
    job = TorchJob(folder, python, program, 100_000, "well", 0, 0, 0, "-", 131_072,
                   flags=(*C4D, f"--c4d-common-envs=C4D_CONN_BW_CHECK_PERIOD={period}"))
    return slow_link(job, 1, period, rate)  # rank 0 is followed


def stops_in_a_collective(folder, library, program):
    """Rank 2 is stopped while all are in a collective; there is one host more than the job needs."""
    mark = Path(folder) / "mark"
    job = Job(folder, library, program, 60, 0.02, "stop", 2, 10, 0, mark, hosts=4, saves=False, flags=(
        *C4D, "--job-hang-interval=600",
        "--c4d-common-envs=C4D_HANG_TIMEOUT=2,C4D_HANG_TIMES=3"))
    job.end(0)
    check("met 60 times" in job.output(), job.output()[-2000:])
    nodes = {one["name"].removeprefix(job.job + "-"): one["node"] for one in job.query("get")["instances"]}
    found = [(verdict["level"], verdict["kind"], verdict["ranks"], verdict["node"])
             for finding in job.query("c4d")["findings"] for verdict in finding["verdicts"]]
    return {**job.summary(), "isolated": job.record()["isolated"], "nodes": nodes, "found": found,
            "stacks": bool(job.record()["stacks"])}


def where_ranks_run(folder, library, program):
    """Each rank is a descendant of a shim on its host, and of nobody's else."""
    job = Job(folder, library, program, "--steps", 100_000, "--step-seconds", 0.1)
    found = {}
    for rank, pid in job.await_ranks().items():
        process = read(pid)
        while process.kind != "shim" or "--mpi-rank" in process.arguments:
            process = read(process.parent)
        host = subprocess.run(["nsenter", f"--uts=/proc/{pid}/ns/uts", "hostname"], capture_output=True, text=True)
        found[rank] = [Path(process.arguments[1]).parent.name.removeprefix(job.job + "-"), host.stdout.strip()]
    os.kill(job.follower.process.pid, signal.SIGTERM)
    job.end(143)
    return found


if __name__ == "__main__":
    tell({story.__name__: story
          for story in (dies, fails, killed_from_outside, stopped, launcher_apart, gets_a_slow_link,
                        torch_gets_a_slow_link, stops_in_a_collective, where_ranks_run)})
