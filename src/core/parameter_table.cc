#include "core/parameter_table.h"

#include <algorithm>
#include <concepts>
#include <limits>
#include <type_traits>
#include <utility>

namespace aimaster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

template <typename T>
concept Time = std::same_as<T, seconds> || std::same_as<T, milliseconds>;

template <typename T>
ParameterValue FieldToValue(const T& field) {
  if constexpr (std::is_enum_v<T>) {
    return Choice(std::to_underlying(field));
  } else if constexpr (Time<T>) {
    return milliseconds(field);
  } else if constexpr (std::unsigned_integral<T> && !std::same_as<T, bool>) {
    return static_cast<int64_t>(field);
  } else {
    return field;
  }
}

// The value has been checked against its row, so it fits.
template <typename T>
void ValueToField(const ParameterValue& value, T& field) {
  if constexpr (std::is_enum_v<T>) {
    field = T{static_cast<std::underlying_type_t<T>>(std::get<Choice>(value))};
  } else if constexpr (Time<T>) {
    field = std::chrono::duration_cast<T>(std::get<milliseconds>(value));
  } else if constexpr (std::unsigned_integral<T> && !std::same_as<T, bool>) {
    field = static_cast<T>(std::get<int64_t>(value));
  } else {
    field = std::get<T>(value);
  }
}

template <auto Member>
struct FaultToleranceField {
  static ParameterValue Get(const JobSpec& spec) { return FieldToValue(spec.fault_tolerance.*Member); }
  static void Set(JobSpec& spec, const ParameterValue& value) { ValueToField(value, spec.fault_tolerance.*Member); }
};

template <auto Member>
struct TimingField {
  static ParameterValue Get(const JobSpec& spec) { return FieldToValue(spec.timing.*Member); }
  static void Set(JobSpec& spec, const ParameterValue& value) { ValueToField(value, spec.timing.*Member); }
};

template <auto Member>
struct JobField {
  static ParameterValue Get(const JobSpec& spec) { return FieldToValue(spec.*Member); }
  static void Set(JobSpec& spec, const ParameterValue& value) { ValueToField(value, spec.*Member); }
};

// A field of a role; setting one makes the role when the job has none yet.
template <Role kRole, auto Member>
struct RoleField {
  static constexpr RoleSpec kAbsent{.role = kRole, .count = kRole == Role::kWorker ? 1u : 0u};
  static ParameterValue Get(const JobSpec& spec) {
    const auto role = std::ranges::find(spec.roles, kRole, &RoleSpec::role);
    return FieldToValue((role == spec.roles.end() ? kAbsent : *role).*Member);
  }
  static void Set(JobSpec& spec, const ParameterValue& value) {
    auto role = std::ranges::find(spec.roles, kRole, &RoleSpec::role);
    if (role == spec.roles.end()) role = spec.roles.insert(spec.roles.end(), kAbsent);
    ValueToField(value, (*role).*Member);
  }
};

using OneName = std::array<std::string_view, 1>;
constexpr std::array<std::string_view, 2> kModes = {"Sync", "Async"};
constexpr std::array<std::string_view, 3> kPolicies = {"OnFailure", "ExitCodeAndErrorMsg", "Never"};
constexpr std::array<std::string_view, 3> kLogLevels = {"Info", "Warning", "Error"};
constexpr std::array<std::string_view, 2> kHangRequires = {"log", "log+progress"};
constexpr std::array<std::string_view, 4> kAllowedFrameworks = {"pytorch", "tensorflow", "mpi", "elasticbatch"};
constexpr std::array<std::string_view, 3> kAllowedSuccessPolicies = {"Auto", "AllWorkers", "ChiefWorker"};
constexpr std::array<std::string_view, 5> kAllowedStackTools = {"auto", "pystack", "py-spy", "eu-stack", "none"};
constexpr OneName kModeAliases = {"execution-mode"};
constexpr OneName kHangDetectionAliases = {"enable-log-hang-detection"};
constexpr OneName kHangIntervalAliases = {"log-hang-interval-in-seconds"};
constexpr OneName kExitHangDetectionAliases = {"enable-pod-completed-detection"};
constexpr OneName kExitHangIntervalAliases = {"pod-completed-interval-in-seconds"};
constexpr OneName kFailureRateAliases = {"max-tolerate-failure-rate"};

