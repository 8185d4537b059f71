// Makes files durable without ever waiting for the disk.
//
// An fsync takes tens of milliseconds on a busy disk and for ever on a storage that hangs. If the shim waited, the
// times of exits in that span would be wrong (and with them the root cause), and a stop would not be obeyed. So a child
// does it. It is a child of a kind that wait() does not see by default (its end is told by another signal than
// SIGCHLD): "no child left" keeps meaning that nothing of the instance is left. A thread was the alternative; the shim
// stays free of them.
#ifndef AIMASTER_SHIM_DURABLE_H_
#define AIMASTER_SHIM_DURABLE_H_

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// The signal that tells the end of the child; the caller catches it and calls ReapSync.
int SyncSignal(void);

// Starts to fsync the named files and then the directory. With a child still at work, or without room for one, nothing
// happens and false is returned. The names are read by the child only, from its copy of our memory.
bool StartSync(int directory, bool (*name_at)(uint32_t index, char* name, size_t capacity), uint32_t count);

void ReapSync(void);   // once it has ended
void AwaitSync(void);  // however long it takes
pid_t SyncPid(void);   // 0 when none is at work

// The same, by ourselves and waiting. For the very end.
void SyncNow(int directory, bool (*name_at)(uint32_t index, char* name, size_t capacity), uint32_t count);

#endif  // AIMASTER_SHIM_DURABLE_H_
