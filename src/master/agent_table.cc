#include "master/agent_table.h"

namespace aimaster {

ConnectionId AgentTable::ConnectionOf(NodeIndex node) const {
  const auto found = links_.find(node);
  return found == links_.end() ? kNoConnection : found->second.connection;
}

std::optional<NodeIndex> AgentTable::NodeOf(ConnectionId connection) const {
  const auto found = nodes_.find(connection);
  return found == nodes_.end() ? std::nullopt : std::optional(found->second);
}

void AgentTable::Connect(NodeIndex node, ConnectionId connection) {
  nodes_.erase(links_[node].connection);
  links_[node].connection = connection;
  nodes_[connection] = node;
}

void AgentTable::Disconnect(ConnectionId connection) {
  const auto found = nodes_.find(connection);
  if (found == nodes_.end()) return;
  links_[found->second].connection = kNoConnection;
  nodes_.erase(found);
}

}  // namespace aimaster
