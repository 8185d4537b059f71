// StackOrder: what the agent tells the process that takes stacks for it (stack_helper.h), in one document on its
// standard input. It answers with a document of stacks/document.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process_identity.h"
#include "core/error.h"
#include "core/status.h"

namespace aimaster::agent {

struct StackTarget {
  ProcessIdentity process;  // the rank's own; what it has started is found
  uint32_t rank = 0;
  std::string instance;
  std::string error_output;  // the file that its stderr goes to; empty: not known
  bool operator==(const StackTarget&) const = default;
};

struct StackOrder {
  uint32_t capture = 0;
  StackTool tool = StackTool::kAuto;
  std::chrono::milliseconds timeout{30'000};
  std::string node;
  std::vector<std::string> tool_path;  // folders in which tools are looked for, in order
  std::vector<StackTarget> targets;
  bool operator==(const StackOrder&) const = default;
};

std::string FormatStackOrder(const StackOrder& order);
Result<StackOrder> ParseStackOrder(std::string_view text);

}  // namespace aimaster::agent
