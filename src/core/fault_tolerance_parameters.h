// The fault-tolerance parameters of a job (the values; names, ranges and help texts are in parameter_table.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace aimaster {

enum class ExecutionMode { kSync, kAsync };
enum class FaultTolerantPolicy { kOnFailure, kExitCodeAndErrorMsg, kNever };
enum class C4dLogLevel { kInfo, kWarning, kError };
// What has to stand still for a hang: the output, or the output and the steps that ranks tell through the SDK.
enum class HangRequires { kLog, kLogAndProgress };

struct FaultToleranceParameters {
  ExecutionMode execution_mode = ExecutionMode::kSync;
  bool enable_job_restart = false;
  uint32_t max_num_of_job_restart = 3;
  bool enable_job_hang_detection = false;
  std::chrono::seconds job_hang_interval{1800};
  HangRequires hang_requires = HangRequires::kLog;
  bool enable_c4d_hang_detection = false;
  bool enable_job_exit_hang_detection = false;
  std::chrono::seconds job_exit_hang_interval{600};
  FaultTolerantPolicy fault_tolerant_policy = FaultTolerantPolicy::kExitCodeAndErrorMsg;
  uint32_t max_num_of_same_error = 10;
  double max_tolerated_failure_rate = -1;  // −1: off; else the share of workers, 0 … 1
  C4dLogLevel c4d_log_level = C4dLogLevel::kWarning;
  std::map<std::string, std::string> c4d_common_envs;
  std::chrono::seconds job_restart_timeout{0};  // 0: no limit of its own
  uint32_t no_progress_limit = 0;               // 0: off
  bool operator==(const FaultToleranceParameters&) const = default;
};

}  // namespace aimaster
