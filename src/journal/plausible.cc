#include "journal/plausible.h"

#include "core/parameter_table.h"

namespace aimaster {
namespace {

// From 1896 to 2116: the difference of any two, and the sum with any time that a person may set, fit into 64 bits.
constexpr Duration kTimeMin{-(int64_t{1} << 61)}, kTimeMax{int64_t{1} << 62};

std::unexpected<Error> Implausible(const std::string& what) {
  return Fail(ErrorKind::kEnvironment, "damaged: " + what);
}

bool IsPlausible(Duration time) { return time >= kTimeMin && time <= kTimeMax; }
bool IsPlausible(const std::optional<Wall>& time) { return !time || IsPlausible(time->since_epoch); }
bool IsPlausible(const Moment& moment) {
  return IsPlausible(moment.monotonic.since_origin) && IsPlausible(moment.wall.since_epoch);
}
bool IsPlausible(const RankFailure& failure) {
  return IsPlausible(failure.exit ? std::optional(failure.exit->time) : std::nullopt) &&
         IsPlausible(failure.dump_start) && IsPlausible(failure.error_file_time) &&
         IsPlausible(failure.clock_uncertainty);
}

}  // namespace

Status CheckPlausible(const JobSpec& spec) {
  uint64_t instances = 0, ranks = 0;
  for (const RoleSpec& role : spec.roles) {
    if (role.ranks_per_instance > kRanksPerInstanceMax) return Implausible("too many ranks of an instance");
    instances += role.count;
    ranks += uint64_t{role.count} * role.ranks_per_instance;
  }
  if (instances == 0 || ranks == 0) return Implausible("a job without instances");
  if (instances > kRanksOfJobMax || ranks > kRanksOfJobMax || spec.local_nodes > kNodesOfJobMax) {
    return Implausible("a job of more ranks or nodes than a master can hold");
  }
  for (const auto time : {spec.timing.stop_grace, spec.timing.start_timeout, spec.timing.node_lost_timeout,
                          spec.timing.orphan_timeout, spec.timing.collect_window, spec.timing.stack_timeout}) {
    if (time.count() < 0 || time > kParameterSecondsMax) return Implausible("a time of the job's timing");
  }
  return IsPlausible(spec.create_time.since_epoch) ? Status() : Implausible("the time of its creation");
}

Status CheckPlausible(const Input& input) {
  if (!IsPlausible(input.at)) return Implausible("a time that no clock shows");
  if (const auto* submitted = std::get_if<JobSubmitted>(&input.event)) return CheckPlausible(submitted->spec);
  if (const auto* failed = std::get_if<RankFailed>(&input.event); failed && !IsPlausible(failed->failure)) {
    return Implausible("a time that no clock shows");
  }
  if (const auto* hang = std::get_if<HangFound>(&input.event)) {
    for (const Duration time : {hang->lasts, hang->interval, hang->quietest_for}) {
      if (time < Duration::zero() || !IsPlausible(time)) return Implausible("how long a job has been hanging");
    }
  }
  if (const auto* judged = std::get_if<CommunicationJudged>(&input.event)) {
    for (const CommunicationVerdict& verdict : judged->verdicts) {
      if (verdict.lasts < Duration::zero() || !IsPlausible(verdict.lasts)) {
        return Implausible("how long a communication has been hanging");
      }
    }
  }
  return {};
}

}  // namespace aimaster
