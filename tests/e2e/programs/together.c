// A training in small: every rank computes for a moment, then all meet in a collective, for so many steps. One rank can
// be made to hang, once: the file MARK remembers that, so that a restarted job goes through.
//
//   together STEPS STEP_SECONDS [sleep RANK STEP SECONDS MARK]   sleeps before it meets the others
//   together STEPS STEP_SECONDS [stop RANK STEP SECONDS MARK]    is stopped while it is among them, which it was early
//   together STEPS STEP_SECONDS [slow RANK STEP SECONDS MARK]    computes for so long, from that step on, in each run
//   together STEPS STEP_SECONDS well 0 0 0 MARK DOUBLES          nothing is wrong, and so many numbers are summed up
//
// Each rank prints "rank R is process P", and rank 0 "met STEPS times" at the end.
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static void Sleep(double seconds) {
  const struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

static int IsFirst(const char* mark) {
  const int file = open(mark, O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (file >= 0) close(file);
  return file >= 0;
}

// While we wait for the others.
static void StopSoon(void) {
  const pid_t self = getpid();
  if (fork() != 0) return;
  Sleep(0.5);
  kill(self, SIGSTOP);
  _exit(0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int steps = atoi(argv[1]);
  const double step_seconds = atof(argv[2]);
  const int is_culprit = argc > 7 && rank == atoi(argv[4]);
  const int is_slow = is_culprit && strcmp(argv[3], "slow") == 0;
  const int is_well = argc > 7 && strcmp(argv[3], "well") == 0;
  const int doubles = argc > 8 ? atoi(argv[8]) : 64;
  const int stops = argc > 7 && strcmp(argv[3], "stop") == 0 && access(argv[7], F_OK) != 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const int has_fault = is_culprit && !is_slow && !is_well && IsFirst(argv[7]);
  printf("rank %d is process %d\n", rank, (int)getpid());
  fflush(stdout);
  double* values = calloc((size_t)doubles, sizeof *values);
  double* sums = calloc((size_t)doubles, sizeof *sums);
  for (int step = 0; step < steps; ++step) {
    Sleep(is_slow && step >= atoi(argv[5]) ? atof(argv[6]) : step_seconds);
    if (argc > 7 && step == atoi(argv[5])) {
      if (has_fault && !stops) Sleep(atof(argv[6]));
      if (has_fault && stops) StopSoon();
      if (!is_culprit && stops) Sleep(1);
    }
    MPI_Allreduce(values, sums, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  if (rank == 0) printf("met %d times\n", steps);
  MPI_Finalize();
  return 0;
}
