#include "agent/log.h"

#include <unistd.h>

#include <chrono>
#include <string>

#include "core/time.h"

namespace aimaster::agent {
namespace {

constexpr size_t kLineMaxBytes = 2000;

void Write(std::string_view level, std::string_view line) {
  std::string text = FormatRfc3339(Wall{std::chrono::system_clock::now().time_since_epoch()});
  text.append(" ").append(level).append(" ");
  // What we quote may come from anyone: one call is one line.
  for (const char c : line.substr(0, kLineMaxBytes)) text += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  text += '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

void LogInfo(std::string_view line) { Write("info ", line); }
void LogWarning(std::string_view line) { Write("warn ", line); }
void LogError(std::string_view line) { Write("error", line); }

}  // namespace aimaster::agent