constexpr int64_t kCountMax = std::numeric_limits<uint32_t>::max();
constexpr int64_t kSecondsMax = milliseconds(kParameterSecondsMax).count();
constexpr std::string_view kHangIntervalRefusal =
    "-1 is for the SDK's reset_config only; to leave the detection off, write --enable-job-hang-detection=False";

template <auto Member>
constexpr Parameter FaultTolerance(Parameter row) {
  row.get = &FaultToleranceField<Member>::Get;
  row.set = &FaultToleranceField<Member>::Set;
  return row;
}

template <auto Member>
constexpr Parameter RunTime(Parameter row) {
  row.group = ParameterGroup::kRun;
  row.type = ParameterType::kSeconds;
  row.resolution = milliseconds{1};
  if (row.maximum == 0) row.maximum = kSecondsMax;
  row.get = &TimingField<Member>::Get;
  row.set = &TimingField<Member>::Set;
  return row;
}

template <auto Member>
constexpr Parameter RunField(Parameter row) {
  row.group = ParameterGroup::kRun;
  row.get = &JobField<Member>::Get;
  row.set = &JobField<Member>::Set;
  return row;
}

template <Role kRole, auto Member>
constexpr Parameter RunRole(Parameter row) {
  row.group = ParameterGroup::kRun;
  row.type = ParameterType::kInteger;
  row.get = &RoleField<kRole, Member>::Get;
  row.set = &RoleField<kRole, Member>::Set;
  return row;
}

constexpr Parameter Ignored(std::string_view name) {
  return {.name = name,
          .help = "Accepted and ignored.",
          .details =
              "A flag of the service whose meaning is not published. It is accepted with or without a value, so "
              "that existing argument strings work unchanged, and has no effect.",
          .example = "True"};
}

using P = FaultToleranceParameters;

