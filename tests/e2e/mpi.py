"""Real MPI jobs for the tests: the example program, built for each library that is installed here."""
import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import ROOT

LIBRARIES = [name for name in ("openmpi", "mpich") if shutil.which(f"mpicc.{name}")]
FINAL = "final step=40 warmth=21000.000000 spread=2131.346421"  # of every run, whoever died in it

needs_mpi = pytest.mark.skipif(not LIBRARIES, reason="no MPI library is installed")
for_each_library = pytest.mark.parametrize("library", LIBRARIES)

# OpenMPI refuses root unless it is told twice; AIMaster leaves that to the user.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}


@functools.cache
def build(source, library):
    folder = Path(tempfile.mkdtemp(prefix="aimaster-mpi-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / f"{source.stem}.{library}"
    subprocess.run([f"mpicc.{library}", "-O1", "-o", str(path), str(source), "-lm"], check=True, capture_output=True)
    return str(path)


def program(library):
    """The path of the example, built for the library."""
    return build(ROOT / "examples" / "mpi" / "heat.c", library)


def together(library):
    """That of a program that does nothing but meet, and hangs when it is told to."""
    return build(ROOT / "tests" / "e2e" / "programs" / "together.c", library)


def mpirun(library, *arguments, ranks=4):
    return [f"mpirun.{library}", "-np", str(ranks), program(library), *map(str, arguments)]


def run(home, command, *flags, slots=4, timeout=120.0, env=None):
    """An MPI job on this machine, to its end."""
    return home.run("--framework", "mpi", "--nproc-per-node", slots, "--stop-grace", 2, *flags, "--", *command,
                    timeout=timeout, env={**ENVIRONMENT, **(env or {})})
