// The agent may open as many files as the system lets it (three per rank), while what it starts keeps the limit that
// the agent was started with: a raised one is a surprise to programs that use select, or close all they could have
// open.
#pragma once

#include <spawn.h>

#include <cstddef>

namespace aimaster::agent {

// Raises our own limit; once, at the start.
void RaiseDescriptorLimit();

// How many files we may have open, and have now; 0 where that can't be found out.
size_t DescriptorLimit();
size_t CountDescriptors();

// Whether this is one of the last that we may have. The lowest free number is always given first, so a high one says
// that those below are taken. Whoever would keep such a one for long gives it back instead, and looks now and then:
// the last few are for what is opened for a moment, a connection or a file.
bool IsAmongTheLast(int fd);

// While one exists, a process that is started gets the original limit. Its file actions have to begin with
// FreeDescriptor: with the low numbers all taken it could open nothing under that limit.
class OriginalDescriptorLimit {
 public:
  OriginalDescriptorLimit();
  ~OriginalDescriptorLimit();
  OriginalDescriptorLimit(const OriginalDescriptorLimit&) = delete;
  OriginalDescriptorLimit& operator=(const OriginalDescriptorLimit&) = delete;
  static void FreeDescriptor(posix_spawn_file_actions_t& actions);
};

}  // namespace aimaster::agent
