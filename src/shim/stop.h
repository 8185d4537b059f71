// Ends an attempt so that nothing of it is left.
//
// First the ranks' own processes hear SIGTERM, and nobody else: a launcher knows in which order its children have to
// end, and a data loader that is killed under its trainer makes the trainer fail in the middle of a checkpoint. What a
// rank leaves behind when it is gone hears it next. At the deadline everything is killed, in passes, until the kernel
// says that we have no child.
#ifndef AIMASTER_SHIM_STOP_H_
#define AIMASTER_SHIM_STOP_H_

#include "shim/attempt.h"

// Asks for a stop; a second one can only make it faster.
void BeginStop(struct Attempt* attempt, enum Stop stop);

// A stop with grace, since no master was there for `orphaned_ms`. One that was ordered before keeps its reason.
void BeginOrphanStop(struct Attempt* attempt, int64_t orphaned_ms);

// Does what is due. Returns when to come again, INT64_MAX when only a signal can change anything.
int64_t StopTick(struct Attempt* attempt);

#endif  // AIMASTER_SHIM_STOP_H_
