// What a whole call of MPI takes, of which nobody else is part: run it with and without the probe loaded. The
// difference is what the probe costs.
//
//   mpicc.openmpi -O2 -o probe_mpi bench/probe_mpi.c
//   ./probe_mpi
//   AIMASTER_C4D_DIR=/dev/shm/records LD_PRELOAD=build/bin/libaimaster-pmpi-openmpi.so ./probe_mpi
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kTimes = 300000 };
static uint32_t the_times[kTimes];

static uint64_t NowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int Compare(const void* a, const void* b) {
  const uint32_t left = *(const uint32_t*)a, right = *(const uint32_t*)b;
  return left < right ? -1 : left > right;
}

#define MEASURE(what, ...)                                                                                       \
  do {                                                                                                           \
    for (int i = 0; i < kTimes; ++i) {                                                                           \
      const uint64_t begin = NowNs();                                                                            \
      __VA_ARGS__;                                                                                               \
      the_times[i] = (uint32_t)(NowNs() - begin);                                                                \
    }                                                                                                            \
    qsort(the_times, kTimes, sizeof *the_times, Compare);                                                        \
    printf("%-24s p50 %6u ns   p99.9 %7u ns\n", what, the_times[kTimes / 2], the_times[kTimes - kTimes / 1000]); \
  } while (0)

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double in = 1, out = 0;
  int sent = 1, received = 0;
  MPI_Request requests[2];
  MEASURE("the clock", (void)0);
  MEASURE("Barrier", MPI_Barrier(MPI_COMM_SELF));
  MEASURE("Allreduce", MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF));
  MEASURE("Irecv, Isend, Waitall", MPI_Irecv(&received, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[0]),
          MPI_Isend(&sent, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[1]),
          MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  MPI_Finalize();
  return 0;
}
