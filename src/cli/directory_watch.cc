#include "cli/directory_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>

namespace aimaster::cli {

DirectoryWatch::DirectoryWatch(const std::filesystem::path& directory) {
  descriptor_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor_ < 0) return;
  if (inotify_add_watch(descriptor_, directory.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0) {
    close(descriptor_);
    descriptor_ = -1;
  }
}

DirectoryWatch::~DirectoryWatch() {
  if (descriptor_ >= 0) close(descriptor_);
}

void DirectoryWatch::Clear() {
  alignas(inotify_event) std::array<char, 16384> events;
  while (descriptor_ >= 0 && read(descriptor_, events.data(), events.size()) > 0) {
  }
}

void DirectoryWatch::Await(int milliseconds) const {
  pollfd changed{.fd = descriptor_, .events = POLLIN, .revents = 0};
  poll(&changed, 1, milliseconds);
}

}  // namespace aimaster::cli
