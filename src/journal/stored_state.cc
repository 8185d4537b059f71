#include "journal/stored_state.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/layout.h"
#include "journal/plausible.h"

namespace aimaster {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

std::string ToHex(const std::vector<bool>& bits) {
  std::string text((bits.size() + 3) / 4, '0');
  for (size_t digit = 0; digit < text.size(); ++digit) {
    unsigned value = 0;
    for (size_t i = 0; i < 4 && digit * 4 + i < bits.size(); ++i)
      value |= static_cast<unsigned>(bits[digit * 4 + i]) << i;
    text[digit] = kDigits[value];
  }
  return text;
}

bool FromHex(std::string_view text, std::vector<bool>& bits) {
  if (text.size() != (bits.size() + 3) / 4) return false;
  for (size_t i = 0; i < bits.size(); ++i) {
    const size_t value = kDigits.find(text[i / 4]);
    if (value == std::string_view::npos) return false;
    bits[i] = (value >> (i % 4) & 1) != 0;
  }
  return true;
}

std::unexpected<Error> DoesNotFit(const std::string& what) {
  return Fail(ErrorKind::kEnvironment, "the stored state does not fit together: " + what);
}

Status CheckRows(const JobSpec& spec, const StoredState& stored) {
  const StateRest& rest = stored.rest;
  if (stored.instances.size() != rest.instances || stored.nodes.size() != rest.nodes ||
      stored.rounds.size() != rest.rounds || stored.records.size() != rest.records ||
      stored.failures.size() != rest.failures) {
    return DoesNotFit("rows are missing");
  }
  if (rest.progress.phase == Phase::kNew) return {};
  const std::vector<InstanceState> layout = LayOutInstances(spec);
  if (stored.instances.size() != layout.size()) return DoesNotFit("it has another number of instances than the job");
  if (stored.rounds.empty()) return DoesNotFit("it has no round");
  for (size_t i = 0; i < layout.size(); ++i) {
    const InstanceState& instance = stored.instances[i];
    if (instance.first_rank != layout[i].first_rank || instance.ranks != layout[i].ranks) {
      return DoesNotFit("instance " + std::to_string(i) + " has other ranks than the job gives it");
    }
    if (!stored.nodes.contains(instance.node)) return DoesNotFit("an instance is on a node that there is not");
    if (instance.own && instance.own->open_record && *instance.own->open_record >= rest.records) {
      return DoesNotFit("an instance names a record that there is not");
    }
    if (instance.own && instance.own->first_local_rank.value_or(0) > kRanksOfJobMax) {
      return DoesNotFit("the place of an instance on its node");
    }
  }
  const bool is_placed = std::ranges::all_of(rest.placement, [&](NodeIndex n) { return stored.nodes.contains(n); });
  if (!is_placed || (!rest.placement.empty() && rest.placement.size() != SlotCount(spec))) {
    return DoesNotFit("which node instances are started on");
  }
  const uint32_t ranks = WorldSize(spec);
  for (const RankFailure& failure : stored.failures) {
    if (Value(failure.rank) >= ranks || Value(failure.instance) >= layout.size()) {
      return DoesNotFit("a rank failed that there is not");
    }
    if (!CheckPlausible(Input{{}, RankFailed{failure}})) return DoesNotFit("the time of a failure");
  }
  if (const auto& hang = rest.progress.hang; hang && hang->quietest && Value(*hang->quietest) >= ranks) {
    return DoesNotFit("a rank hangs that there is not");
  }
  for (const CommunicationVerdict& verdict : rest.progress.communication) {
    if (std::ranges::any_of(verdict.instances, [&](InstanceIndex i) { return Value(i) >= layout.size(); })) {
      return DoesNotFit("an instance communicates that there is not");
    }
    if (!verdict.instances.empty() && verdict.instances.size() != verdict.ranks.size()) {
      return DoesNotFit("where ranks are that communicate");
    }
  }
  if (std::ranges::any_of(rest.progress.dumping_core, [&](Rank rank) { return Value(rank) >= ranks; }) ||
      std::ranges::any_of(rest.progress.failed_workers, [&](InstanceIndex i) { return Value(i) >= layout.size(); })) {
    return DoesNotFit("it names a rank or an instance that there is not");
  }
  return {};
}

// Every time of it may be subtracted from every other.
Status CheckTimes(const StoredState& stored) {
  const StateRest& rest = stored.rest;
  std::vector<Moment> moments{rest.progress.submit_time, rest.progress.failure_began, {rest.progress.stop_began, {}}};
  for (const auto& deadline :
       {rest.progress.deadlines.collect, rest.progress.deadlines.collect_cap, rest.progress.deadlines.start,
        rest.progress.deadlines.stop, rest.progress.deadlines.wait, rest.progress.ranks_started,
        rest.progress.not_before, rest.progress.first_success, rest.progress.told_advancing}) {
    if (deadline) moments.push_back({*deadline, {}});
  }
  for (const InstanceState& instance : stored.instances) {
    if (!instance.own) continue;
    moments.push_back({instance.own->start, {}});
    moments.push_back({instance.own->stop_began, {}});
    for (const auto& time : {instance.own->deadline, instance.own->not_before}) {
      if (time) moments.push_back({*time, {}});
    }
  }
  for (const StageTime& stage : rest.progress.pending_stages) moments.push_back(stage.start);
  for (const RoundState& round : stored.rounds) {
    moments.push_back(round.start);
    for (const StageTime& stage : round.stages) moments.push_back(stage.start);
  }
  for (const RestartRecord& record : stored.records) moments.push_back(record.began);
  if (rest.progress.hang && !CheckPlausible(Input{{}, *rest.progress.hang})) return DoesNotFit("how long it hangs");
  for (const Moment& moment : moments) {
    if (!CheckPlausible(Input{moment, Tick{}})) return DoesNotFit("a time that no clock shows");
  }
  return {};
}

}  // namespace

