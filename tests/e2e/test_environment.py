"""What a rank finds in its environment, and what it must not find there."""
from harness import python

PRINT_ALL = python("import os\nfor item in sorted(os.environ.items()): print('%s=%s' % item)")


def environments(finished, home):
    """rank → environment, read back from the files that the ranks wrote."""
    found = {}
    for path in home.directory().glob("nodes/*/*/*/rank*.out"):
        variables = dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
        found[int(variables["RANK"])] = variables
    assert finished.code == 0, finished
    return found


def test_one_node_numbers_its_ranks_over_instances(home):
    found = environments(home.run("--workers", 8, "--tee", "none", "--", *PRINT_ALL), home)
    assert sorted(found) == list(range(8))
    for rank, variables in found.items():
        assert variables["LOCAL_RANK"] == str(rank)
        assert variables["LOCAL_WORLD_SIZE"] == variables["WORLD_SIZE"] == "8"
        assert variables["GROUP_RANK"] == variables["NODE_RANK"] == "0"
        assert variables["GROUP_WORLD_SIZE"] == variables["NNODES"] == "1"


def test_pretended_nodes_have_ranks_and_devices_of_their_own(home):
    found = environments(home.run("--workers", 4, "--local-nodes", 2, "--devices", "0,1,2,3", "--tee", "none", "--",
                                  *PRINT_ALL), home)
    told = {rank: (v["NODE_RANK"], v["LOCAL_RANK"], v["LOCAL_WORLD_SIZE"]) for rank, v in found.items()}
    assert told == {0: ("0", "0", "2"), 1: ("0", "1", "2"), 2: ("1", "0", "2"), 3: ("1", "1", "2")}
    own = {rank: v["CUDA_VISIBLE_DEVICES"].split(",")[int(v["LOCAL_RANK"])] for rank, v in found.items()}
    assert own == {0: "0", 1: "1", 2: "2", 3: "3"}
    assert len({v["AIMASTER_NODE"] for v in found.values()}) == 2


def test_everything_that_frameworks_look_for_is_there(home):
    found = environments(home.run("--workers", 2, "--nproc-per-node", 2, "--enable-job-restart=True",
                                  "--max-num-of-job-restart=5", "--tee", "none", "--", *PRINT_ALL), home)
    job = home.job()
    last = found[3]
    expected = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "4", "ROLE_RANK": "3",
                "ROLE_WORLD_SIZE": "4", "ROLE_NAME": "worker", "TORCHELASTIC_RESTART_COUNT": "0",
                "TORCHELASTIC_MAX_RESTARTS": "5", "TORCHELASTIC_RUN_ID": job, "AIMASTER_JOB_ID": job,
                "AIMASTER_INSTANCE": f"{job}-worker-1", "AIMASTER_ROUND": "0", "AIMASTER_ATTEMPT": "0",
                "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
    assert {name: last.get(name) for name in expected} == expected
    for name in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_ERROR_FILE", "AIMASTER_NODE", "NPROC_PER_NODE",
                 "AIMASTER_SOCKET"):
        assert last.get(name), name


INHERITED = {"TORCHELASTIC_USE_AGENT_STORE": "True", "SLURM_PROCID": "7", "SLURM_NTASKS": "64", "PMI_RANK": "3",
             "OMPI_COMM_WORLD_RANK": "5", "PMIX_RANK": "2", "GROUP_RANK": "9"}


def test_another_launchers_ranks_are_not_inherited(home):
    found = environments(home.run("--tee", "none", "--", *PRINT_ALL, env={**INHERITED, "SLURM_JOB_ID": "77"}), home)
    left = {name for name in INHERITED if name in found[0] and name != "GROUP_RANK"}
    assert left == set()
    assert found[0]["GROUP_RANK"] == "0"
    assert found[0]["SLURM_JOB_ID"] == "77", "what says nothing of ranks stays"


def test_keep_env_keeps_them(home):
    found = environments(home.run("--keep-env", "--tee", "none", "--", *PRINT_ALL, env=INHERITED), home)
    assert found[0]["SLURM_PROCID"] == "7"


def test_what_the_user_sets_is_kept(home):
    found = environments(home.run("--workers", 2, "--env", "OMP_NUM_THREADS=6", "--env", "GREETING=hello world=1",
                                  "--tee", "none", "--", *PRINT_ALL, env={"FROM_OUTSIDE": "yes"}), home)
    assert found[1]["OMP_NUM_THREADS"] == "6"
    assert found[1]["GREETING"] == "hello world=1"
    assert found[1]["FROM_OUTSIDE"] == "yes"


def test_block_buffered_output_would_look_like_a_hang(home):
    found = environments(home.run("--tee", "none", "--", *PRINT_ALL, env={"PYTHONUNBUFFERED": "0"}), home)
    assert found[0]["PYTHONUNBUFFERED"] == "1"


def test_more_ranks_than_devices_is_a_warning(home):
    finished = home.run("--workers", 3, "--devices", "0,1", "--", "/bin/true")
    assert finished.code == 0, finished
    assert "device" in finished.stderr, finished


def test_the_working_directory_is_the_ranks(home, tmp_path):
    finished = home.run("--workdir", tmp_path, "--", "/bin/pwd")
    assert (finished.code, finished.stdout.strip()) == (0, str(tmp_path)), finished