constexpr std::array kTable = {
    FaultTolerance<&P::execution_mode>(
        {.name = "job-execution-mode",
         .group = ParameterGroup::kRestart,
         .type = ParameterType::kChoice,
         .help = "Sync restarts the whole job after a failure, Async the failed instance alone.",
         .details = "The kind of job. In a Sync job the instances depend on each other, as in data-parallel training: "
                    "after a retryable error the whole job is restarted. In an Async job a failed worker is restarted "
                    "alone while the others run on; that does not count as a restart of the job. A failed ps or chief "
                    "can't be restarted alone: then the whole job restarts when `--enable-job-restart=True`, and "
                    "fails otherwise.",
         .example = "Sync",
         .aliases = kModeAliases,
         .choices = kModes}),
    FaultTolerance<&P::enable_job_restart>(
        {.name = "enable-job-restart",
         .group = ParameterGroup::kRestart,
         .type = ParameterType::kBool,
         .help = "May the job be restarted after a failure, a hang, an exit hang or a C4D error?",
         .details = "Permission to restart the whole job, when the fault-tolerance conditions hold or when a hang, an "
                    "exit hang or a C4D error is found. Without it, such a hang still gets its call stacks and its "
                    "record; then the job fails with that reason.",
         .example = "True"}),
    FaultTolerance<&P::max_num_of_job_restart>(
        {.name = "max-num-of-job-restart",
         .group = ParameterGroup::kRestart,
         .type = ParameterType::kInteger,
         .help = "How many restarts the job may have; the next failure fails it.",
         .details = "The budget of restarts of the whole job. When it is used up, the next failure that would restart "
                    "the job fails it. With 0 the first one does. Restarts of single workers in an Async job don't "
                    "count.",
         .example = "3",
         .maximum = kCountMax}),
    FaultTolerance<&P::job_restart_timeout>(
        {.name = "job-restart-timeout",
         .group = ParameterGroup::kRestart,
         .type = ParameterType::kSeconds,
         .help = "How long one restart may take until other nodes are tried; 0: no limit.",
         .details = "The time that one restart may take. When it is over, the attempt counts as failed and the next "
                    "set of nodes is tried. 0 sets no limit.",
         .example = "1800",
         .maximum = kSecondsMax}),
    FaultTolerance<&P::fault_tolerant_policy>(
        {.name = "fault-tolerant-policy",
         .group = ParameterGroup::kJudging,
         .type = ParameterType::kChoice,
         .help = "Which failures of instances are worth a restart.",
         .details = "Which failures are retryable. OnFailure: all of them. ExitCodeAndErrorMsg: the exit code and the "
                    "error text decide. Never: none, so the job fails. The policy governs failures of instances only, "
                    "not hangs.",
         .example = "ExitCodeAndErrorMsg",
         .choices = kPolicies}),
    FaultTolerance<&P::max_num_of_same_error>(
        {.name = "max-num-of-same-error",
         .group = ParameterGroup::kJudging,
         .type = ParameterType::kInteger,
         .help = "How often the same error may happen; once more fails the job.",
         .details = "The same error is the same exit code of the same instance. Root causes alone count, over all "
                    "rounds of the job. When one happens more often than this, the job fails.",
         .example = "10",
         .minimum = 1,
         .maximum = kCountMax}),
    FaultTolerance<&P::max_tolerated_failure_rate>(
        {.name = "max-tolerated-failure-rate",
         .group = ParameterGroup::kJudging,
         .type = ParameterType::kReal,
         .help = "The share of workers that may fail by their own fault; -1: no limit.",
         .details = "When more than this share of the workers has failed by its own fault, the job fails: with 0.3 and "
                    "10 workers, at the 4th. Distinct workers count, over the life of the job; those that failed as a "
                    "consequence of another one, or because they were stopped, don't. -1 switches the limit off.",
         .example = "0.3",
         .aliases = kFailureRateAliases,
         .maximum = 1,
         .off = -1}),
    FaultTolerance<&P::no_progress_limit>(
        {.name = "no-progress-limit",
         .group = ParameterGroup::kJudging,
         .type = ParameterType::kInteger,
         .help = "After the same failure this often without progress the job fails; 0: off.",
         .details = "A guard against useless restarts. When the same root cause comes back this many times at the same "
                    "training step, or within the first minute, the job fails with a message that says so. 0 switches "
                    "the guard off. The DLC service has no such parameter.",
         .example = "3",
         .maximum = kCountMax}),
    FaultTolerance<&P::enable_job_hang_detection>(
        {.name = "enable-job-hang-detection",
         .group = ParameterGroup::kHang,
         .type = ParameterType::kBool,
         .help = "Take it for a hang when no instance prints for --job-hang-interval.",
         .details =
             "For Sync jobs. When stdout and stderr of all instances have been silent for `--job-hang-interval`, "
             "the job hangs: its call stacks are taken and it is restarted, or fails where "
             "`--enable-job-restart` does not allow that ([hangs](hangs.md)).",
         .example = "True",
         .aliases = kHangDetectionAliases}),
    FaultTolerance<&P::job_hang_interval>(
        {.name = "job-hang-interval",
         .group = ParameterGroup::kHang,
         .type = ParameterType::kSeconds,
         .help = "How long all instances may be silent.",
         .details = "How long all instances may be silent until the job counts as hanging. Choose it longer than the "
                    "longest quiet stage of the job, such as loading data or writing a checkpoint. A running job can "
                    "change it through the SDK; there alone, -1 switches the detection off for the time being.",
         .example = "1800",
         .aliases = kHangIntervalAliases,
         .minimum = 1000,
         .maximum = kSecondsMax,
         .refusal = kHangIntervalRefusal}),
    FaultTolerance<&P::hang_requires>(
        {.name = "hang-requires",
         .group = ParameterGroup::kHang,
         .type = ParameterType::kChoice,
         .help = "What must stand still for a hang: the output, or the SDK's steps too.",
         .details = "What has to stand still for `--job-hang-interval` until the job hangs. log: the output of all "
                    "instances; what the service does. log+progress: the output, and the steps that ranks tell with "
                    "the SDK's `report_step` as well; a job that is silent but advancing is told of, and left "
                    "running. A job that tells no steps is judged by its output with either.",
         .example = "log+progress",
         .choices = kHangRequires}),
    FaultTolerance<&P::enable_job_exit_hang_detection>(
        {.name = "enable-job-exit-hang-detection",
         .group = ParameterGroup::kHang,
         .type = ParameterType::kBool,
         .help = "Take it for a hang when one instance has ended well and the job does not end.",
         .details = "For Sync jobs. When one instance has ended successfully and the job has not ended within "
                    "`--job-exit-hang-interval`, the others hang at their exit and the job is restarted. Of an "
                    "instance with several ranks the first rank that ends counts. Who has no end of its own (a ps, "
                    "an evaluator, a worker of an MPI job) counts neither as ended nor as waited for.",
         .example = "True",
         .aliases = kExitHangDetectionAliases}),
    FaultTolerance<&P::job_exit_hang_interval>(
        {.name = "job-exit-hang-interval",
         .group = ParameterGroup::kHang,
         .type = ParameterType::kSeconds,
         .help = "How long the job may go on after its first instance ended.",
         .details = "How long the job may go on after the first of its instances has ended successfully.",
         .example = "600",
         .aliases = kExitHangIntervalAliases,
         .minimum = 1000,
         .maximum = kSecondsMax}),
    FaultTolerance<&P::enable_c4d_hang_detection>(
        {.name = "enable-c4d-hang-detection",
         .group = ParameterGroup::kC4d,
         .type = ParameterType::kBool,
         .help = "Find the rank behind a hang by C4D; needs --enable-job-hang-detection=True.",
         .details = "C4D compares the state of the communication of all ranks and says which rank, and so which node, "
                    "holds up the others. A hang in communication that has lasted for `C4D_HANG_TIMEOUT` times "
                    "`C4D_HANG_TIMES`, three minutes, is an error: the job is restarted, and the node of the rank that "
                    "is named is isolated. It takes effect only together with `--enable-job-hang-detection=True`.",
         .example = "True"}),
    FaultTolerance<&P::c4d_log_level>(
        {.name = "c4d-log-level",
         .group = ParameterGroup::kC4d,
         .type = ParameterType::kChoice,
         .help = "What C4D prints: results of this level and of those above it.",
         .details = "What C4D prints: results of this level and of all above it. Info: something is slow. Warning: "
                    "something stands still and a person should look. Error: a communication hang that is acted on.",
         .example = "Warning",
         .choices = kLogLevels}),
    FaultTolerance<&P::c4d_common_envs>(
        {.name = "c4d-common-envs",
         .group = ParameterGroup::kC4d,
         .type = ParameterType::kEnvironment,
         .help = "Settings of C4D, as K=V,K=V.",
         .details = "Settings of C4D, separated by commas; the table below has those that are known. Another name is "
                    "passed on as it is, with a note. A value can't contain a comma.",
         .example = "C4D_HANG_TIMEOUT=10s,C4D_HANG_TIMES=18"}),

    RunField<&JobSpec::framework>(
        {.name = "framework",
         .type = ParameterType::kChoice,
         .help = "What the job is made with: which variables its ranks get, and when it is done.",
         .details = "The framework of the job. Every job gets the variables of PyTorch's launcher; what TensorFlow "
                    "(`TF_CONFIG`) and ElasticBatch (the shard's number) get beside them is in "
                    "[environment](environment.md). In an MPI job the command is an `mpirun` of the user's, which runs "
                    "as the launcher ([MPI](mpi.md)). In an ElasticBatch job the instances are independent: "
                    "`--job-execution-mode` is Async unless it is given, and an instance that has succeeded is never "
                    "started again.",
         .example = "pytorch",
         .choices = kAllowedFrameworks}),
    RunField<&JobSpec::success_policy>(
        {.name = "success-policy",
         .type = ParameterType::kChoice,
         .help = "Whose success is the job's: everybody's, or the chief's alone.",
         .details = "When the job has succeeded. AllWorkers: when all instances have that end by themselves, which a "
                    "ps and an evaluator don't. ChiefWorker: when the chief has; where there is none, the master, else "
                    "the first worker. What still runs then is stopped. Auto is ChiefWorker in a TensorFlow job with a "
                    "chief and ps, whose workers wait for the chief's orders for ever, and AllWorkers in all others.",
         .example = "ChiefWorker",
         .choices = kAllowedSuccessPolicies}),
    RunRole<Role::kWorker, &RoleSpec::count>({.name = "workers",
                                              .help = "How many worker instances the job has.",
                                              .details =
                                                  "The number of worker instances. An instance is what fails and is "
                                                  "restarted as one. In an MPI job: the hosts on which mpirun may "
                                                  "start ranks; without it, that of the launcher alone.",
                                              .example = "8",
                                              .minimum = 1,
                                              .maximum = kWorkersMax}),
    RunRole<Role::kWorker, &RoleSpec::ranks_per_instance>(
        {.name = "nproc-per-node",
         .help = "How many ranks each worker instance has.",
         .details = "The number of training processes of each worker instance. "
                    "The job has `--workers` times this many ranks. In an MPI job: the slots of each worker, or of "
                    "the launcher's host where there are no workers.",
         .example = "4",
         .minimum = 1,
         .maximum = kRanksPerInstanceMax}),
    RunRole<Role::kMaster, &RoleSpec::count>(
        {.name = "master",
         .help = "1: the job has a master beside its workers, which holds rank 0.",
         .details = "Whether the job has an instance of the role master, which holds rank 0 and has as many ranks as "
                    "a worker. All roles run the same command and find their own in `ROLE_NAME`; ranks are numbered "
                    "master, chief, workers, ps, evaluator. In an Async job a failed master restarts the job.",
         .example = "1",
         .maximum = 1}),
    RunRole<Role::kChief, &RoleSpec::count>(
        {.name = "chief",
         .help = "1: the job has a chief beside its workers, as TensorFlow knows it.",
         .details = "Whether the job has an instance of the role chief, which has as many ranks as a worker. In an "
                    "Async job a failed chief restarts the job.",
         .example = "1",
         .maximum = 1}),
    RunRole<Role::kPs, &RoleSpec::count>(
        {.name = "ps",
         .help = "How many parameter servers the job has.",
         .details = "The number of instances of the role ps, of one rank each. A ps serves: when those that do not "
                    "have succeeded it is stopped, and the job has succeeded. In an Async job a failed ps restarts the "
                    "job.",
         .example = "2",
         .maximum = kWorkersMax}),
    RunRole<Role::kEvaluator, &RoleSpec::count>(
        {.name = "evaluator",
         .help = "1: the job has an evaluator beside its workers.",
         .details = "Whether the job has an instance of the role evaluator, of one rank. It looks on: when all others "
                    "have succeeded it is stopped. In an Async job a failed evaluator is restarted alone, as a worker "
                    "is.",
         .example = "1",
         .maximum = 1}),
    RunField<&JobSpec::local_nodes>({.name = "local-nodes",
                                     .type = ParameterType::kInteger,
                                     .help = "How many nodes this machine pretends to be.",
                                     .details = "This machine takes the part of so many nodes, each with an agent of "
                                                "its own. Isolation and replacement of a node can so be tried on one "
                                                "machine.",
                                     .example = "2",
                                     .minimum = 1,
                                     .maximum = 1024}),
    RunField<&JobSpec::devices>({.name = "devices",
                                 .type = ParameterType::kList,
                                 .help = "Device ids to share out over the ranks, as 0,1,2,3.",
                                 .details = "The devices of this machine that the job may use, separated by commas: "
                                            "numbers or the ids that the driver gives. The pretended nodes get "
                                            "disjoint parts of them. Without it the environment is left alone.",
                                 .example = "0,1,2,3"}),
    RunTime<&Timing::stop_grace>({.name = "stop-grace",
                                  .help = "From SIGTERM to SIGKILL when an instance is stopped.",
                                  .details = "How long the processes of an instance have between SIGTERM and SIGKILL, "
                                             "to write a checkpoint, say. 0 kills them at once.",
                                  .example = "30",
                                  .maximum = 86'400'000}),
    RunTime<&Timing::start_timeout>({.name = "start-timeout",
                                     .help = "How long the ranks may take until all gave a first sign of life.",
                                     .details = "How long the stage `ready` may take: from the start of the ranks to "
                                                "the first output of all of them.",
                                     .example = "600",
                                     .minimum = 1}),
    RunTime<&Timing::node_lost_timeout>({.name = "node-lost-timeout",
                                         .help = "How long a node may be silent until it counts as lost.",
                                         .details = "How long nothing may be heard of a node's agent until the node "
                                                    "counts as lost and its ranks as failed.",
                                         .example = "30",
                                         .minimum = 1000}),
    RunTime<&Timing::orphan_timeout>({.name = "orphan-timeout",
                                      .help =
                                          "How long ranks run on without a master before they are stopped; from 1 s "
                                          "to 49 days.",
                                      .details = "When the job's master does not come back within this time, the "
                                                 "agents stop their ranks; where an agent is gone too, the ranks are "
                                                 "stopped without it, a little later. It can't be switched off: more "
                                                 "than 49 days count as 49.",
                                      .example = "600",
                                      .minimum = 1000}),
    RunTime<&Timing::collect_window>({.name = "collect-window",
                                      .help = "How long to wait, after a failure, for what else failed.",
                                      .details = "After a first failure the reports of others are waited for so long, "
                                                 "since the one that is heard of first is not always the cause.",
                                      .example = "0.5"}),
    RunField<&JobSpec::stack_tool>({.name = "stack-tool",
                                    .type = ParameterType::kChoice,
                                    .help = "What takes call stacks: auto, pystack, py-spy, eu-stack or none.",
                                    .details =
                                        "Which tool takes the call stacks of the ranks. auto takes the best that "
                                        "is installed on the node: py-spy, then pystack, for Python; eu-stack, "
                                        "then gdb, for other programs. none takes no stacks at all.",
                                    .example = "py-spy",
                                    .choices = kAllowedStackTools}),
    RunTime<&Timing::stack_timeout>({.name = "stack-timeout",
                                     .help = "How long call stacks of a job that hangs are waited for.",
                                     .details = "How long taking the call stacks of all ranks may last, whatever tools "
                                                "and nodes do. A restart waits no longer than this for them.",
                                     .example = "30",
                                     .minimum = 1000}),
    RunField<&JobSpec::log_max_bytes>({.name = "log-max-bytes",
                                       .type = ParameterType::kBytes,
                                       .help = "The size of each rank's output file, 64M say; 0: no limit.",
                                       .details = "A bound for each output file of a rank; the oldest bytes are freed. "
                                                  "K, M and G stand for 1024, 1024 K and 1024 M. 0 sets no bound.",
                                       .example = "64M",
                                       .maximum = std::numeric_limits<int64_t>::max()}),

    Ignored("enable-local-detection"),
    Ignored("enable-perftracker"),
    Ignored("community-k8s"),
    Ignored("kubeflow"),
    Ignored("aimaster-operator"),
    Ignored("enable-log-redirect-to-nas"),
};

}  // namespace

