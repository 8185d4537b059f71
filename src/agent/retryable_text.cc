#include "agent/retryable_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/limits.h"

namespace aimaster::agent {
namespace {

std::string ReadTail(const std::string& path) {
  std::string bytes;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return bytes;
  struct stat status{};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    const off_t start = std::max<off_t>(0, status.st_size - static_cast<off_t>(kLogTailMaxBytes));
    bytes.resize(static_cast<size_t>(status.st_size - start));
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), start);
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  ::close(fd);
  return bytes;
}

}  // namespace

std::string FindRetryableText(const Claim& claim, uint32_t local, std::span<const std::string> texts) {
  if (texts.empty()) return {};
  const std::string name = claim.log_directory + "/rank" + std::to_string(local);
  const std::string tails[] = {ReadTail(name + ".err"), ReadTail(name + ".out")};
  for (const std::string& text : texts) {
    const bool found = std::ranges::any_of(tails, [&](const std::string& tail) { return tail.contains(text); });
    if (found) return text;
  }
  return {};
}

}  // namespace aimaster::agent
