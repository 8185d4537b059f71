#include "sim/collectives/fault.h"

namespace aimaster::sim::collectives {

std::string_view Name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kHostBefore:
      return "HostBefore";
    case FaultKind::kHostAhead:
      return "HostAhead";
    case FaultKind::kDeviceInside:
      return "DeviceInside";
    case FaultKind::kDeviceBefore:
      return "DeviceBefore";
    case FaultKind::kStopped:
      return "Stopped";
    case FaultKind::kSkipped:
      return "Skipped";
    case FaultKind::kMismatch:
      return "Mismatch";
    case FaultKind::kOppositeOrder:
      return "OppositeOrder";
    case FaultKind::kSlowRank:
      return "SlowRank";
    case FaultKind::kSlowLink:
      return "SlowLink";
  }
  return "fault";
}

}  // namespace aimaster::sim::collectives
