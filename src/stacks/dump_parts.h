// What the parsers of several tools make alike.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "stacks/frame.h"
#include "stacks/limits.h"

namespace aimaster::stacks {

// An address in place of a name is another one in each process.
inline Frame NativeFrame(std::string_view function, std::string_view file, uint32_t line) {
  const bool is_unknown = function.empty() || function.starts_with("0x") || function.starts_with('?');
  return {.function = is_unknown ? "?" : CleanName(function),
          .file = CleanName(file),
          .line = line,
          .language = Language::kNative};
}

// What is read is innermost first.
inline void Close(std::vector<Thread>& threads) {
  for (Thread& thread : threads) {
    std::ranges::reverse(thread.frames);
    BoundFrames(thread.frames);
  }
}

inline bool HasRoom(const ProcessDump& process) { return process.threads.size() < kThreadsPerProcessMax; }

}  // namespace aimaster::stacks