StateRest RestOf(const JobState& job) {
  return {job,
          job.placement,
          ToHex(job.rank_ended),
          static_cast<uint32_t>(job.instances.size()),
          static_cast<uint32_t>(job.nodes.size()),
          static_cast<uint32_t>(job.rounds.size()),
          static_cast<uint32_t>(job.records.size()),
          static_cast<uint32_t>(job.failures.size())};
}

StoredState StoreState(const JobState& job) {
  return {RestOf(job), job.instances, job.nodes, job.rounds, job.records, job.failures};
}

Result<JobState> RestoreState(const JobSpec& spec, StoredState stored) {
  if (const Status plausible = CheckPlausible(spec); !plausible) return std::unexpected(plausible.error());
  for (const Status& fits : {CheckRows(spec, stored), CheckTimes(stored)}) {
    if (!fits) return std::unexpected(fits.error());
  }
  StateRest& rest = stored.rest;
  JobState job;
  job.spec = spec;
  static_cast<JobProgress&>(job) = std::move(rest.progress);
  job.instances = std::move(stored.instances);
  job.nodes = std::move(stored.nodes);
  job.rounds = std::move(stored.rounds);
  job.records = std::move(stored.records);
  job.failures = std::move(stored.failures);
  job.placement = rest.placement;
  if (job.phase != Phase::kNew) {
    for (size_t i = 0; i < job.instances.size(); ++i) {
      const InstanceIndex index{static_cast<uint32_t>(i)};
      job.instance_of_rank.insert(job.instance_of_rank.end(), job.instances[i].ranks, index);
      // A slot holds at least one instance, which was where its slot is while instances moved together only.
      if (rest.placement.empty() && SlotOf(spec, index) == job.placement.size()) {
        job.placement.push_back(job.instances[i].node);
      }
    }
    job.rank_ended.resize(job.instance_of_rank.size());
  }
  if (!FromHex(rest.ranks_ended, job.rank_ended)) return DoesNotFit("which ranks have ended");
  return job;
}

}  // namespace aimaster
