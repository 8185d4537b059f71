#include "master/commands.h"

#include <algorithm>
#include <limits>
#include <span>

#include "core/roles.h"
#include "engine/orders.h"
#include "master/mpi_part.h"
#include "master/rank_environment.h"
#include "master/stack_collector.h"

namespace aimaster {
namespace {

// As many as the message holds: some seven weeks mean "for ever" here.
uint32_t Milliseconds(std::chrono::milliseconds time) {
  return static_cast<uint32_t>(std::min<int64_t>(time.count(), std::numeric_limits<uint32_t>::max()));
}

using Commands = std::vector<std::pair<NodeIndex, v1::Command>>;

class Builder {
 public:
  Builder(const JobState& job, std::span<const NodePlace> places, const std::filesystem::path& job_directory)
      : job_(job), places_(places), job_directory_(job_directory) {}

  Commands operator()(const StartInstance& action) {
    v1::StartInstance* start = Add(action.node).mutable_start_instance();
    const InstanceState& instance = job_.instances[Value(action.instance)];
    start->mutable_id()->set_instance(Value(action.instance));
    start->mutable_id()->set_attempt(Value(action.attempt));
    start->set_instance_name(instance.name);
    start->set_round(Value(action.round));
    if (instance.port != 0) {
      if (HoldsPorts(job_)) start->set_own_port(instance.port);
    } else {
      start->set_holds_master_port(Value(instance.first_rank) == 0);
    }
    const std::filesystem::path attempt_directory = job_directory_ / "nodes" / job_.nodes.at(action.node).name /
                                                    instance.name / std::to_string(Value(action.attempt));
    const bool is_mpi = IsMpi(job_.spec);
    if (is_mpi) *start->mutable_mpi() = MakeMpiPart(job_, action);
    for (uint32_t local = 0; local < instance.ranks; ++local) {
      v1::RankLaunch* rank = start->add_ranks();
      rank->set_rank(Value(instance.first_rank) + local);
      rank->set_local(local);
      Environment environment =
          RankEnvironment(job_, places_[Value(action.instance)], action, local, attempt_directory);
      if (is_mpi) AdaptToMpi(job_.spec, environment);
      for (const auto& [name, value] : environment) (*rank->mutable_environment())[name] = value;
    }
    return std::move(commands_);
  }

  Commands operator()(const StopInstance& action) {
    v1::StopInstance* stop = Add(action.node).mutable_stop_instance();
    stop->mutable_id()->set_instance(Value(action.instance));
    stop->mutable_id()->set_attempt(Value(action.attempt));
    stop->set_instance_name(job_.instances[Value(action.instance)].name);
    stop->set_at_once(action.at_once);
    return std::move(commands_);
  }

  Commands operator()(const ReservePort& action) {
    v1::ReservePort* reserve = Add(action.node).mutable_reserve_port();
    reserve->set_reservation(action.reservation);
    reserve->set_hold(action.hold);
    reserve->set_count(action.count);
    return std::move(commands_);
  }

  Commands operator()(const CollectEvidence& action) {
    for (const NodeIndex node : action.nodes) {
      Add(node).mutable_collect_evidence()->set_collection(action.collection);
    }
    return std::move(commands_);
  }

  Commands operator()(const CaptureStacks& action) {
    ForEachNode([&](v1::Command& command) {
      v1::CaptureStacks& capture = *command.mutable_capture_stacks();
      capture.set_capture(action.capture);
      capture.set_tool(std::string(Name(job_.spec.stack_tool)));
      capture.set_timeout_ms(Milliseconds(StackTimeOfTools(job_)));
    });
    return std::move(commands_);
  }

  Commands operator()(const AcquireNodes&) { return {}; }
  Commands operator()(const IsolateNode&) { return {}; }
  Commands operator()(const JudgeFailure&) { return {}; }
  Commands operator()(const ShareRetryableErrors& action) {
    ForEachNode([&](v1::Command& command) {
      for (const std::string& text : action.texts) command.mutable_retryable_errors()->add_texts(text);
    });
    return std::move(commands_);
  }
  Commands operator()(const FinishJob&) {
    ForEachNode([](v1::Command& command) { command.mutable_shutdown(); });
    return std::move(commands_);
  }

 private:
  v1::Command& Add(NodeIndex node) { return commands_.emplace_back(node, v1::Command()).second; }

  template <typename Fill>
  void ForEachNode(Fill fill) {
    for (const auto& [index, node] : job_.nodes) {
      if (node.joined && !node.lost) fill(Add(index));
    }
  }

  const JobState& job_;
  const std::span<const NodePlace> places_;
  const std::filesystem::path& job_directory_;
  Commands commands_;
};

}  // namespace

v1::JobConfig MakeJobConfig(const JobSpec& spec) {
  v1::JobConfig config;
  config.set_job_id(spec.id.text());
  for (const std::string& argument : spec.command) config.add_command(argument);
  for (const auto& [name, value] : BaseEnvironment(spec)) (*config.mutable_environment())[name] = value;
  config.set_working_directory(spec.working_directory);
  config.set_log_directory(spec.log_directory);
  config.set_stop_grace_ms(Milliseconds(spec.timing.stop_grace));
  config.set_orphan_timeout_ms(Milliseconds(spec.timing.orphan_timeout));
  config.set_log_max_bytes(spec.log_max_bytes);
  const FaultToleranceParameters& parameters = spec.fault_tolerance;
  config.set_records_communication(parameters.enable_c4d_hang_detection && parameters.enable_job_hang_detection);
  return config;
}

Commands MakeCommands(const JobState& job, std::span<const NodePlace> places, const Action& action,
                      const std::filesystem::path& job_directory) {
  return std::visit(Builder(job, places, job_directory), action);
}

}  // namespace aimaster
