/* An MPI program in C whose rank 2 does not come to the fifth barrier in the first round: it sits elsewhere for ever. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_a_file_that_never_comes(void) {
  while (access("/no/such/file", F_OK) != 0) sleep(100);
}

static void meet_the_others(void) { MPI_Barrier(MPI_COMM_WORLD); }

int main(int argc, char** argv) {
  int rank = 0;
  const char* round = getenv("AIMASTER_ROUND");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int step = 0; step < 8; ++step) {
    if (rank == 2 && step == 5 && round != NULL && atoi(round) == 0) wait_for_a_file_that_never_comes();
    meet_the_others();
    printf("rank %d step %d\n", rank, step);
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
