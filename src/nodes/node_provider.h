// NodeProvider: the only thing that differs between a laptop, Slurm and Kubernetes. It gets agents running on nodes and
// takes nodes away; it knows nothing of jobs, ranks or faults.
//
// A request names the numbers that the nodes are to get, so asking twice (before and after a crash of the master) is
// the same request, and the provider needs no memory of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/ids.h"

namespace aimaster {

// Lives on the master's thread. An acquired node reports by its agent's connection, not through this class.
class NodeProvider {
 public:
  struct Callbacks {
    std::function<void(std::string reason)> on_denied;           // no other node can be had
    std::function<void(const std::string& trouble)> on_trouble;  // for the log; it is being dealt with
    std::function<void(NodeIndex node, std::string reason)>
        on_lost;  // it is confirmed that nothing runs there any more
  };

  virtual ~NodeProvider() = default;

  // Sees to it that an agent runs for each of these nodes, now and until Release.
  virtual void Acquire(const std::vector<NodeIndex>& nodes) = 0;
  // The node is not needed any more; its agent has been told to leave.
  virtual void Release(NodeIndex node) = 0;
  // The job is over: agents that have not left by themselves are asked to.
  virtual void Dismiss() = 0;
  // Keeps this and later jobs off the node, as far as we may.
  virtual void Isolate(NodeIndex node, const std::string& reason) = 0;
  // The agent is silent. Starts it again where that harms nothing, or reports the node lost.
  virtual void Recover(NodeIndex node, const std::string& reason) = 0;
};

}  // namespace aimaster
