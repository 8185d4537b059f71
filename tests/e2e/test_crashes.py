"""Something of ours dies in the middle. Training must not notice, and no exit status may be lost."""
import signal

from harness import WORKER, is_alive, kill, start_ticks, wait_for

RESTARTS = ["--enable-job-restart=True", "--fault-tolerant-policy=OnFailure", "--stop-grace", "1"]


def identities(ranks):
    return {rank: (pid, start_ticks(pid)) for rank, pid in ranks.items()}


def test_a_killed_master_comes_back_and_the_ranks_run_on(home):
    running = home.start("run", "--workers", 2, "--", *WORKER, "--steps", 30)
    before = identities(home.wait_for_ranks(2))
    master = home.master_pid()
    kill(master)
    again = wait_for(lambda: (pid := home.get()["master_pid"]) != master and pid, "another master")
    assert identities(home.wait_for_ranks(2)) == before, f"the ranks are the same processes under master {again}"
    finished = running.wait()
    assert finished.code == 0, finished
    assert (home.get()["status"], home.get()["restarts"]) == ("Succeeded", 0)


def test_a_master_killed_again_and_again(home):
    running = home.start("run", "--workers", 2, "--", *WORKER, "--steps", 60)
    before = identities(home.wait_for_ranks(2))
    for _ in range(4):
        master = home.master_pid()
        kill(master)
        wait_for(lambda gone=master: (pid := home.get()["master_pid"]) != gone and pid, "another master")
    assert identities(home.wait_for_ranks(2)) == before
    finished = running.wait()
    assert finished.code == 0, finished
    assert home.get()["restarts"] == 0


def test_a_rank_that_ends_while_there_is_no_master_is_not_forgotten(home):
    """It is killed in the moment in which the master is away: its status waits in a file."""
    running = home.start("run", "--workers", 2, "--stop-grace", 1, "--", *WORKER, "--steps", 600)
    ranks = home.wait_for_ranks(2)
    kill(home.master_pid())
    kill(ranks[1])
    finished = running.wait(30)
    assert finished.code == 137, finished
    failed, = [one for one in home.workers() if one["signal"] == 9 and one["status"] == "Failed"]
    assert failed["name"].endswith("-worker-1")


def test_a_killed_agent_comes_back_and_the_ranks_run_on(home):
    running = home.start("run", "--workers", 2, "--local-nodes", 2, "--", *WORKER, "--steps", 30)
    before = identities(home.wait_for_ranks(2))
    agents = home.agent_pids()
    assert len(agents) == 2
    for pid in agents.values():
        kill(pid)
    wait_for(lambda: all(pid != agents[node] and is_alive(pid) for node, pid in home.agent_pids().items()),
             "new agents")
    assert identities(home.wait_for_ranks(2)) == before
    finished = running.wait()
    assert finished.code == 0, finished
    assert home.get()["restarts"] == 0


def test_a_rank_that_ends_while_there_is_no_agent_is_not_forgotten(home):
    running = home.start("run", "--workers", 2, "--stop-grace", 1, "--", *WORKER, "--steps", 40,
                         "--die-rank", 1, "--die-step", 1, "--die-how", "exit7")
    home.wait_for_ranks(2)
    for pid in home.agent_pids().values():
        kill(pid)
    finished = running.wait(30)
    assert finished.code == 7, finished


def test_a_master_killed_while_a_restart_is_under_way(home):
    """The ranks ignore SIGTERM, so that stopping them takes the whole grace: time to kill the master in the middle."""
    running = home.start("run", "--workers", 2, *RESTARTS, "--", *WORKER, "--steps", 15, "--ignore-sigterm",
                         "--die-rank", 1, "--die-step", 3, "--die-how", "exit1")
    home.wait_for_status("Restarting")
    kill(home.master_pid())
    finished = running.wait()
    assert finished.code == 0, finished
    assert (home.get()["status"], home.get()["restarts"]) == ("Succeeded", 1)
    record, = home.records()
    assert (record["error_code"], record["result"]) == (1, "Restarted")


def test_master_and_agent_killed_together(home):
    running = home.start("run", "--workers", 2, "--", *WORKER, "--steps", 30)
    before = identities(home.wait_for_ranks(2))
    for pid in (home.master_pid(), *home.agent_pids().values()):
        kill(pid)
    assert running.wait().code == 0
    assert home.get()["restarts"] == 0
    assert len(before) == 2


def test_resume_when_supervisor_and_master_are_gone(home):
    running = home.start("run", "--workers", 2, "--", *WORKER, "--steps", 50)
    before = identities(home.wait_for_ranks(2))
    kill(home.supervisor_pid())
    kill(home.master_pid())
    finished = running.wait(20)
    assert finished.code == 1, finished
    assert f"aimaster resume {home.job()}" in finished.stderr, finished
    assert home.get()["master_pid"] is None
    resumed = home.start("resume", home.job())
    assert identities(home.wait_for_ranks(2)) == before
    finished = resumed.wait()
    assert finished.code == 0, finished
    assert (home.get()["status"], home.get()["restarts"]) == ("Succeeded", 0)


def test_everything_of_ours_is_killed_at_once_and_resume_finds_out(home):
    """As after a reboot: nothing runs. The job's ranks were lost with their shims, so they count as failed."""
    running = home.start("run", "--workers", 2, *RESTARTS, "--", *WORKER, "--steps", 40)
    home.wait_for_ranks(2)
    everything = [home.supervisor_pid(), home.master_pid(), *home.agent_pids().values()]
    for pid in everything + [pid for pid in home.leftovers() if pid != running.process.pid]:
        kill(pid)
    running.wait(20)
    finished = home.start("resume", home.job()).wait(60)
    assert finished.code == 0, finished
    assert home.get()["restarts"] == 1


def test_a_stop_that_the_master_does_not_live_to_finish(home):
    running = home.start("run", "--stop-grace", 3, "--", *WORKER, "--steps", 600, "--ignore-sigterm")
    home.wait_for_output(running, "starts at step")
    running.signal(signal.SIGINT)
    home.wait_for_status("Stopping")
    kill(home.master_pid())
    finished = running.wait(30)
    assert finished.code == 130, finished
    assert home.get()["status"] == "Stopped"


def test_get_and_records_read_the_journal_without_a_master(home):
    home.run("--detach", "--workers", 2, *RESTARTS, "--", *WORKER, "--steps", 30, "--die-rank", 1, "--die-how", "exit1")
    job = home.job()
    wait_for(lambda: home.get(job)["restarts"] == 1 and home.get(job)["status"] == "Running", "the second round")
    kill(home.supervisor_pid(job))
    kill(home.master_pid(job))
    wait_for(lambda: home.get(job)["master_pid"] is None, "no master")
    assert home.get(job)["restarts"] == 1
    assert len(home.records(job)) == 1
    assert len(home.rounds(job)) == 2
    assert home.start("resume", job).wait().code == 0


def test_an_agent_without_a_master_stops_its_ranks_in_the_end(home):
    home.run("--detach", "--orphan-timeout", 2, "--stop-grace", 1, "--", *WORKER, "--steps", 600)
    job = home.job()
    home.wait_for_ranks(1)
    kill(home.supervisor_pid(job))
    kill(home.master_pid(job))
    wait_for(lambda: not home.rank_processes(job), "the orphaned rank to be stopped", timeout=20)
    wait_for(lambda: not home.leftovers(), "the agent to leave", timeout=10)
