// aimaster-shim: starts the processes of one instance and stays with them until the last is gone; or, with --supervise,
// keeps one command running; or, with --mpi-rank, is the parent of one rank of MPI. It depends on nothing but libc and
// is linked statically, so it runs in any image.
#include <string.h>

#include "shim/attempt.h"
#include "shim/files.h"
#include "shim/mpi_rank.h"
#include "shim/supervise.h"

int main(int argc, char** argv) {
  if (argc >= 2 && strcmp(argv[1], "--supervise") == 0) return RunSupervisor(argv + 2);
  if (argc >= 2 && strcmp(argv[1], AIMASTER_MPI_RANK_OPTION) == 0) return RunMpiRank(argv + 2);
  if (argc == 2 && argv[1][0] != '-') return RunAttempt(argv[1]);
  Say("usage: aimaster-shim ATTEMPT_DIR | aimaster-shim --supervise [OPTIONS] -- CMD ARGS… | "
      "aimaster-shim " AIMASTER_MPI_RANK_OPTION " PROG ARGS…");
  return kShimExitUsage;
}
