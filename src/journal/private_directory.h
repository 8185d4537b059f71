// PrivateDirectory: what holds a job's secrets is its owner's alone, and stays so whatever the umask.
//
// The modes of single files are set as well, but it is the directory that keeps others out of all of them, those that
// ranks and tools make included. A home that is older than the job is left as it is: whoever can write there can hide
// jobs, not read or replace them.
#pragma once

#include <filesystem>

#include "core/error.h"

namespace aimaster {

// Makes the directory and what is missing above it, each 0700. One that exists is left as it is. The error is
// what the system says, without the path.
Status MakePrivateDirectories(const std::filesystem::path& path);

// An error when the directory belongs to another user, or users other than its owner may write in it: what it says to
// execute would then be their word. Not looked at where the file system does not keep owners as we know them.
Status CheckPrivate(const std::filesystem::path& path);

}  // namespace aimaster
