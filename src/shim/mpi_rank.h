// Mode 3 of the shim: the parent of one rank of MPI.
//
//   mpirun or its daemon ──▶ aimaster-shim --mpi-rank PROG ARGS… ──▶ PROG
//
// The parents that MPI libraries have for their ranks keep the ranks' exits to themselves: mpirun tells of one rank,
// and MPICH's often of one that it has killed itself. So a parent of ours stands in between: it writes down how the
// rank ended, before anybody else can know, and then ends in the same way.
//
// It writes `rank<R>.<pid>.exit.json` into the folder AIMASTER_MPI_DIR, for a rank that ended badly and only then; the
// format is that of an exit file (rank.h), where "stopped_by_us" means: after a SIGTERM by the launcher. Also for one
// that ended with 0 and had not said goodbye to MPICH's process manager: a program that is none of MPI's, or one that
// left without MPI_Finalize.
//
// `rank<R>.<pid>.alive` is there as long as the rank is. What is left of it was killed together with its parent.
//
// The folder then also holds `watched`: whoever finds it there knows that a rank of which nothing is written did not
// fail by itself, whatever the launcher says.
//
// Where the job records what it communicates (AIMASTER_C4D_DIR, probe/record.h), the rank gets the library that does so
// for the MPI by which it was started: each MPI has types of its own behind the same names, so that the wrong library
// would break the program, and here is the last place that knows which one it is. In a program that is none of MPI's,
// such as a shell around it, the library does nothing.
//
// The rank finds RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE in its environment, whichever library numbers it.
#ifndef AIMASTER_SHIM_MPI_RANK_H_
#define AIMASTER_SHIM_MPI_RANK_H_

#define AIMASTER_MPI_RANK_OPTION "--mpi-rank"
#define AIMASTER_MPI_DIR "AIMASTER_MPI_DIR"
#define AIMASTER_MPI_EXIT_SUFFIX ".exit.json"
#define AIMASTER_MPI_ALIVE_SUFFIX ".alive"
#define AIMASTER_MPI_WATCHED "watched"
#define AIMASTER_C4D_DIR "AIMASTER_C4D_DIR"

// `argv` is the rank's command. Returns only when there is nothing to run.
int RunMpiRank(char** argv);

#endif  // AIMASTER_SHIM_MPI_RANK_H_
