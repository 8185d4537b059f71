// Actions: what the engine wants done. Each is idempotent and named by ids that never repeat (instance and attempt,
// reservation, collection), so that doing one twice, before and after a crash, does no harm.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/failure.h"
#include "core/ids.h"
#include "core/status.h"

namespace aimaster {

struct AcquireNodes {            // the provider answers with NodeJoined or NodeDenied
  std::vector<NodeIndex> nodes;  // the numbers that the new nodes get
  std::vector<NodeIndex> avoid;  // isolated ones
  bool operator==(const AcquireNodes&) const = default;
};
struct IsolateNode {
  NodeIndex node{};
  std::string reason;
  bool operator==(const IsolateNode&) const = default;
};
struct ReservePort {  // answered by PortReserved or PortRefused
  uint32_t reservation = 0;
  NodeIndex node{};
  bool hold = true;    // keep them bound until somebody listens
  uint32_t count = 1;  // one for MASTER_PORT, or one for each instance there that has an address of its own
  bool operator==(const ReservePort&) const = default;
};
struct StartInstance {
  InstanceIndex instance{};
  Attempt attempt{};
  NodeIndex node{};
  Round round{};
  uint32_t restart_count = 0;
  std::string master_address;
  uint16_t master_port = 0;
  bool operator==(const StartInstance&) const = default;
};
struct StopInstance {
  InstanceIndex instance{};
  Attempt attempt{};
  NodeIndex node{};
  bool at_once = false;
  bool operator==(const StopInstance&) const = default;
};
struct CollectEvidence {
  uint32_t collection = 0;
  std::vector<NodeIndex> nodes;
  bool operator==(const CollectEvidence&) const = default;
};
struct JudgeFailure {  // run the detector over Engine::job().failures; answered by FailureJudged
  uint32_t judgement_number = 0;
  bool apart = false;  // each failed instance by itself
  bool operator==(const JudgeFailure&) const = default;
};
// All ranks of all nodes at once; answered by StacksCaptured, of the same number. Nothing is stopped for it.
struct CaptureStacks {
  uint32_t capture = 0;
  std::string reason;  // for people
  bool operator==(const CaptureStacks&) const = default;
};
struct ShareRetryableErrors {  // agents look for them; one that connects later is told with its welcome
  std::vector<std::string> texts;
  bool operator==(const ShareRetryableErrors&) const = default;
};
struct FinishJob {  // agents may go, the master may exit
  bool operator==(const FinishJob&) const = default;
};

using Action = std::variant<AcquireNodes, IsolateNode, ReservePort, StartInstance, StopInstance, CollectEvidence,
                            JudgeFailure, CaptureStacks, ShareRetryableErrors, FinishJob>;

}  // namespace aimaster
