#include "journal/job_json.h"

#include <filesystem>

#include "core/job_spec.h"
#include "core/parameter_parser.h"

namespace aimaster {
namespace {

using nlohmann::json;

json Time(const Wall& time) { return time.since_epoch.count() == 0 ? json(nullptr) : json(FormatRfc3339(time)); }
json Time(const std::optional<Wall>& time) { return time ? Time(*time) : json(nullptr); }
json Milliseconds(const std::optional<Duration>& duration) {
  return duration ? json(ToMilliseconds(*duration)) : json(nullptr);
}

template <typename T>
json OrNull(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

// The exit status where a process's exit is the cause; where none is, the fault's name.
json ErrorCode(const std::optional<int>& code, const std::string& fault) { return code ? json(*code) : json(fault); }

json Details(const JobSnapshot& snapshot, const RestartRecord& record) {
  json details = json::array();
  for (const FailureDetail& detail : InstanceDetails(record)) {
    const bool exited = detail.error_code != 0;
    details.push_back({{"node", NodeNameOf(snapshot, detail.node)},
                       {"instance", InstanceNameOf(snapshot, detail.instance)},
                       {"rank", Value(detail.rank)},
                       {"code", ErrorCode(exited ? std::optional(detail.error_code) : std::nullopt, detail.fault)},
                       {"fault", detail.fault},
                       {"message", detail.message},
                       {"source", Name(detail.source)},
                       {"root", detail.is_root},
                       {"isolated", WasIsolated(record, detail)}});
    if (detail.mpi_rank) details.back()["mpi_rank"] = *detail.mpi_rank;  // of MPI jobs alone
  }
  return details;
}

// Of a hang: the ranks that keep the others waiting, where the call stacks name some.
json Culprits(const Judgement& judgement) {
  json ranks = json::array();
  if (!IsHang(judgement) || !judgement.root_rank) return ranks;
  for (const FailureDetail& detail : judgement.details) ranks.push_back(Value(detail.rank));
  return ranks;
}

// Where the output of its last attempt is; null before the first.
json LogDirectory(const JobDirectory& directory, const JobSpec& spec, const std::string& node,
                  const InstanceState& instance) {
  if (instance.starts == 0) return nullptr;
  return AttemptDirectory(directory, spec, node, instance.name, instance.attempt).string();
}

json Instance(const JobDirectory& directory, const JobSpec& spec, const JobSnapshot& snapshot,
              const InstanceState& instance) {
  const std::string node = NodeNameOf(snapshot, instance.node);
  return {{"name", instance.name},
          {"role", Name(instance.role)},
          {"index", instance.index_in_role},
          {"node", node},
          {"status", Name(instance.status)},
          {"attempt", Value(instance.attempt)},
          {"exit_code", OrNull(instance.exit_code)},
          {"signal", OrNull(instance.signal)},
          {"first_rank", Value(instance.first_rank)},
          {"ranks", instance.ranks},
          {"log_directory", LogDirectory(directory, spec, node, instance)}};
}

json MasterInstance(const JobDirectory& directory, const JobId& id, const JobSnapshot& snapshot, bool alive) {
  const Result<MasterAddress> address = directory.ReadMasterAddress();
  const bool ended = IsEnd(snapshot.summary.status);
  return {{"name", MasterInstanceName(id)},
          {"role", Name(Role::kAimaster)},
          {"index", 0},
          {"node", address ? address->node : ""},
          {"status", Name(ended   ? InstanceStatus::kSucceeded
                          : alive ? InstanceStatus::kRunning
                                  : InstanceStatus::kFailed)},
          {"attempt", Value(snapshot.summary.epoch) == 0 ? 0 : Value(snapshot.summary.epoch) - 1},
          {"exit_code", ended ? json(0) : json(nullptr)},
          {"signal", nullptr},
          {"log_directory", directory.path().string()}};
}

}  // namespace

std::filesystem::path AttemptDirectory(const JobDirectory& directory, const JobSpec& spec, const std::string& node,
                                       const std::string& instance, Attempt attempt) {
  if (spec.log_directory.empty()) return directory.attempt(node, instance, attempt);
  return std::filesystem::path(spec.log_directory) / instance / std::to_string(Value(attempt));
}

std::filesystem::path FileOf(const JobDirectory& directory, const JobSpec& spec, const JobSnapshot& snapshot,
                             const TellingLine& line) {
  const std::string node = NodeNameOf(snapshot, line.node), instance = InstanceNameOf(snapshot, line.instance);
  return AttemptDirectory(directory, spec, node, instance, line.attempt) / line.match.file;
}

std::string MasterInstanceName(const JobId& job) { return InstanceName(job, Role::kAimaster, 0); }

json ListJson(const std::vector<ListedJob>& jobs) {
  json list = json::array();
  for (const ListedJob& job : jobs) {
    json row{{"job_id", job.spec.id.text()},           {"name", job.spec.name},
             {"status", Name(job.summary.status)},     {"restarts", job.summary.restarts},
             {"framework", Name(job.spec.framework)},  {"create_time", Time(job.spec.create_time)},
             {"end_time", Time(job.summary.end_time)}, {"reason_message", job.summary.reason_message}};
    if (!job.problem.empty()) row["problem"] = job.problem;
    list.push_back(std::move(row));
  }
  return list;
}

json GetJson(const JobDirectory& directory, const JobSpec& spec, const JobSnapshot& snapshot) {
  const Result<MasterAddress> master = directory.FindLiveMaster();
  json instances = json::array();
  for (const InstanceState& instance : snapshot.instances) {
    instances.push_back(Instance(directory, spec, snapshot, instance));
  }
  instances.push_back(MasterInstance(directory, spec.id, snapshot, master.has_value()));
  json nodes = json::array();
  for (const auto& [index, node] : snapshot.nodes) {
    nodes.push_back({{"name", node.name},
                     {"address", node.address},
                     {"joined", node.joined},
                     {"lost", node.lost},
                     {"isolated", node.isolated},
                     {"isolation_reason", node.isolation_reason}});
  }
  const JobSummary& summary = snapshot.summary;
  return {{"job_id", spec.id.text()},
          {"name", spec.name},
          {"status", Name(summary.status)},
          {"framework", Name(spec.framework)},
          {"command", spec.command},
          {"parameters", FormatParameters(spec.fault_tolerance)},
          {"restarts", summary.restarts},
          {"max_restarts", spec.fault_tolerance.max_num_of_job_restart},
          {"round", Value(summary.round)},
          {"epoch", Value(summary.epoch)},
          {"master_pid", master ? json(master->pid) : json(nullptr)},
          {"master_port", summary.master_port == 0 ? json(nullptr) : json(summary.master_port)},
          {"instances", std::move(instances)},
          {"nodes", std::move(nodes)},
          {"reason_code", summary.reason_code},
          {"reason_message", summary.reason_message},
          {"exit_code", IsEnd(summary.status) ? json(summary.exit_code) : json(nullptr)},
          {"create_time", Time(spec.create_time)},
          {"running_time", Time(summary.running_time)},
          {"end_time", Time(summary.end_time)},
          {"job_directory", directory.path().string()}};
}

json RecordsJson(const JobSnapshot& snapshot) {
  json records = json::array();
  for (const RestartRecord& record : snapshot.records) {
    const Judgement& judgement = record.judgement;
    records.push_back({{"restarts", record.restarts},
                       {"restart_time", Time(record.restart_time.wall)},
                       {"node_name", record.node_name},
                       {"instance_name", record.instance_name},
                       {"error_code", ErrorCode(judgement.error_code, judgement.fault)},
                       {"error_message", judgement.message},
                       {"error_source", Name(judgement.source)},
                       {"reason", record.reason},
                       {"result", Name(record.result)},
                       {"duration_ms", Milliseconds(record.duration)},
                       {"round", Value(record.round)},
                       {"rank", judgement.root_rank ? json(Value(*judgement.root_rank)) : json(nullptr)},
                       {"fault", judgement.fault},
                       {"category", judgement.category},
                       {"scope", record.scope == RestartScope::kJob ? "job" : "instance"},
                       {"isolated", record.isolated_node},
                       {"failed_ranks", judgement.failed_ranks},
                       {"culprits", Culprits(judgement)},
                       {"stacks", judgement.stacks.empty() ? json(nullptr) : json(judgement.stacks)},
                       {"advised_job_hang_interval",
                        judgement.advised_interval ? json(judgement.advised_interval->count()) : json(nullptr)},
                       {"details", Details(snapshot, record)}});
  }
  return records;
}

json AggregateJson(const std::vector<AggregatedFault>& faults) {
  json list = json::array();
  for (const AggregatedFault& fault : faults) {
    json sources = json::array();
    for (const ErrorSource source : fault.sources) sources.push_back(Name(source));
    list.push_back({{"fault", fault.fault},
                    {"node", fault.node_name},
                    {"instance", fault.instance_name},
                    {"count", fault.count},
                    {"roots", fault.roots},
                    {"consequences", fault.count - fault.roots},
                    {"isolations", fault.isolations},
                    {"ranks", fault.ranks},
                    {"codes", fault.codes},
                    {"sources", std::move(sources)},
                    {"message", fault.message},
                    {"first_time", Time(fault.first_time)},
                    {"last_time", Time(fault.last_time)}});
  }
  return list;
}

json RoundsJson(const JobSnapshot& snapshot) {
  json rounds = json::array();
  for (const RoundState& round : snapshot.rounds) {
    json stages = json::array();
    for (const StageTime& stage : round.stages) {
      stages.push_back({{"name", Name(stage.stage)},
                        {"start_time", Time(stage.start.wall)},
                        {"duration_ms", Milliseconds(stage.duration)}});
    }
    rounds.push_back({{"round", Value(round.round)},
                      {"start_time", Time(round.start.wall)},
                      {"end_time", Time(round.end)},
                      {"result", Name(round.result)},
                      {"reason", round.reason},
                      {"checkpoint_step", round.checkpoint ? json(round.checkpoint->step) : json(nullptr)},
                      {"checkpoint_time", Time(round.checkpoint ? std::optional(round.checkpoint->at) : std::nullopt)},
                      {"stages", std::move(stages)}});
  }
  return rounds;
}

json GoodputJson(const Goodput& goodput) {
  json lost = json::array();
  for (const LostTime& one : goodput.lost) {
    lost.push_back({{"cause", one.cause},
                    {"times", one.times},
                    {"lost_ms", ToMilliseconds(one.total())},
                    {"restarting_ms", ToMilliseconds(one.restarting)},
                    {"done_again_ms", ToMilliseconds(one.redone)}});
  }
  return {{"goodput", goodput.share()},
          {"wall_ms", ToMilliseconds(goodput.wall)},
          {"productive_ms", ToMilliseconds(goodput.productive)},
          {"checkpoints_told", goodput.knows_checkpoints},
          {"lost", std::move(lost)}};
}

json ExplainJson(const std::vector<Decision>& decisions) {
  json list = json::array();
  for (const Decision& decision : decisions) {
    list.push_back({{"time", Time(decision.at.wall)},
                    {"round", Value(decision.round)},
                    {"decision", decision.kind},
                    {"summary", decision.summary},
                    {"reasons", decision.reasons}});
  }
  return list;
}

}  // namespace aimaster
