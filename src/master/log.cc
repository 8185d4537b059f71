#include "master/log.h"

#include <unistd.h>

#include <chrono>
#include <string>

#include "core/time.h"

namespace aimaster {

void Log(std::string_view line) {
  std::string text = FormatRfc3339({std::chrono::system_clock::now().time_since_epoch()});
  text.append(" ").append(line).append("\n");
  // One write, so that lines of two processes in one file don't mix. A full disk must not stop a master.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace aimaster
