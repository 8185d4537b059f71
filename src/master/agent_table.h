// AgentTable: the agents that are connected, one per node, and what was last heard of each.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "aimaster/v1/agent.pb.h"
#include "core/ids.h"
#include "core/time.h"
#include "wire/server.h"

namespace aimaster {

struct AgentLink {
  std::shared_ptr<ServerSocket> socket;  // null while disconnected
  std::string agent_id;
  uint64_t received = 0;  // greatest report number of this agent process that was taken in
  Monotonic last_heard;
  bool suspect = false;
};

class AgentTable {
 public:
  AgentLink& operator[](NodeIndex node) { return links_[node]; }
  const std::map<NodeIndex, AgentLink>& links() const { return links_; }
  std::map<NodeIndex, AgentLink>& links() { return links_; }

  bool IsConnected(NodeIndex node) const;
  size_t connected() const;
  // Dropped when the node is not connected: what is outstanding is sent again when it connects.
  void Send(NodeIndex node, const v1::ToAgent& message);

 private:
  std::map<NodeIndex, AgentLink> links_;
};

}  // namespace aimaster
