// A known number of everything that MPI has: what the probe counts of it is compared with what is written here. Rank 0
// prints a sum that depends on all that was received. The first word after the name tells another story:
//
//   late R      rank R sleeps before the last barrier
//   ring R      messages go round and round, until rank R sleeps between two
//   endless     one barrier after the other
//   threads     two threads of each rank send to each other at a time
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int the_rank, the_size;
static double the_sum;

static void Blocking(void) {
  double mine = the_rank + 1, all = 0, every[64];
  for (int i = 0; i < 10; ++i) MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  the_sum += all;
  for (int i = 0; i < 3; ++i) MPI_Bcast(&all, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Allgather(&mine, 1, MPI_DOUBLE, every, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, every, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Gather(&mine, 1, MPI_DOUBLE, every, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Scan(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  the_sum += all + every[the_size - 1];
  MPI_Barrier(MPI_COMM_WORLD);
}  // 19

static void NonBlocking(void) {
  double mine = the_rank, all[3];
  MPI_Request requests[3];
  MPI_Iallreduce(&mine, &all[0], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(&mine, &all[1], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &requests[1]);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  MPI_Ibcast(&mine, 1, MPI_DOUBLE, 2, MPI_COMM_WORLD, &requests[0]);
  for (int flag = 0; !flag;) MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
  the_sum += all[0] + all[1] + mine;
}  // 4

static void Messages(void) {
  const int next = (the_rank + 1) % the_size, before = (the_rank + the_size - 1) % the_size;
  int out[8], in[8];
  for (int i = 0; i < 8; ++i) out[i] = the_rank * 8 + i;
  MPI_Request requests[8];
  for (int i = 0; i < 4; ++i) MPI_Irecv(&in[i], 1, MPI_INT, before, i, MPI_COMM_WORLD, &requests[i]);
  for (int i = 0; i < 4; ++i) MPI_Isend(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &requests[4 + i]);
  int index, done, indices[8];
  MPI_Waitany(8, requests, &index, MPI_STATUS_IGNORE);
  do {
    MPI_Waitsome(8, requests, &done, indices, MPI_STATUSES_IGNORE);
  } while (done != MPI_UNDEFINED);  // 4 received, 4 sent
  MPI_Sendrecv(out, 8, MPI_INT, next, 9, in, 8, MPI_INT, before, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // 1, 1
  MPI_Send_init(out, 8, MPI_INT, next, 10, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(in, 8, MPI_INT, before, 10, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < 5; ++i) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }  // 5, 5
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  if (the_rank % 2 == 0) {
    MPI_Send(out, 8, MPI_INT, next, 11, MPI_COMM_WORLD);
    MPI_Recv(in, 8, MPI_INT, before, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Status status;
    MPI_Probe(before, 11, MPI_COMM_WORLD, &status);
    MPI_Recv(in, 8, MPI_INT, before, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, 8, MPI_INT, next, 11, MPI_COMM_WORLD);
  }  // 1, 1
  for (int i = 0; i < 8; ++i) the_sum += in[i];
  static int many_out[300], many_in[300];  // more than the record has places for
  static MPI_Request many[600];
  for (int i = 0; i < 300; ++i) {
    many_out[i] = i;
    MPI_Irecv(&many_in[i], 1, MPI_INT, before, 20 + i, MPI_COMM_WORLD, &many[i]);
  }
  for (int i = 0; i < 300; ++i) MPI_Isend(&many_out[i], 1, MPI_INT, next, 20 + i, MPI_COMM_WORLD, &many[300 + i]);
  MPI_Waitall(600, many, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 300; ++i) the_sum += many_in[i] != i;
}  // 622 of each rank

static void Communicators(void) {
  MPI_Comm half, copy, mesh, early, few = MPI_COMM_NULL;
  MPI_Request request;
  MPI_Comm_split(MPI_COMM_WORLD, the_rank % 2, the_rank, &half);  // 1
  MPI_Comm_set_name(half, "half");
  int mine = the_rank, all = 0;
  for (int i = 0; i < 7; ++i) MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, half);
  the_sum += all;
  MPI_Comm_dup(half, &copy);
  MPI_Comm_set_name(copy, "copy");
  for (int i = 0; i < 2; ++i) MPI_Barrier(copy);
#if MPI_VERSION >= 4
  MPI_Request prepared;
  MPI_Barrier_init(copy, MPI_INFO_NULL, &prepared);
  for (int i = 0; i < 3; ++i) {
    MPI_Start(&prepared);
    MPI_Wait(&prepared, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&prepared);
#endif
  const int sizes[2] = {2, the_size / 2}, periods[2] = {0, 0};
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &mesh);  // 1
  MPI_Comm_set_name(mesh, "mesh");
  MPI_Barrier(mesh);
  MPI_Comm_idup(MPI_COMM_WORLD, &early, &request);  // 1
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_set_name(early, "early");
  MPI_Barrier(early);
  MPI_Group world, some;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int members[2] = {0, the_size - 1};
  MPI_Group_incl(world, 2, members, &some);
  if (the_rank == 0 || the_rank == the_size - 1) {
    MPI_Comm_create_group(MPI_COMM_WORLD, some, 5, &few);
    MPI_Comm_set_name(few, "few");
    for (int i = 0; i < 4; ++i) MPI_Barrier(few);
  }
  for (int i = 0; i < 300; ++i) {  // more than there are places for
    MPI_Comm again;
    MPI_Comm_dup(MPI_COMM_SELF, &again);
    MPI_Comm_free(&again);
  }
}  // 3 in the world

static void* Talk(void* number) {
  const int tag = *(int*)number, next = (the_rank + 1) % the_size, before = (the_rank + the_size - 1) % the_size;
  for (int i = 0; i < 200; ++i) {
    int out = i, in = -1;
    MPI_Request requests[2];
    MPI_Irecv(&in, 1, MPI_INT, before, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&out, 1, MPI_INT, next, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (in != i) abort();
  }
  return NULL;
}

int main(int argc, char** argv) {
  const char* story = argc > 1 ? argv[1] : "";
  const int threads = strcmp(story, "threads") == 0;
  int provided;
  if (threads) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) threads ? puts("no threads") : 0;
  } else {
    MPI_Init(&argc, &argv);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &the_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &the_size);
  if (threads) {
    pthread_t others[2];
    int tags[2] = {1, 2};
    for (int i = 0; i < 2; ++i) pthread_create(&others[i], NULL, Talk, &tags[i]);
    for (int i = 0; i < 2; ++i) pthread_join(others[i], NULL);
  } else {
    Blocking();
    NonBlocking();
    Messages();
    Communicators();
  }
  if (strcmp(story, "late") == 0 && atoi(argv[2]) == the_rank) sleep(600);
  for (int i = 0; strcmp(story, "ring") == 0; ++i) {
    const int next = (the_rank + 1) % the_size, before = (the_rank + the_size - 1) % the_size;
    int in = 0;
    MPI_Request requests[2];
    if (i == 50 && atoi(argv[2]) == the_rank) sleep(600);
    MPI_Irecv(&in, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&i, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  if (strcmp(story, "endless") == 0) {
    for (;;) MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  double total = 0;
  MPI_Reduce(&the_sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (the_rank == 0) printf("sum %.3f\n", total);
  MPI_Finalize();
  return 0;
}
