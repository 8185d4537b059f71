"""MPI on several hosts, which are namespaces of this machine: tests/chaos/mpi_hosts.py. mpirun starts its daemons
through AIMaster's remote start, so the ranks of each host run under that host's worker."""
import pytest

from mpi import LIBRARIES, for_each_library, needs_mpi, program
from namespaces import needs, tell

pytestmark = [needs_mpi, needs("net", "mount", "uts")]
# MPICH's mpirun waits for ever, now and then, when a rank on another host has ended by an exit code.
for_openmpi = pytest.mark.parametrize("library", [name for name in LIBRARIES if name == "openmpi"])


def hosts(folder, story, library, *arguments):
    return tell(folder, "mpi_hosts.py", story, library, program(library), *arguments, kinds=["net", "mount", "uts"])


@for_each_library
def test_each_host_holds_its_ranks_under_its_own_shim(tmp_path, library):
    assert hosts(tmp_path, "where_ranks_run", library) == {
        "0": ["launcher-0", "host0"], "1": ["launcher-0", "host0"],
        "2": ["worker-1", "host1"], "3": ["worker-1", "host1"]}


@for_each_library
def test_a_rank_killed_on_another_host_is_the_cause(tmp_path, library):
    told = hosts(tmp_path, "dies", library, 3, "sigkill", "--die-message", "rank 3 dies now")
    assert told == {"instance": "worker-1", "node": "node-1", "code": 137, "fault": "Sigkill", "mpi_rank": 3,
                    "message": "MPI rank 3: killed by SIGKILL (9); its last line: rank 3 dies now"}


@for_each_library
def test_a_rank_killed_on_the_launchers_host_is_the_cause(tmp_path, library):
    told = hosts(tmp_path, "dies", library, 1, "sigkill")
    assert (told["instance"], told["node"], told["code"], told["mpi_rank"]) == ("launcher-0", "node-0", 137, 1), told


@for_openmpi
def test_what_a_rank_prints_there_counts_though_the_launcher_has_it(tmp_path, library):
    """All ranks print into mpirun's output; the failure is that of the host which the rank ran on."""
    message = "CUDA error: uncorrectable ECC error encountered"
    told = hosts(tmp_path, "dies", library, 2, "exit1", "--die-message", message)
    assert told == {"instance": "worker-1", "node": "node-1", "code": 1, "fault": "GpuEccUncorrectable",
                    "mpi_rank": 2, "message": message}


@for_openmpi
def test_a_rank_that_exits_there_with_a_bug(tmp_path, library):
    told = hosts(tmp_path, "fails", library, 3, "exit3", "--die-message", "heat: the rod is too short")
    assert (told["code"], told["records"]) == (3, 0), told
    assert "heat: the rod is too short" in told["message"]
    assert any(reason.startswith("MPI rank 3: exit code 3") for reason in told["reasons"]), told


@for_each_library
def test_mpi_abort_there(tmp_path, library):
    told = hosts(tmp_path, "fails", library, 3, "abort")
    assert (told["code"], told["records"]) == (5, 0) and told["fault"] in ("MpiAborted", "ExitCode"), told


@for_each_library
def test_a_rank_killed_by_somebody_else(tmp_path, library):
    told = hosts(tmp_path, "killed_from_outside", library, "rank")
    assert (told["instance"], told["code"], told["mpi_rank"]) == ("worker-1", 137, 3), told


@for_each_library
@pytest.mark.parametrize("what", ["daemon", "station"])
def test_what_holds_the_ranks_there_is_killed(tmp_path, library, what):
    told = hosts(tmp_path, "killed_from_outside", library, what)
    assert (told["instance"], told["node"], told["code"]) == ("worker-1", "node-1", 137), told
    assert told["mpi_rank"] is None


@for_each_library
def test_mpirun_is_killed_and_takes_the_other_host_along(tmp_path, library):
    told = hosts(tmp_path, "killed_from_outside", library, "mpirun")
    assert (told["instance"], told["code"], told["mpi_rank"]) == ("launcher-0", 137, None), told


@for_each_library
def test_a_stop_leaves_nothing_on_any_host(tmp_path, library):
    assert hosts(tmp_path, "stopped", library) == {"status": "Stopped"}


@for_each_library
def test_a_launcher_on_a_host_without_ranks(tmp_path, library):
    told = hosts(tmp_path, "launcher_apart", library)
    assert (told["instance"], told["node"], told["mpi_rank"]) == ("worker-1", "node-2", 2), told
