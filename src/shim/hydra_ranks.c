// Puts the shim between MPICH's process manager and each rank that it starts (mpi_rank.h says why).
//
// OpenMPI has a setting for that, Hydra has none, so this is loaded into its proxy with LD_PRELOAD. It is loaded
// nowhere else: in any program but a proxy of an MPI job (its name, and AIMASTER_MPI_SHIM) it does nothing, and a proxy
// puts LD_PRELOAD back as it was before at once, so that no rank inherits it. In there it replaces one function,
// execvp, and only for a child that is about to become a rank.
//
// Reading the exit of the dead rank from /proc was the alternative: it is there for moments only, and a loaded machine
// misses it.
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/mpi_rank.h"

extern char** environ;

enum { kVariablesMax = 64 };

static pid_t the_proxy;  // 0: this process is none
static const char* the_shim;
// What is true on this node; a rank of Hydra gets the environment of the node on which mpirun runs.
static char* the_variables[kVariablesMax];
static int the_variable_count;

static bool IsProxy(void) {
  const char* name = program_invocation_short_name;
  return strcmp(name, "hydra_pmi_proxy") == 0 || strcmp(name, "hydra_bstrap_proxy") == 0;
}

__attribute__((constructor)) static void Begin(void) {
  const char* shim = getenv("AIMASTER_MPI_SHIM");
  if (!shim || !IsProxy()) return;
  the_proxy = getpid();
  the_shim = strdup(shim);
  for (char** at = environ; *at && the_variable_count < kVariablesMax; ++at) {
    if (strncmp(*at, "AIMASTER_", 9) == 0) the_variables[the_variable_count++] = strdup(*at);
  }
  const char* before = getenv("AIMASTER_MPI_PRELOAD_BEFORE");
  if (before && *before) {
    setenv("LD_PRELOAD", before, 1);
  } else {
    unsetenv("LD_PRELOAD");
  }
}

static void BecomeRank(char* const argv[]) {
  size_t count = 0;
  while (argv[count]) ++count;
  char** words = malloc((count + 3) * sizeof *words);
  if (!words) return;
  words[0] = (char*)the_shim;
  words[1] = AIMASTER_MPI_RANK_OPTION;
  memcpy(words + 2, argv, (count + 1) * sizeof *words);
  for (int i = 0; i < the_variable_count; ++i) putenv(the_variables[i]);
  execv(the_shim, words);
}

__attribute__((visibility("default"))) int execvp(const char* file, char* const argv[]) {
  const bool is_rank = the_shim && getpid() != the_proxy && getenv("PMI_RANK") && argv[0];
  if (is_rank) BecomeRank(argv);  // and where there is no shim any more, without it
  return execvpe(file, argv, environ);
}
