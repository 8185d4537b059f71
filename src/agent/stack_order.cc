#include "agent/stack_order.h"

#include <nlohmann/json.hpp>

#include "core/quote.h"

namespace aimaster::agent {
namespace {

using nlohmann::json;

StackOrder Read(const json& from) {
  StackOrder order{.capture = from.at("capture").get<uint32_t>(),
                   .timeout = std::chrono::milliseconds(from.at("timeout_ms").get<int64_t>()),
                   .node = from.at("node").get<std::string>(),
                   .tool_path = from.at("tool_path").get<std::vector<std::string>>(),
                   .targets = {}};
  for (const json& target : from.at("targets")) {
    order.targets.push_back({.process = {target.at("pid").get<pid_t>(), target.at("start_ticks").get<uint64_t>()},
                             .rank = target.at("rank").get<uint32_t>(),
                             .instance = target.at("instance").get<std::string>(),
                             .error_output = target.at("error_output").get<std::string>()});
  }
  return order;
}

}  // namespace

std::string FormatStackOrder(const StackOrder& order) {
  json targets = json::array();
  for (const StackTarget& target : order.targets) {
    targets.push_back({{"pid", target.process.pid},
                       {"start_ticks", target.process.start_ticks},
                       {"rank", target.rank},
                       {"instance", target.instance},
                       {"error_output", target.error_output}});
  }
  const json document = {{"capture", order.capture},     {"tool", Name(order.tool)},
                         {"node", order.node},           {"timeout_ms", order.timeout.count()},
                         {"tool_path", order.tool_path}, {"targets", std::move(targets)}};
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<StackOrder> ParseStackOrder(std::string_view text) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return Fail(ErrorKind::kUsage, "the order to take stacks is no JSON object");
  try {
    const std::string name = document.at("tool").get<std::string>();
    const std::optional<StackTool> tool = ParseStackTool(name);
    if (!tool) return Fail(ErrorKind::kUsage, Quoted(name) + " is no tool for stacks");
    StackOrder order = Read(document);
    order.tool = *tool;
    return order;
  } catch (const json::exception& error) {
    return Fail(ErrorKind::kUsage, std::string("the order to take stacks is incomplete: ") + error.what());
  }
}

}  // namespace aimaster::agent
