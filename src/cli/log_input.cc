#include "cli/log_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/text.h"

namespace aimaster::cli {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr int64_t kBlockBytes = 512;  // of st_blocks

std::unexpected<Error> CannotRead(ErrorKind kind, const std::string& path, const std::string& why) {
  return Fail(kind, "cannot read the log " + InQuotes(path) + ": " + why);
}

}  // namespace

LogInput::LogInput(std::string path, int descriptor, bool has_lines)
    : path_(std::move(path)), descriptor_(descriptor), has_lines_(has_lines), buffer_(kChunkBytes) {}

LogInput::LogInput(LogInput&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, STDIN_FILENO)),
      has_lines_(other.has_lines_),
      buffer_(std::move(other.buffer_)) {}

LogInput::~LogInput() {
  if (descriptor_ != STDIN_FILENO) close(descriptor_);
}

Result<LogInput> LogInput::Open(const std::string& path) {
  if (path == kStandardInput) return LogInput(path, STDIN_FILENO, false);
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const bool is_wrong = errno == ENOENT || errno == ENOTDIR;
    return CannotRead(is_wrong ? ErrorKind::kUsage : ErrorKind::kEnvironment, path, std::strerror(errno));
  }
  struct stat status{};
  if (fstat(descriptor, &status) != 0) status = {};
  LogInput input(path, descriptor, S_ISREG(status.st_mode) && status.st_blocks * kBlockBytes >= status.st_size);
  if (!S_ISDIR(status.st_mode)) return input;
  return Fail(ErrorKind::kUsage,
              InQuotes(path) + " is a folder: name the logs in it, " + InQuotes(path + "/rank*.err") + " say");
}

Result<std::string_view> LogInput::Read() {
  while (true) {
    const ssize_t got = read(descriptor_, buffer_.data(), buffer_.size());
    if (got >= 0) return std::string_view(buffer_.data(), static_cast<size_t>(got));
    if (errno != EINTR) return CannotRead(ErrorKind::kEnvironment, path_, std::strerror(errno));
  }
}

std::string PositionIn(const std::string& path, uint64_t offset) {
  const std::string by_byte = path + ", byte " + std::to_string(offset);
  Result<LogInput> input = LogInput::Open(path);
  if (!input || !input->has_lines()) return by_byte;
  uint64_t number = 1;
  for (uint64_t left = offset; left > 0;) {
    const Result<std::string_view> bytes = input->Read();
    if (!bytes || bytes->empty()) return by_byte;
    const std::string_view before = bytes->substr(0, left);
    number += static_cast<uint64_t>(std::count(before.begin(), before.end(), '\n'));
    left -= before.size();
  }
  return path + ":" + std::to_string(number);
}

}  // namespace aimaster::cli
