// AgentTable: the agents of a job, one per node: which connection each has, and what was last heard of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/ids.h"
#include "core/time.h"

namespace aimaster {

// Names a connection for its whole life, never again after it; 0 is none.
enum class ConnectionId : uint64_t {};
inline constexpr ConnectionId kNoConnection{};

struct AgentLink {
  ConnectionId connection = kNoConnection;
  std::string agent_id;
  uint64_t received = 0;  // greatest report number of this agent process that was taken in
  Monotonic last_heard;
};

class AgentTable {
 public:
  AgentLink& operator[](NodeIndex node) { return links_[node]; }
  std::map<NodeIndex, AgentLink>& links() { return links_; }

  // kNoConnection while it is disconnected.
  ConnectionId ConnectionOf(NodeIndex node) const;
  std::optional<NodeIndex> NodeOf(ConnectionId connection) const;
  size_t connected() const { return nodes_.size(); }

  // The node's only connection from now on; the former one, if any, is nobody's.
  void Connect(NodeIndex node, ConnectionId connection);
  void Disconnect(ConnectionId connection);

 private:
  std::map<NodeIndex, AgentLink> links_;
  std::map<ConnectionId, NodeIndex> nodes_;
};

}  // namespace aimaster
