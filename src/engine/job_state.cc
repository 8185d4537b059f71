#include "engine/job_state.h"

namespace aimaster {

std::string_view Name(Stage stage) {
  switch (stage) {
    case Stage::kDetect:
      return "detect";
    case Stage::kCollect:
      return "collect";
    case Stage::kDecide:
      return "decide";
    case Stage::kStop:
      return "stop";
    case Stage::kWait:
      return "wait";
    case Stage::kIsolate:
      return "isolate";
    case Stage::kAcquire:
      return "acquire";
    case Stage::kStart:
      return "start";
    case Stage::kReady:
      return "ready";
  }
  return "unknown";
}

std::string_view Name(Renewal renewal) {
  switch (renewal) {
    case Renewal::kNone:
      return "none";
    case Renewal::kFailed:
      return "failed";
    case Renewal::kStopping:
      return "stopping";
    case Renewal::kPausing:
      return "pausing";
    case Renewal::kWaiting:
      return "waiting";
  }
  return "unknown";
}

std::string_view Name(RoundResult result) {
  switch (result) {
    case RoundResult::kRunning:
      return "Running";
    case RoundResult::kSucceeded:
      return "Succeeded";
    case RoundResult::kFailed:
      return "Failed";
    case RoundResult::kStopped:
      return "Stopped";
  }
  return "unknown";
}

std::string_view Name(RestartResult result) {
  switch (result) {
    case RestartResult::kRestarting:
      return "Restarting";
    case RestartResult::kRestarted:
      return "Restarted";
    case RestartResult::kFailed:
      return "Failed";
    case RestartResult::kStopped:
      return "Stopped";
  }
  return "unknown";
}

}  // namespace aimaster
