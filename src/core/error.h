// Error: what the world may do to us, as a value. An error is one sentence for a person: what was wrong, where, and
// what to do about it. Exceptions were rejected at module borders: a failure of the world is an ordinary answer here,
// and the compiler should make every caller look at it ([[nodiscard]] on expected).
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace aimaster {

// Only kinds that a caller treats differently.
enum class ErrorKind {
  kUsage,        // the person's input; the CLI exits with 2
  kNotFound,     // what was named does not exist
  kEnvironment,  // disk, network, permissions, missing tools; trying again may help
  kVersion,      // written by a newer version of this program
  kDiskFull,     // no space or inodes are left; nothing else is wrong
  kFenced,       // another master has taken over: stop at once, act on nothing
};

struct Error {
  ErrorKind kind = ErrorKind::kEnvironment;
  std::string message;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

inline std::unexpected<Error> Fail(ErrorKind kind, std::string message) {
  return std::unexpected(Error{kind, std::move(message)});
}

}  // namespace aimaster
