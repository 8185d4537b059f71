#include "cli/output_queue.h"

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace aimaster::cli {
namespace {

constexpr size_t kTerminalChunk = 512;
constexpr size_t kFileChunk = 256 << 10;

size_t ChunkOf(int descriptor) {
  struct stat status{};
  if (fstat(descriptor, &status) != 0) return kTerminalChunk;
  if (S_ISREG(status.st_mode)) return kFileChunk;
  return S_ISFIFO(status.st_mode) ? PIPE_BUF : kTerminalChunk;
}

bool HasRoom(int descriptor) {
  pollfd poll_descriptor{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return poll(&poll_descriptor, 1, 0) == 1;
}

}  // namespace

OutputQueue::OutputQueue(int descriptor) : descriptor_(descriptor), chunk_(ChunkOf(descriptor)) {}

void OutputQueue::Append(std::string_view bytes) {
  if (reader_gone_ || bytes.empty()) return;
  if (position_ > kOutputQueueFull || position_ == bytes_.size()) {
    bytes_.erase(0, position_);
    position_ = 0;
  }
  bytes_ += bytes;
  at_line_start_ = bytes.back() == '\n';
}

void OutputQueue::Flush() {
  while (!empty() && HasRoom(descriptor_)) {
    const ssize_t written = write(descriptor_, bytes_.data() + position_, std::min(chunk_, bytes_.size() - position_));
    if (written > 0) {
      position_ += static_cast<size_t>(written);
      continue;
    }
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) return;
    // A full disk behind a redirection ends this output too: the job does not depend on being watched.
    error_ = errno == EPIPE ? 0 : errno;
    reader_gone_ = true;
    at_line_start_ = true;
    position_ = bytes_.size();
  }
}

}  // namespace aimaster::cli
