// What a parser makes of the words of a tool: the stacks of one process, thread by thread.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stacks/limits.h"

namespace aimaster::stacks {

enum class Language : uint8_t {
  kPython,
  kNative,
  kKernel,  // what the kernel does for the thread, or what it has done to it
};

// A place in a program. Which machine instruction it was is left out: it differs between processes that do the same.
struct Frame {
  std::string function;  // "?" where nobody knows
  std::string file;      // the source where it is known, else the program or library; may be empty
  uint32_t line = 0;     // 0: not known
  Language language = Language::kPython;
  auto operator<=>(const Frame&) const = default;
};

struct Thread {
  uint64_t id = 0;  // as the kernel counts; where a tool does not say it, what it says instead
  std::string name;
  bool is_waiting = false;  // as the tool, or the kernel, sees it
  bool holds_gil = false;
  std::vector<Frame> frames;  // the outermost first, as a flame graph has it
  bool operator==(const Thread&) const = default;
};

struct ProcessDump {
  uint32_t pid = 0;  // 0: not said
  std::string command;
  std::vector<Thread> threads;
  bool operator==(const ProcessDump&) const = default;
};

// The same text, safe to print and of bounded length.
std::string CleanName(std::string_view text);
// Keeps both ends of a stack that is too deep, with a frame between them that says so.
void BoundFrames(std::vector<Frame>& frames);

}  // namespace aimaster::stacks
