// The shim's view of its node's lease (lease_format.h): is there still a master, somewhere above us?
//
// A lease that is missing, unreadable or nonsense is as good as one that is not renewed: time counts from the last good
// one, or from our own start, and the message says so. Who can write the file no longer but leads on says so by SIGURG.
#ifndef AIMASTER_SHIM_LEASE_H_
#define AIMASTER_SHIM_LEASE_H_

#include <stdbool.h>
#include <stdint.h>

#include "shim/launch.h"
#include "shim/lease_rule.h"

struct LeaseReader {
  const char* path;  // NULL: nobody asked us to watch
  int fd;            // kept open: a shim that has run out of descriptors still sees its lease; -1: none yet
  char boot_id[64];
  int64_t timeout_ns;
  int64_t next_look_ns;
  struct LeaseWatch watch;
  bool told_trouble;
};

// Keeps a copy of the path: `launch` may go.
void OpenLease(struct LeaseReader* reader, const struct Launch* launch);

// Looks when it is time to; `due_ns` is when to come again. Returns for how long there has been no master when that is
// too long, else 0.
int64_t LookAtLease(struct LeaseReader* reader, int64_t* due_ns);

#endif  // AIMASTER_SHIM_LEASE_H_
