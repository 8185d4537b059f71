"""What the instances of a TensorFlow job know of each other, whose success is the job's, and what becomes of addresses.

The programs here only read TF_CONFIG and listen; real trainings are in test_tensorflow.py.
"""
import json

from harness import kill, one_line_error, python, wait_for

TF = ["--framework", "tensorflow", "--stop-grace", "1"]
ROLES = ["--chief", 1, "--workers", 2, "--ps", 1, "--evaluator", 1]
# Says what it was given; who is in the cluster listens on its address, and ends when it has reached everybody else.
MEETS_ALL = python("""
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
task, cluster = config["task"], config["cluster"]
print("CONFIG", os.environ["AIMASTER_ATTEMPT"], json.dumps(config), flush=True)
everybody = [(role, at, address) for role, all in cluster.items() for at, address in enumerate(all)]
mine = [address for role, at, address in everybody if (role, at) == (task["type"], task["index"])]
if mine:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", int(mine[0].rpartition(":")[2])))
    listener.listen(100)
for role, at, address in everybody:
    host, _, port = address.rpartition(":")
    while True:
        try: socket.create_connection((host, int(port)), 5).close(); break
        except ConnectionRefusedError: time.sleep(0.02)
print("MET", len(everybody), flush=True)
while task["type"] in ("ps", "evaluator") or not os.path.exists("go"): time.sleep(0.02)
print("DONE", task["type"], task["index"], flush=True)
""")


def configs(running):
    """(attempt, TF_CONFIG) of every start so far, as the ranks themselves said it."""
    lines = [line.partition("CONFIG ")[2] for line in running.stdout.splitlines() if "CONFIG " in line]
    return [(int(line.split(" ", 1)[0]), json.loads(line.split(" ", 1)[1])) for line in lines]


def task_of(config):
    return config["task"]["type"], config["task"]["index"]


def start(home, *flags, ranks, command=MEETS_ALL):
    running = home.start("run", *TF, "--tee", "all", *flags, "--", *command)
    job = home.job_of(running)
    home.wait_for_output(running, "MET ", times=ranks)
    home.wait_for_status("Running", job)
    return running, job


def finish(home, running):
    (home.folder / "go").touch()
    return running.wait()


def test_every_instance_knows_all_addresses_and_its_own_place(home):
    running, _ = start(home, *ROLES, "--success-policy=AllWorkers", "--local-nodes", 2, ranks=5)
    found = [config for _, config in configs(running)]
    clusters = {json.dumps(config["cluster"], sort_keys=True) for config in found}
    assert len(clusters) == 1, clusters
    cluster = found[0]["cluster"]
    assert {role: len(addresses) for role, addresses in cluster.items()} == {"chief": 1, "worker": 2, "ps": 1}
    addresses = sum(cluster.values(), [])
    assert len(set(addresses)) == 4, "an address each"
    ephemeral = int(open("/proc/sys/net/ipv4/ip_local_port_range").read().split()[0])
    assert all(10_000 <= int(address.rpartition(":")[2]) < max(ephemeral, 32_768) for address in addresses)
    assert sorted(map(task_of, found)) == [("chief", 0), ("evaluator", 0), ("ps", 0), ("worker", 0), ("worker", 1)]
    assert finish(home, running).code == 0


def test_a_restart_of_the_job_gives_all_other_ports(home):
    running, job = start(home, "--workers", 2, "--enable-job-restart=True", ranks=2)
    kill(home.rank_processes(job)[1])
    home.wait_for_output(running, "MET ", times=4)
    clusters = {attempt: config["cluster"]["worker"] for attempt, config in configs(running)}
    assert not set(clusters[0]) & set(clusters[1])
    assert finish(home, running).code == 0
    assert home.get(job)["restarts"] == 1


def test_a_worker_that_is_restarted_alone_keeps_its_address(home):
    running, job = start(home, *ROLES, "--job-execution-mode=Async", ranks=5)
    before = home.rank_processes(job)
    kill(before[2])
    home.wait_for_output(running, "MET ", times=6)
    now = home.rank_processes(job)
    assert {rank: pid for rank, pid in now.items() if rank != 2} == {r: p for r, p in before.items() if r != 2}
    first, second = [config for _, config in configs(running) if task_of(config) == ("worker", 1)]
    assert first == second
    assert finish(home, running).code == 0
    record, = home.records(job)
    assert (record["scope"], record["instance_name"]) == ("instance", f"{job}-worker-1")


