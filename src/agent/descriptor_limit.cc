#include "agent/descriptor_limit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "agent/limits.h"

namespace aimaster::agent {
namespace {

rlimit original_limit{};
rlimit raised_limit{};
int spare = -1;  // a low number, free in every child

}  // namespace

void RaiseDescriptorLimit() {
  if (::getrlimit(RLIMIT_NOFILE, &original_limit) != 0) return;
  spare = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  raised_limit = original_limit;
  raised_limit.rlim_cur = raised_limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &raised_limit);
}

size_t DescriptorLimit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

size_t CountDescriptors() {
  DIR* const directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  size_t count = 0;
  while (const dirent* entry = ::readdir(directory)) count += entry->d_name[0] != '.';
  ::closedir(directory);
  return count - 1;  // less the one that listed them
}

bool IsAmongTheLast(int fd) {
  const size_t limit = DescriptorLimit();
  return limit != 0 && static_cast<size_t>(fd) + kDescriptorsSpare >= limit;
}

OriginalDescriptorLimit::OriginalDescriptorLimit() {
  if (original_limit.rlim_cur != 0) ::setrlimit(RLIMIT_NOFILE, &original_limit);
}

OriginalDescriptorLimit::~OriginalDescriptorLimit() {
  if (raised_limit.rlim_cur != 0) ::setrlimit(RLIMIT_NOFILE, &raised_limit);
}

void OriginalDescriptorLimit::FreeDescriptor(posix_spawn_file_actions_t& actions) {
  if (spare >= 0) ::posix_spawn_file_actions_addclose(&actions, spare);
}

}  // namespace aimaster::agent
