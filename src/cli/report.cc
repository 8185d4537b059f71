#include "cli/report.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/text.h"
#include "journal/files.h"

namespace aimaster::cli {
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
