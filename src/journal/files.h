// Files: the few things that every file of ours is read and written by: whole or not at all, and never without a bound.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.h"

namespace aimaster {

// The loop around write(2): all of it; false when the descriptor takes no more, with errno.
bool WriteAll(int descriptor, std::string_view bytes);

// A reader sees the old bytes or the new ones, also after a crash of the machine. `mode` as in open(2).
Status WriteFileAtomically(const std::filesystem::path& path, std::string_view bytes, mode_t mode);

// Refuses a file larger than `max_bytes`. kNotFound when there is none.
Result<std::string> ReadFile(const std::filesystem::path& path, size_t max_bytes);

// Why no file can be written in `directory`, in the system's words; empty: one can. Writes and removes a small one.
std::string WhyUnwritable(const std::filesystem::path& directory);

// "; no file of this process may grow beyond 65536 bytes (ulimit -f)", for an error of writing; empty where any may.
std::string FileSizeLimitNote();

// The entries of `directory` survive a crash of the machine.
Status SyncDirectory(const std::filesystem::path& directory);

// NFS, Lustre and the like, and FUSE, behind which may be anything: memory that is shared through files does not work
// between machines. False where it can't be told.
bool IsOnNetworkFileSystem(const std::filesystem::path& directory);

}  // namespace aimaster
