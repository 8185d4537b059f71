#include "engine/failures.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "core/roles.h"

namespace aimaster {
namespace {

// At a border of UTF-8 characters, so that the text stays valid.
void Cut(std::string& text) {
  if (text.size() <= kTrimmedTextMaxBytes) return;
  size_t end = kTrimmedTextMaxBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
}

RankFailure Trimmed(RankFailure failure) {
  std::vector<LineMatch> matches;
  std::set<std::string_view> rules;
  for (const LineMatch* match : FreshMatches(failure)) {
    if (matches.size() == kTrimmedMatchesMax) break;
    if (rules.insert(match->rule).second) matches.push_back(*match);
  }
  for (LineMatch& match : matches) Cut(match.line);
  failure.matches = std::move(matches);
  for (std::string* text : {&failure.last_error_line, &failure.error_file_message, &failure.lost_reason}) Cut(*text);
  return failure;
}

// One that is not the earliest of its class, which are few where failures are many. The search goes on where the last
// one ended, so that a storm does not look through all of them again and again.
std::optional<size_t> Replaceable(const JobState& job) {
  for (size_t step = 0; step < job.failures.size(); ++step) {
    const size_t index = (job.failures_dropped + step) % job.failures.size();
    const RankFailure& failure = job.failures[index];
    if (job.tallies.failure_classes.at(FailureClassOf(failure)).earliest != FailureTime(failure)) return index;
  }
  return std::nullopt;
}

void Count(Tallies& tallies, const RankFailure& failure) {
  FailureClass& same = tallies.failure_classes[FailureClassOf(failure)];
  const auto time = FailureTime(failure);
  same.earliest = same.kept == 0 ? time : std::min(same.earliest, time);
  ++same.kept;
  tallies.failure_bytes += FailureBytes(failure);
}

}  // namespace

std::pair<Wall, Rank> FailureTime(const RankFailure& failure) {
  return {BeganAt(failure).value_or(Wall{Duration::max()}), failure.rank};
}

std::string FailureClassOf(const RankFailure& failure) {
  std::string key = std::to_string(Value(failure.node)) + ':';
  if (failure.stopped_by_us) key += 's';
  if (!failure.exec_error.empty()) key += 'x';
  if (failure.node_lost) key += 'n';
  if (failure.exit) {
    key += failure.exit->signal ? "k" + std::to_string(*failure.exit->signal)
                                : "e" + std::to_string(failure.exit->code.value_or(0));
    if (failure.exit->core_dumped) key += 'c';
    if (failure.exit->out_of_memory) key += 'm';
  }
  std::set<std::string_view> rules;
  for (const LineMatch* match : FreshMatches(failure)) {
    if (rules.size() < kTrimmedMatchesMax) rules.insert(match->rule);
  }
  for (const std::string_view rule : rules) key.append("|").append(rule);
  return key;
}

uint64_t FailureBytes(const RankFailure& failure) {
  uint64_t bytes = failure.lost_reason.size() + failure.exec_error.size() + failure.last_error_line.size() +
                   failure.error_file_message.size();
  for (const LineMatch& match : failure.matches) bytes += match.rule.size() + match.line.size() + match.file.size();
  return bytes;
}

RankFailure FitFailure(const JobState& job, RankFailure failure) {
  const bool known = Value(failure.instance) < job.instances.size();
  const bool decided = job.phase == Phase::kStopping ||
                       (known && RenewalOf(job.instances[Value(failure.instance)]) == Renewal::kStopping);
  if (decided) return Trimmed(std::move(failure));  // how it ended is all that matters
  if (job.phase != Phase::kCollecting && job.phase != Phase::kJudging) return failure;
  const auto& classes = job.tallies.failure_classes;
  const auto same = classes.find(FailureClassOf(failure));
  const bool earliest = same == classes.end() || FailureTime(failure) < same->second.earliest;
  const uint64_t bytes = job.tallies.failure_bytes + FailureBytes(failure);
  const bool whole = (earliest && bytes <= kEarliestBytesMax) ||
                     (bytes <= kWholeBytesMax && (earliest || same->second.kept < kWholePerClass));
  return whole ? failure : Trimmed(std::move(failure));
}

std::optional<size_t> KeepFailure(JobState& job, const RankFailure& failure) {
  Tallies& tallies = job.tallies;
  if (job.failures.size() < kFailuresMax) {
    job.failures.push_back(failure);
    Count(tallies, failure);
    return job.failures.size() - 1;
  }
  ++job.failures_dropped;
  const auto same = tallies.failure_classes.find(FailureClassOf(failure));
  if (same != tallies.failure_classes.end() && FailureTime(failure) >= same->second.earliest) return std::nullopt;
  const std::optional<size_t> victim = Replaceable(job);
  if (!victim) return std::nullopt;
  --tallies.failure_classes.at(FailureClassOf(job.failures[*victim])).kept;
  tallies.failure_bytes -= FailureBytes(job.failures[*victim]);
  job.failures[*victim] = failure;
  Count(tallies, failure);
  return victim;
}

void ForgetFailuresOf(JobState& job, const std::set<InstanceIndex>& instances) {
  std::erase_if(job.failures, [&](const RankFailure& failure) { return instances.contains(failure.instance); });
  job.failures_dropped = 0;
  job.tallies.failure_classes.clear();
  job.tallies.failure_bytes = 0;
  for (const RankFailure& failure : job.failures) Count(job.tallies, failure);
}

Tallies CountAll(const JobState& job) {
  Tallies tallies;
  for (size_t i = 0; i < job.instances.size(); ++i) {
    const InstanceState& instance = job.instances[i];
    const bool succeeded = instance.status == InstanceStatus::kSucceeded;
    tallies.live += instance.live;
    tallies.started += instance.started;
    tallies.ready += instance.ready;
    tallies.succeeded += succeeded;
    const bool counts = CountsForSuccess(job.spec, instance.role, instance.index_in_role);
    tallies.work_succeeded += counts && succeeded;
    tallies.work_done += counts && instance.ranks_succeeded == instance.ranks;
    tallies.portless += HasAddress(job.spec, instance.role) && instance.port == 0;
    tallies.waiting += RenewalOf(instance) == Renewal::kWaiting;
    if (instance.own && instance.own->deadline) {
      tallies.deadlines.emplace(*instance.own->deadline, InstanceIndex{static_cast<uint32_t>(i)});
    }
  }
  tallies.ranks_ended = static_cast<uint32_t>(std::ranges::count(job.rank_ended, true));
  for (const RankFailure& failure : job.failures) Count(tallies, failure);
  return tallies;
}

}  // namespace aimaster
