#include "cli/report.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/text.h"

namespace aimaster::cli {
namespace {

bool WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

int Complain(const Error& error) {
  WriteAll(STDERR_FILENO, "aimaster: " + OneLine(error.message) + "\n");
  return error.kind == ErrorKind::kUsage ? kExitUsage : kExitFailure;
}

int Print(std::string_view text) {
  if (WriteAll(STDOUT_FILENO, text)) return kExitSuccess;
  return Complain({ErrorKind::kEnvironment, std::string("cannot write to standard output: ") + std::strerror(errno)});
}

int PrintJson(const nlohmann::json& value) {
  // Texts that ranks printed may not be UTF-8; such bytes become U+FFFD, since JSON can't carry them.
  return Print(value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace aimaster::cli
