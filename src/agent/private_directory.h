// A directory that only this user can use, in a place where everybody may make one (/tmp, /dev/shm).
#pragma once

#include <filesystem>

#include "core/error.h"

namespace aimaster::agent {

// Makes it (0700) where it is missing. Refused when somebody else could have put something there: it must be ours, no
// link, and closed to others.
Status MakePrivateDirectory(const std::filesystem::path& path);
bool IsPrivateDirectory(const std::filesystem::path& path);

}  // namespace aimaster::agent