def test_a_port_that_is_taken_at_the_start_is_no_failure_of_the_job(home):
    """Worker 1 says so the first time, whatever the truth: all start again in place, with other ports."""
    code = """
import json, os, sys
config = json.loads(os.environ["TF_CONFIG"])
print("CONFIG", os.environ["AIMASTER_ATTEMPT"], json.dumps(config), flush=True)
if config["task"]["index"] == 1 and os.environ["AIMASTER_ATTEMPT"] == "0":
    sys.exit("tensorflow.python.framework.errors_impl.UnknownError: Could not start gRPC server")
"""
    finished = home.run(*TF, "--workers", 2, "--tee", "all", "--", *python(code))
    assert finished.code == 0, finished
    job = home.get()
    assert (job["restarts"], job["round"]) == (0, 0)
    assert [one["decision"] for one in home.explain()] == ["RetryStart", "Succeed"]
    lines = [line.partition("CONFIG ")[2] for line in finished.stdout.splitlines() if "CONFIG " in line]
    ports = {line.split(" ", 1)[0]: json.loads(line.split(" ", 1)[1])["cluster"]["worker"] for line in lines}
    assert not set(ports["0"]) & set(ports["1"])


def test_the_chief_s_success_is_the_job_s_where_the_others_serve_it(home):
    serves = python("""
import json, os, sys, time
config = json.loads(os.environ["TF_CONFIG"])
print("UP", flush=True)
if config["task"]["type"] == "chief":
    while not os.path.exists("go"): time.sleep(0.02)
    sys.exit(0)
while True: time.sleep(1)
""")
    running = home.start("run", *TF, *ROLES, "--tee", "all", "--", *serves)
    job = home.job_of(running)
    home.wait_for_output(running, "UP", times=5)
    finished = finish(home, running)
    assert finished.code == 0, finished
    state = home.get(job)
    assert (state["status"], state["reason_message"]) == ("Succeeded", "the chief ended with exit code 0")
    assert [(one["role"], one["status"]) for one in home.workers(job)] == [
        ("chief", "Succeeded"), ("worker", "Stopped"), ("worker", "Stopped"), ("ps", "Stopped"),
        ("evaluator", "Stopped")]


def test_all_workers_are_waited_for_where_they_have_an_end(home):
    code = ("import json, os, time\n"
            "task = json.loads(os.environ['TF_CONFIG'])['task']\n"
            "if task['type'] == 'ps': time.sleep(600)\n"
            "if task['type'] == 'worker': time.sleep(1)")
    finished = home.run(*TF, "--chief", 1, "--workers", 2, "--ps", 1, "--success-policy=AllWorkers", "--",
                        *python(code))
    assert finished.code == 0, finished
    assert [(one["role"], one["status"]) for one in home.workers()] == [
        ("chief", "Succeeded"), ("worker", "Succeeded"), ("worker", "Succeeded"), ("ps", "Stopped")]
    assert home.get()["reason_message"] == "every rank that is no ps ended with exit code 0"


def test_a_server_that_fails_when_all_is_done_fails_in_vain(home):
    """The ps loses its client and ends badly, a moment after the chief has ended well."""
    code = """
import json, os, sys, time
task = json.loads(os.environ["TF_CONFIG"])["task"]
if task["type"] == "chief":
    open("chief.new", "w").write(str(os.getpid()))
    os.rename("chief.new", "chief")
    time.sleep(1)
elif task["type"] == "ps":
    while not os.path.exists("chief"): time.sleep(0.002)
    while os.path.exists("/proc/" + open("chief").read()): time.sleep(0.0005)
    os._exit(9)
else: time.sleep(600)
"""
    for _ in range(5):
        for name in ("chief", "chief.new"):
            (home.folder / name).unlink(missing_ok=True)
        finished = home.run(*TF, "--chief", 1, "--workers", 1, "--ps", 1, "--", *python(code))
        assert finished.code == 0, finished
        assert home.get()["status"] == "Succeeded"
        assert home.records() == []


def test_more_than_one_process_per_instance_is_refused(home):
    finished = home.run("--framework", "tensorflow", "--nproc-per-node", 2, "--", "/bin/true")
    assert finished.code == 2, finished
    one_line_error(finished, "--nproc-per-node is 2", "TensorFlow", "--workers")


def test_a_job_survives_its_agent_between_reservation_and_listening(home):
    """The agent that held the ports is gone: its successor holds them again when it is told to start."""
    running, job = start(home, "--workers", 2, "--job-execution-mode=Async", ranks=2)
    first = configs(running)[0][1]
    for pid in home.agent_pids(job).values():
        kill(pid)
    kill(home.rank_processes(job)[0])
    home.wait_for_output(running, "MET ", times=3)
    wait_for(lambda: len(configs(running)) == 3, "the worker to have said what it was given")
    assert configs(running)[2][1]["cluster"] == first["cluster"]
    assert finish(home, running).code == 0
