// StackCollector: puts the stacks of all nodes together. It waits for those nodes that have live ranks, and no longer
// than it may; whose node does not answer is in the capture all the same, with that as the reason. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "aimaster/v1/agent.pb.h"
#include "core/time.h"
#include "engine/action.h"
#include "engine/input.h"
#include "engine/job_state.h"
#include "stacks/capture.h"

namespace aimaster {

// Of --stack-timeout: what agents have for their tools, and when nodes are not waited for any longer. The rest is for
// putting it together and storing it; at the end of it the engine goes on without.
inline constexpr double kStackShareOfTools = 0.75;
inline constexpr double kStackShareOfNodes = 0.95;

std::chrono::milliseconds StackTimeOfTools(const JobState& job);

class StackCollector {
 public:
  // What was under way is dropped.
  void Begin(Moment now, const CaptureStacks& order, const JobState& job);
  // Answers of another capture, or of nodes that are not waited for, change nothing.
  void Add(NodeIndex node, const v1::StacksCaptured& report);
  void Lose(NodeIndex node, const std::string& why);

  // When it is to be taken as it is.
  std::optional<Monotonic> deadline() const { return deadline_; }
  // The capture, once all have answered or the time has come; and then it is over.
  std::optional<stacks::Capture> TakeWhenDue(Monotonic now);

 private:
  struct Awaited {
    std::string name;
    std::vector<std::pair<std::string, uint32_t>> ranks;  // with their instances
  };
  void AddWithout(const Awaited& node, const std::string& why);

  std::optional<Monotonic> deadline_;  // none: nothing is under way
  uint32_t number_ = 0;
  std::string reason_;
  Wall began_;
  std::map<NodeIndex, Awaited> awaited_;
  stacks::CaptureBuilder builder_;
};

// The first rank of each instance and how many it has, by the instance's name.
using RanksOfInstances = std::map<std::string, std::pair<Rank, uint32_t>, std::less<>>;
RanksOfInstances GetRanksOfInstances(const JobState& job);

// What the engine is told of it. A launcher that a rank has started (mpirun, torchrun) gives numbers of its own to
// those beneath it, and the capture has those; a culprit is the rank of the job that it belongs to, and who may belong
// to several is left out.
StacksCaptured SummarizeStacks(const stacks::Capture& capture, std::string path, const RanksOfInstances& instances);

}  // namespace aimaster
