// Reads the bytes of a launch file (launch_format.h) into what the shim starts.
#ifndef AIMASTER_SHIM_LAUNCH_H_
#define AIMASTER_SHIM_LAUNCH_H_

#include <stddef.h>
#include <stdint.h>

#include "shim/launch_format.h"

#ifdef __cplusplus
extern "C" {
#endif

struct LaunchRank {
  uint32_t rank;
  uint32_t local;
  const char* cwd;
  char** argv;  // both end with NULL
  char** envp;
};

struct Launch {
  const char* instance;
  uint32_t attempt;
  uint32_t stop_grace_ms;
  const char* log_dir;
  const char* lease;           // NULL: none
  uint32_t orphan_timeout_ms;  // 0: not said
  uint32_t rank_count;
  struct LaunchRank* ranks;
  char** pointers;  // what argv and envp lie in
};

// Every string of `launch` points into `bytes`, which the caller keeps as long. Returns NULL, or what is wrong as a
// static text; `launch` then holds nothing.
const char* ParseLaunch(char* bytes, size_t size, struct Launch* launch);

// Gives back what ParseLaunch allocated; `bytes` stay the caller's.
void FreeLaunch(struct Launch* launch);

#ifdef __cplusplus
}
#endif

#endif  // AIMASTER_SHIM_LAUNCH_H_
