#include "c4d/observation.h"
#include "c4d/verdict.h"

namespace aimaster::c4d {

std::string_view Name(Function function) {
  switch (function) {
    case Function::kAllReduce:
      return "AllReduce";
    case Function::kAllGather:
      return "AllGather";
    case Function::kReduceScatter:
      return "ReduceScatter";
    case Function::kBroadcast:
      return "Broadcast";
    case Function::kReduce:
      return "Reduce";
    case Function::kAllToAll:
      return "AllToAll";
    case Function::kGather:
      return "Gather";
    case Function::kScatter:
      return "Scatter";
    case Function::kScan:
      return "Scan";
    case Function::kBarrier:
      return "Barrier";
    case Function::kSend:
      return "Send";
    case Function::kReceive:
      return "Receive";
    case Function::kOtherCollective:
      return "collective";
  }
  return "collective";
}

std::string_view Name(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kRankCommHang:
      return "RankCommHang";
    case VerdictKind::kRankNonCommHang:
      return "RankNonCommHang";
    case VerdictKind::kRankCommSlow:
      return "RankCommSlow";
    case VerdictKind::kRankNonCommSlow:
      return "RankNonCommSlow";
    case VerdictKind::kCollectiveMismatch:
      return "CollectiveMismatch";
    case VerdictKind::kCyclicWait:
      return "CyclicWait";
    case VerdictKind::kNoProbeData:
      return "NoProbeData";
  }
  return "unknown";
}

std::string_view Name(Level level) {
  switch (level) {
    case Level::kInfo:
      return "Info";
    case Level::kWarning:
      return "Warning";
    case Level::kError:
      return "Error";
  }
  return "unknown";
}

}  // namespace aimaster::c4d
