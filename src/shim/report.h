// What others read about an attempt while it lives and when it ended. A file that can't be written is said on fd 2 and
// does not stop anything: only exit files are worth fighting for.
#ifndef AIMASTER_SHIM_REPORT_H_
#define AIMASTER_SHIM_REPORT_H_

#include "shim/attempt.h"
#include "shim/descendants.h"

// Sets when to try again where it could not be written.
void WriteStarted(struct Attempt* attempt);

// Keeps the list of descendants on disk, for whoever has to clean up when we were killed. Returns when to call again: a
// scan is paid for by waiting a thousand times its own cost, so that it takes a thousandth of a core on any node.
int64_t WriteDescendants(struct Attempt* attempt);

// Names the processes that outlive their SIGKILL; removes the file when there are none.
void WriteUnkillable(struct Attempt* attempt, const struct Descendant* all, size_t count, int64_t now_ns);

void WriteEnded(struct Attempt* attempt);

#endif  // AIMASTER_SHIM_REPORT_H_
