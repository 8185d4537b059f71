// The tools that read other processes' stacks: which there are on this node, how each is called, and what its failure
// means. A tool is a guest in somebody's training: it may hang, leave its target stopped, or be refused by the kernel.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/stack_order.h"
#include "agent/stack_processes.h"
#include "stacks/dump_parsers.h"

namespace aimaster::agent {

struct ToolCall {
  std::string name;                    // "py-spy", for people
  std::vector<std::string> arguments;  // the program's path first
  std::vector<stacks::ProcessDump> (*parse)(std::string_view) = nullptr;
};

class StackTools {
 public:
  // Looks for them in these folders, in order.
  explicit StackTools(std::span<const std::string> folders);

  // What to call for a process, the best first.
  std::vector<ToolCall> CallsFor(const StackProcess& process, StackTool wanted) const;
  // Why CallsFor gave nothing, and what to install.
  // Of Python only the interpreter's own frames were got, since there is no tool for more; empty: that is not so.
  std::string WhyNativeOnly(const StackProcess& process, StackTool wanted, std::string_view tool) const;
  std::string WhyNone(const StackProcess& process, StackTool wanted) const;

 private:
  std::string py_spy_, pystack_, eu_stack_, gdb_;  // paths; empty: not there
};

// Whether a tool was refused by the kernel, by what it printed.
bool IsRefused(std::string_view error_output);
// What to allow, by how this node is set up.
std::string HowToAllow();
// The last line of what a tool printed that says something.
std::string LastWords(std::string_view error_output);

}  // namespace aimaster::agent
