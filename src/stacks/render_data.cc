// For other people's tools: flame graphs, Graphviz, and JSON that needs no explanation.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "stacks/document.h"
#include "stacks/render.h"

namespace aimaster::stacks {
namespace {

using nlohmann::ordered_json;

// A semicolon separates frames.
std::string FoldedName(const Frame& frame) {
  std::string name = Describe(frame);
  std::ranges::replace(name, ';', ':');
  return name;
}

std::string DotString(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string_view Name(Language language) {
  switch (language) {
    case Language::kPython:
      return "python";
    case Language::kNative:
      return "native";
    case Language::kKernel:
      return "kernel";
  }
  return "unknown";
}

ordered_json OrNull(uint32_t number) { return number == kNone ? ordered_json() : ordered_json(number); }

ordered_json PlaceJson(const Capture& capture, const ProcessRow& process) {
  return {{"node", capture.Text(process.node)}, {"instance", capture.Text(process.instance)},
          {"rank", OrNull(process.rank)},       {"pid", process.pid},
          {"is_child", process.is_child},       {"command", capture.Text(process.command)}};
}

ordered_json GroupJson(const Capture& capture, const Group& group) {
  ordered_json stack = ordered_json::array(), threads = ordered_json::array();
  for (const Frame& frame : FramesOf(capture, group.stack)) {
    stack.push_back(
        {{"function", frame.function}, {"file", frame.file}, {"line", frame.line}, {"language", Name(frame.language)}});
  }
  for (const uint32_t index : group.threads) {
    const ThreadRow& row = capture.threads[index];
    ordered_json thread = PlaceJson(capture, capture.processes[row.process]);
    thread["thread"] = row.id;
    thread["thread_name"] = capture.Text(row.name);
    thread["is_main"] = row.is_main;
    threads.push_back(std::move(thread));
  }
  return {{"count", group.threads.size()},        {"ranks", group.ranks.Text()}, {"waits_for", Describe(group.waits)},
          {"in_background", group.in_background}, {"folded", group.folded},      {"stack", std::move(stack)},
          {"threads", std::move(threads)}};
}

}  // namespace

std::string FormatFolded(const Capture& capture, bool all) {
  std::string out;
  for (const Group& group : GroupStacks(capture).groups) {
    if ((group.folded && !all) || capture.stacks[group.stack].empty()) continue;
    bool is_first = true;
    for (const Frame& frame : FramesOf(capture, group.stack)) {
      if (!std::exchange(is_first, false)) out += ';';
      out += FoldedName(frame);
    }
    out += " " + std::to_string(group.threads.size()) + "\n";
  }
  return out;
}

std::string FormatDot(const Capture& capture, bool all) {
  const Tree tree = MakeTree(capture, GroupStacks(capture), all);
  std::string out = "digraph stacks {\n  node [shape=box, fontname=monospace];\n";
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    std::string label = "all";
    if (i > 0) {
      const FrameRow& row = capture.frames[tree.nodes[i].frame];
      label = Describe(Frame{.function = capture.Text(row.function), .file = capture.Text(row.file), .line = row.line});
    }
    out += "  n" + std::to_string(i) + " [label=" + DotString(label) + "];\n";
    for (const uint32_t child : tree.nodes[i].children) {
      const TreeNode& node = tree.nodes[child];
      const std::string ranks = node.ranks.empty() ? std::to_string(node.threads) : node.ranks.Text();
      out += "  n" + std::to_string(i) + " -> n" + std::to_string(child) + " [label=" + DotString(ranks) + "];\n";
    }
  }
  return out + "}\n";
}

std::string FormatJson(const Capture& capture) {
  const Grouping grouping = GroupStacks(capture);
  ordered_json groups = ordered_json::array(), without = ordered_json::array();
  for (const Group& group : grouping.groups) groups.push_back(GroupJson(capture, group));
  for (const uint32_t index : grouping.without_stacks) {
    ordered_json process = PlaceJson(capture, capture.processes[index]);
    process["reason"] = capture.Text(capture.processes[index].trouble);
    without.push_back(std::move(process));
  }
  const ordered_json whole = {{"capture", capture.number},          {"time_ns", capture.time_ns},
                              {"reason", capture.reason},           {"summary", OneLine(capture, grouping)},
                              {"ranks", grouping.asked.Text()},     {"ranks_answered", grouping.answered.Text()},
                              {"groups", std::move(groups)},        {"without_stacks", std::move(without)},
                              {"threads_cut", capture.threads_cut}, {"processes_cut", capture.processes_cut}};
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace aimaster::stacks
