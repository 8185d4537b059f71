/* Heat that spreads along a rod: a small MPI program that is worth restarting.
 *
 *   mpicc -O2 -o heat examples/mpi/heat.c -lm
 *   aimaster run --framework mpi --nproc-per-node 4 --enable-job-restart=True -- mpirun -np 4 ./heat --checkpoint /tmp/rod
 *
 * Each rank has a piece of the rod and shows its ends to its neighbours after every step. Every few steps rank 0 gathers
 * the whole rod and writes it to the checkpoint, whole or not at all; a run that finds one goes on from there. Since a
 * cell's next value depends on three others alone, the last line is the same for every number of ranks, and for every
 * number of restarts.
 *
 * It dies on request, once for each checkpoint file, or always: --die-rank R --die-step S --die-how HOW, where HOW is
 * exitN, sigkill, segfault, abort (MPI_Abort with 5), error (a send to nobody), unfinished (exit code 0 without
 * MPI_Finalize), early (exit code 4 before MPI_Init). */
#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kCells = 840, kStepsBetweenCheckpoints = 5 }; /* 840 can be divided among 1 to 8 ranks */

static int steps = 40, die_step = -1, die_rank = -1, die_always = 0;
static double step_seconds = 0.02;
static const char *checkpoint = NULL, *die_how = "exit1", *die_message = NULL;

static void parse(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(name, "--die-always") == 0) {
      die_always = 1;
      continue;
    }
    if (strcmp(name, "--steps") == 0) steps = atoi(value);
    else if (strcmp(name, "--step-seconds") == 0) step_seconds = atof(value);
    else if (strcmp(name, "--checkpoint") == 0) checkpoint = value;
    else if (strcmp(name, "--die-rank") == 0) die_rank = atoi(value);
    else if (strcmp(name, "--die-step") == 0) die_step = atoi(value);
    else if (strcmp(name, "--die-how") == 0) die_how = value;
    else if (strcmp(name, "--die-message") == 0) die_message = value;
    else {
      fprintf(stderr, "heat: unrecognized option %s\n", name);
      exit(2);
    }
    ++i;
  }
}

/* Whether nobody has died for this checkpoint yet. */
static int first_death(void) {
  char path[4096];
  FILE *mark;
  if (die_always) return 1;
  if (!checkpoint) return getenv("TORCHELASTIC_RESTART_COUNT") == NULL || atoi(getenv("TORCHELASTIC_RESTART_COUNT")) == 0;
  snprintf(path, sizeof path, "%s.died", checkpoint);
  mark = fopen(path, "wx");
  if (mark) fclose(mark);
  return mark != NULL;
}

static void die(void) {
  volatile int *volatile nowhere = NULL;
  if (die_message) fprintf(stderr, "%s\n", die_message);
  if (strcmp(die_how, "sigkill") == 0) raise(SIGKILL);
  if (strcmp(die_how, "segfault") == 0) *nowhere = 1;
  if (strcmp(die_how, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 5);
  if (strcmp(die_how, "error") == 0) MPI_Send(&steps, 1, MPI_INT, 9999, 0, MPI_COMM_WORLD);
  if (strcmp(die_how, "unfinished") == 0) _exit(0);
  _exit(atoi(die_how + strlen("exit")));
}

static int read_checkpoint(double *rod) {
  int step = 0;
  FILE *file = checkpoint ? fopen(checkpoint, "rb") : NULL;
  if (!file) return 0;
  if (fread(&step, sizeof step, 1, file) != 1 || fread(rod, sizeof *rod, kCells, file) != kCells) step = 0;
  fclose(file);
  return step;
}

static void write_checkpoint(const double *rod, int step) {
  char path[4096];
  FILE *file;
  if (!checkpoint) return;
  snprintf(path, sizeof path, "%s.new", checkpoint);
  file = fopen(path, "wb");
  if (!file || fwrite(&step, sizeof step, 1, file) != 1 || fwrite(rod, sizeof *rod, kCells, file) != kCells ||
      fflush(file) != 0 || fsync(fileno(file)) != 0 || fclose(file) != 0 || rename(path, checkpoint) != 0) {
    perror(checkpoint);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

int main(int argc, char **argv) {
  static double rod[kCells], piece[kCells + 2], next[kCells + 2];
  int rank, ranks, step = 0;
  parse(argc, argv);
  if (strcmp(die_how, "early") == 0 && getenv("RANK") && atoi(getenv("RANK")) == die_rank && first_death()) {
    if (die_message) fprintf(stderr, "%s\n", die_message);
    exit(4);
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (kCells % ranks != 0) {
    if (rank == 0) fprintf(stderr, "heat: %d cells can't be divided among %d ranks\n", kCells, ranks);
    MPI_Finalize();
    return 2;
  }
  const int cells = kCells / ranks, left = rank > 0 ? rank - 1 : MPI_PROC_NULL,
            right = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
  for (int i = 0; i < kCells; ++i) rod[i] = i < kCells / 4 ? 100.0 : 0.0;
  if (rank == 0) step = read_checkpoint(rod);
  MPI_Bcast(&step, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Scatter(rod, cells, MPI_DOUBLE, piece + 1, cells, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s at step %d of %d on %d ranks\n", step ? "resumed" : "started", step, steps, ranks);
  printf("rank %d is process %d\n", rank, (int)getpid());
  fflush(stdout);
  while (step < steps) {
    if (rank == die_rank && step == die_step && first_death()) die();
    MPI_Sendrecv(piece + 1, 1, MPI_DOUBLE, left, 0, piece + cells + 1, 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(piece + cells, 1, MPI_DOUBLE, right, 1, piece, 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (rank == 0) piece[0] = piece[1];
    if (rank == ranks - 1) piece[cells + 1] = piece[cells];
    for (int i = 1; i <= cells; ++i) next[i] = piece[i] + 0.25 * (piece[i - 1] - 2 * piece[i] + piece[i + 1]);
    memcpy(piece + 1, next + 1, (size_t)cells * sizeof *piece);
    ++step;
    if (step % kStepsBetweenCheckpoints == 0 || step == steps) {
      MPI_Gather(piece + 1, cells, MPI_DOUBLE, rod, cells, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      if (rank == 0) write_checkpoint(rod, step);
    }
    usleep((useconds_t)(step_seconds * 1e6));
  }
  MPI_Gather(piece + 1, cells, MPI_DOUBLE, rod, cells, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    double warmth = 0, spread = 0;
    for (int i = 0; i < kCells; ++i) warmth += rod[i], spread += sqrt(rod[i]);
    printf("final step=%d warmth=%.6f spread=%.6f\n", step, warmth, spread);
  }
  MPI_Finalize();
  return 0;
}