std::string_view Name(ParameterType type) {
  switch (type) {
    case ParameterType::kBool:
      return "bool";
    case ParameterType::kChoice:
      return "choice";
    case ParameterType::kInteger:
      return "integer";
    case ParameterType::kSeconds:
      return "seconds";
    case ParameterType::kReal:
      return "real";
    case ParameterType::kEnvironment:
      return "environment";
    case ParameterType::kBytes:
      return "bytes";
    case ParameterType::kList:
      return "list";
    case ParameterType::kAny:
      return "any";
  }
  return "unknown";
}

std::string_view Name(ParameterGroup group) {
  switch (group) {
    case ParameterGroup::kRestart:
      return "restart";
    case ParameterGroup::kJudging:
      return "judging";
    case ParameterGroup::kHang:
      return "hang";
    case ParameterGroup::kC4d:
      return "c4d";
    case ParameterGroup::kRun:
      return "run";
    case ParameterGroup::kIgnored:
      return "ignored";
  }
  return "unknown";
}

std::string_view Title(ParameterGroup group) {
  switch (group) {
    case ParameterGroup::kRestart:
      return "Restarting";
    case ParameterGroup::kJudging:
      return "Judging failures";
    case ParameterGroup::kHang:
      return "Hangs";
    case ParameterGroup::kC4d:
      return "C4D";
    case ParameterGroup::kRun:
      return "Options of `aimaster run`";
    case ParameterGroup::kIgnored:
      return "Accepted and ignored";
  }
  return "unknown";
}

std::span<const Parameter> ParameterTable() { return kTable; }

const Parameter* FindParameter(std::string_view name) {
  for (const Parameter& parameter : kTable) {
    if (parameter.name == name || std::ranges::find(parameter.aliases, name) != parameter.aliases.end()) {
      return &parameter;
    }
  }
  return nullptr;
}

ParameterValue DefaultValue(const Parameter& parameter) {
  return parameter.get == nullptr ? ParameterValue(std::vector<std::string>{}) : parameter.get(JobSpec{});
}

}  // namespace aimaster
