// Files of an attempt's directory. All are put whole: written beside, then renamed, so that a reader sees none or all.
#ifndef AIMASTER_SHIM_FILES_H_
#define AIMASTER_SHIM_FILES_H_

#include <stdbool.h>
#include <stddef.h>

#include "shim/text.h"

// A line to whoever reads our fd 2; never fails and never waits for memory.
__attribute__((format(printf, 1, 2))) void Say(const char* format, ...);

// Puts `text` as `name` (with `name`.new beside it for a moment). False with errno.
bool PutFile(int directory, const char* name, const struct Text* text);

// Takes the room for a file that must not be lost on a full disk; `name`.tmp then has kShimExitFileBytes blanks.
bool ReserveFile(int directory, const char* name);
void UnreserveFile(int directory, const char* name);

// Writes `text` over the reserved blanks and renames it to `name`: visible at once, durable after Sync (durable.h).
// With the reservation gone it is written anew. False with errno; can be repeated.
bool PutReservedFile(int directory, const char* name, const struct Text* text);

// The whole file, allocated, or NULL with errno (EFBIG beyond `max`).
char* ReadFileAt(int directory, const char* name, size_t max, size_t* size);

// At most `capacity` - 1 bytes of a file of /proc, ended by a NUL; false where there is none.
bool ReadSmallFile(const char* path, char* buffer, size_t capacity);

bool WriteAll(int fd, const char* bytes, size_t size);

#endif  // AIMASTER_SHIM_FILES_H_
