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
  if (rest.phase == Phase::kNew) return {};
  const std::vector<InstanceState> layout = LayOutInstances(spec);
  if (stored.instances.size() != layout.size()) return DoesNotFit("it has another number of instances than the job");
  if (stored.rounds.empty()) return DoesNotFit("it has no round");
  for (size_t i = 0; i < layout.size(); ++i) {
    const InstanceState& instance = stored.instances[i];
    if (instance.first_rank != layout[i].first_rank || instance.ranks != layout[i].ranks) {
      return DoesNotFit("instance " + std::to_string(i) + " has other ranks than the job gives it");
    }
    if (!stored.nodes.contains(instance.node)) return DoesNotFit("an instance is on a node that there is not");
  }
  const uint32_t ranks = WorldSize(spec);
  for (const RankFailure& failure : stored.failures) {
    if (Value(failure.rank) >= ranks || Value(failure.instance) >= layout.size()) {
      return DoesNotFit("a rank failed that there is not");
    }
    if (!CheckPlausible(Input{{}, RankFailed{failure}})) return DoesNotFit("the time of a failure");
  }
  if (std::ranges::any_of(rest.dumping_core, [&](Rank rank) { return Value(rank) >= ranks; }) ||
      std::ranges::any_of(rest.failed_workers, [&](InstanceIndex i) { return Value(i) >= layout.size(); })) {
    return DoesNotFit("it names a rank or an instance that there is not");
  }
  return {};
}

// Every time of it may be subtracted from every other.
Status CheckTimes(const StoredState& stored) {
  const StateRest& rest = stored.rest;
  std::vector<Moment> moments{rest.submit_time, rest.failure_began, {rest.stop_began, {}}};
  for (const auto& deadline :
       {rest.deadlines.collect, rest.deadlines.collect_cap, rest.deadlines.start, rest.deadlines.stop}) {
    if (deadline) moments.push_back({*deadline, {}});
  }
  for (const StageTime& stage : rest.pending_stages) moments.push_back(stage.start);
  for (const RoundState& round : stored.rounds) {
    moments.push_back(round.start);
    for (const StageTime& stage : round.stages) moments.push_back(stage.start);
  }
  for (const RestartRecord& record : stored.records) moments.push_back(record.began);
  for (const Moment& moment : moments) {
    if (!CheckPlausible(Input{moment, Tick{}})) return DoesNotFit("a time that no clock shows");
  }
  return {};
}

}  // namespace

StateRest RestOf(const JobState& job) {
  return {.epoch = job.epoch,
          .status = job.status,
          .phase = job.phase,
          .stop_purpose = job.stop_purpose,
          .stop_at_once = job.stop_at_once,
          .round = job.round,
          .restarts = job.restarts,
          .start_retries = job.start_retries,
          .reason_code = job.reason_code,
          .reason_message = job.reason_message,
          .exit_code = job.exit_code,
          .submit_time = job.submit_time,
          .running_time = job.running_time,
          .end_time = job.end_time,
          .master_address = job.master_address,
          .master_port = job.master_port,
          .reservation = job.reservation,
          .port_refusals = job.port_refusals,
          .collection = job.collection,
          .judgement_number = job.judgement_number,
          .collecting_from = job.collecting_from,
          .dumping_core = job.dumping_core,
          .failures_dropped = job.failures_dropped,
          .same_error = job.same_error,
          .quick_failures = job.quick_failures,
          .failed_workers = job.failed_workers,
          .pending_stages = job.pending_stages,
          .failure_began = job.failure_began,
          .stop_began = job.stop_began,
          .stop_escalations = job.stop_escalations,
          .deadlines = job.deadlines,
          .ranks_ended = ToHex(job.rank_ended),
          .instances = static_cast<uint32_t>(job.instances.size()),
          .nodes = static_cast<uint32_t>(job.nodes.size()),
          .rounds = static_cast<uint32_t>(job.rounds.size()),
          .records = static_cast<uint32_t>(job.records.size()),
          .failures = static_cast<uint32_t>(job.failures.size())};
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
  job.epoch = rest.epoch;
  job.status = rest.status;
  job.phase = rest.phase;
  job.stop_purpose = rest.stop_purpose;
  job.stop_at_once = rest.stop_at_once;
  job.round = rest.round;
  job.restarts = rest.restarts;
  job.start_retries = rest.start_retries;
  job.reason_code = std::move(rest.reason_code);
  job.reason_message = std::move(rest.reason_message);
  job.exit_code = rest.exit_code;
  job.submit_time = rest.submit_time;
  job.running_time = rest.running_time;
  job.end_time = rest.end_time;
  job.master_address = std::move(rest.master_address);
  job.master_port = rest.master_port;
  job.reservation = rest.reservation;
  job.port_refusals = rest.port_refusals;
  job.collection = rest.collection;
  job.judgement_number = rest.judgement_number;
  job.collecting_from = std::move(rest.collecting_from);
  job.dumping_core = std::move(rest.dumping_core);
  job.failures_dropped = rest.failures_dropped;
  job.same_error = std::move(rest.same_error);
  job.quick_failures = std::move(rest.quick_failures);
  job.failed_workers = std::move(rest.failed_workers);
  job.pending_stages = std::move(rest.pending_stages);
  job.failure_began = rest.failure_began;
  job.stop_began = rest.stop_began;
  job.stop_escalations = rest.stop_escalations;
  job.deadlines = rest.deadlines;
  job.instances = std::move(stored.instances);
  job.nodes = std::move(stored.nodes);
  job.rounds = std::move(stored.rounds);
  job.records = std::move(stored.records);
  job.failures = std::move(stored.failures);
  if (job.phase != Phase::kNew) {
    for (size_t i = 0; i < job.instances.size(); ++i) {
      const InstanceIndex index{static_cast<uint32_t>(i)};
      job.instance_of_rank.insert(job.instance_of_rank.end(), job.instances[i].ranks, index);
      // A slot holds at least one instance, which is where its slot is.
      if (SlotOf(spec, index) == job.placement.size()) job.placement.push_back(job.instances[i].node);
    }
    job.rank_ended.resize(job.instance_of_rank.size());
  }
  if (!FromHex(rest.ranks_ended, job.rank_ended)) return DoesNotFit("which ranks have ended");
  job.tallies = CountAll(job);
  return job;
}

}  // namespace aimaster
