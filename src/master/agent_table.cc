#include "master/agent_table.h"

#include <algorithm>

namespace aimaster {

bool AgentTable::IsConnected(NodeIndex node) const {
  const auto found = links_.find(node);
  return found != links_.end() && found->second.socket != nullptr;
}

size_t AgentTable::connected() const {
  return static_cast<size_t>(
      std::ranges::count_if(links_, [](const auto& link) { return link.second.socket != nullptr; }));
}

void AgentTable::Send(NodeIndex node, const v1::ToAgent& message) {
  const auto found = links_.find(node);
  if (found != links_.end() && found->second.socket != nullptr) found->second.socket->Send(message.SerializeAsString());
}

}  // namespace aimaster
