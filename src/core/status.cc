#include "core/status.h"

#include "core/failure.h"
#include "core/names.h"

namespace aimaster {
namespace {

constexpr Names<JobStatus, 9> kJobStatuses{{{JobStatus::kCreating, "Creating"},
                                            {JobStatus::kQueuing, "Queuing"},
                                            {JobStatus::kEnvPreparing, "EnvPreparing"},
                                            {JobStatus::kRunning, "Running"},
                                            {JobStatus::kRestarting, "Restarting"},
                                            {JobStatus::kStopping, "Stopping"},
                                            {JobStatus::kSucceeded, "Succeeded"},
                                            {JobStatus::kFailed, "Failed"},
                                            {JobStatus::kStopped, "Stopped"}}};

constexpr Names<InstanceStatus, 7> kInstanceStatuses{{{InstanceStatus::kPending, "Pending"},
                                                      {InstanceStatus::kStarting, "Starting"},
                                                      {InstanceStatus::kRunning, "Running"},
                                                      {InstanceStatus::kStopping, "Stopping"},
                                                      {InstanceStatus::kSucceeded, "Succeeded"},
                                                      {InstanceStatus::kFailed, "Failed"},
                                                      {InstanceStatus::kStopped, "Stopped"}}};

constexpr Names<Role, 7> kRoles{{{Role::kMaster, "master"},
                                 {Role::kWorker, "worker"},
                                 {Role::kPs, "ps"},
                                 {Role::kChief, "chief"},
                                 {Role::kEvaluator, "evaluator"},
                                 {Role::kLauncher, "launcher"},
                                 {Role::kAimaster, "aimaster"}}};

constexpr Names<Framework, 4> kFrameworks{{{Framework::kPyTorch, "pytorch"},
                                           {Framework::kTensorFlow, "tensorflow"},
                                           {Framework::kMpi, "mpi"},
                                           {Framework::kElasticBatch, "elasticbatch"}}};

constexpr Names<SuccessPolicy, 3> kSuccessPolicies{{{SuccessPolicy::kAuto, "Auto"},
                                                    {SuccessPolicy::kAllWorkers, "AllWorkers"},
                                                    {SuccessPolicy::kChiefWorker, "ChiefWorker"}}};

constexpr Names<StackTool, 5> kStackTools{{{StackTool::kAuto, "auto"},
                                           {StackTool::kPystack, "pystack"},
                                           {StackTool::kPySpy, "py-spy"},
                                           {StackTool::kEuStack, "eu-stack"},
                                           {StackTool::kNone, "none"}}};

constexpr Names<ErrorSource, 9> kErrorSources{{{ErrorSource::kProcess, "process"},
                                               {ErrorSource::kLog, "log"},
                                               {ErrorSource::kHang, "hang"},
                                               {ErrorSource::kExitHang, "exit-hang"},
                                               {ErrorSource::kC4d, "c4d"},
                                               {ErrorSource::kNode, "node"},
                                               {ErrorSource::kPreflight, "preflight"},
                                               {ErrorSource::kProvider, "provider"},
                                               {ErrorSource::kUser, "user"}}};

constexpr Names<Retryable, 3> kRetryables{
    {{Retryable::kYes, "yes"}, {Retryable::kNo, "no"}, {Retryable::kOncePerPlace, "once"}}};

}  // namespace

std::string_view Name(JobStatus status) { return NameIn(kJobStatuses, status); }
std::string_view Name(InstanceStatus status) { return NameIn(kInstanceStatuses, status); }
std::string_view Name(Role role) { return NameIn(kRoles, role); }
std::string_view Name(Framework framework) { return NameIn(kFrameworks, framework); }
std::string_view Name(SuccessPolicy policy) { return NameIn(kSuccessPolicies, policy); }
std::string_view Name(StackTool tool) { return NameIn(kStackTools, tool); }
std::string_view Name(ErrorSource source) { return NameIn(kErrorSources, source); }
std::string_view Name(Retryable retryable) { return NameIn(kRetryables, retryable); }

std::optional<JobStatus> ParseJobStatus(std::string_view name) { return ParseIn(kJobStatuses, name); }
std::optional<InstanceStatus> ParseInstanceStatus(std::string_view name) { return ParseIn(kInstanceStatuses, name); }
std::optional<Role> ParseRole(std::string_view name) { return ParseIn(kRoles, name); }
std::optional<Framework> ParseFramework(std::string_view name) { return ParseIn(kFrameworks, name); }
std::optional<StackTool> ParseStackTool(std::string_view name) { return ParseIn(kStackTools, name); }
std::optional<ErrorSource> ParseErrorSource(std::string_view name) { return ParseIn(kErrorSources, name); }
std::optional<Retryable> ParseRetryable(std::string_view name) { return ParseIn(kRetryables, name); }

bool IsEnd(JobStatus status) {
  return status == JobStatus::kSucceeded || status == JobStatus::kFailed || status == JobStatus::kStopped;
}

}  // namespace aimaster
