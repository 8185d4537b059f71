// Status: the states that people and scripts see, and their exact names (compatible with the DLC API).
#pragma once

#include <optional>
#include <string_view>

namespace aimaster {

enum class JobStatus {
  kCreating,
  kQueuing,
  kEnvPreparing,
  kRunning,
  kRestarting,
  kStopping,
  kSucceeded,
  kFailed,
  kStopped
};

enum class InstanceStatus {
  kPending,    // waits for a node, a port or its turn
  kStarting,   // its agent was told to start it
  kRunning,    // its processes run
  kStopping,   // it was told to stop
  kSucceeded,  // all its ranks ended with 0
  kFailed,     // a rank ended with something else, or its shim was lost
  kStopped,    // ended because we stopped it
};

enum class Role { kMaster, kWorker, kPs, kChief, kEvaluator, kLauncher, kAimaster };

enum class Framework { kPyTorch, kTensorFlow, kMpi, kElasticBatch };

// Whose success is the job's.
enum class SuccessPolicy {
  kAuto,         // the chief's where the others only serve it, everybody's else
  kAllWorkers,   // that of all who have an end of their own
  kChiefWorker,  // the chief's alone
};

// What takes call stacks on the nodes; kAuto: the best that is there.
enum class StackTool { kAuto, kPystack, kPySpy, kEuStack, kNone };

std::string_view Name(JobStatus status);       // "Running"
std::string_view Name(InstanceStatus status);  // "Running"
std::string_view Name(Role role);              // "worker"
std::string_view Name(Framework framework);    // "pytorch"
std::string_view Name(SuccessPolicy policy);   // "AllWorkers"
std::string_view Name(StackTool tool);         // "py-spy"

std::optional<JobStatus> ParseJobStatus(std::string_view name);
std::optional<InstanceStatus> ParseInstanceStatus(std::string_view name);
std::optional<Role> ParseRole(std::string_view name);
std::optional<Framework> ParseFramework(std::string_view name);
std::optional<StackTool> ParseStackTool(std::string_view name);

// Succeeded, Failed or Stopped: nothing changes any more.
bool IsEnd(JobStatus status);

}  // namespace aimaster
