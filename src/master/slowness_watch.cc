#include "master/slowness_watch.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "c4d/record_reader.h"
#include "c4d/sample.h"
#include "core/c4d_environment.h"
#include "master/job_life.h"

namespace aimaster {
namespace {

constexpr Duration kWindowMin = std::chrono::seconds{1};  // agents tell once a second
constexpr int64_t kDurationMaxNs = int64_t{600} * 1'000'000'000;

// It was checked when the job was submitted.
Duration WindowOf(const JobState& job) {
  const std::string_view period = C4dSettingIn(job.spec.fault_tolerance.c4d_common_envs, "C4D_CONN_BW_CHECK_PERIOD");
  return std::max(ParseC4dTime(period).value_or(kWindowMin) / SlownessWatch::kWindowsAPeriod, kWindowMin);
}

bool IsWhole(const v1::FinishedGroup& group) {
  const int count = group.sequence_size();
  return group.function_size() == count && group.size_bytes_size() == count && group.duration_ns_size() == count &&
         group.id() != 0 && group.size() >= 2 && group.size() <= c4d::kRecordRanksMax && group.one_in() >= 1 &&
         group.one_in() <= c4d::kOneInMax;
}

Duration ClampedNs(int64_t nanoseconds) { return Duration(std::clamp<int64_t>(nanoseconds, 0, kDurationMaxNs)); }

}  // namespace

void SlownessWatch::Take(Monotonic now, NodeIndex node, const v1::Communication& communication, const JobState& job) {
  if (!begun_) begun_ = now;
  for (const v1::Finished& finished : communication.finished()) {
    const std::optional<InstanceIndex> instance =
        FindLive(job, node, finished.id().instance(), finished.id().attempt());
    if (!instance || finished.rank() >= c4d::kRecordRanksMax) continue;
    places_[Rank{finished.rank()}] = *instance;
    Add(finished);
  }
}

void SlownessWatch::Add(const v1::Finished& finished) {
  const Rank rank{finished.rank()};
  watch_.Add({.rank = rank, .function = c4d::Function::kReceive, .duration = ClampedNs(finished.waited_ns())});
  for (const v1::FinishedGroup& group : finished.groups()) {
    if (!IsWhole(group)) continue;
    const std::optional<uint32_t> communicator = CommunicatorOf(finished.source(), group, rank);
    if (!communicator) continue;
    for (int i = 0; i < group.sequence_size(); ++i) {
      if (group.function(i) > static_cast<uint32_t>(c4d::Function::kOtherCollective)) continue;
      watch_.Add({.communicator = *communicator,
                  .sequence = group.sequence(i),
                  .rank = rank,
                  .members = group.size(),
                  .function = static_cast<c4d::Function>(group.function(i)),
                  .bytes = group.size_bytes(i),
                  .duration = ClampedNs(group.duration_ns(i)),
                  .weight = group.one_in()});
    }
  }
}

std::optional<uint32_t> SlownessWatch::CommunicatorOf(uint32_t source, const v1::FinishedGroup& group, Rank member) {
  auto number = numbers_.find({source, group.id()});
  if (number == numbers_.end()) {
    if (communicators_.size() == kCommunicatorsMax) return std::nullopt;
    number = numbers_.emplace(std::pair(source, group.id()), static_cast<uint32_t>(communicators_.size())).first;
    communicators_.push_back(
        {.name = group.name().empty() ? "a group of " + std::to_string(group.size()) : group.name(),
         .description = {},
         .members = {}});
  }
  std::vector<Rank>& members = communicators_[number->second].members;
  const auto place = std::ranges::lower_bound(members, member);
  if (place == members.end() || *place != member) members.insert(place, member);
  return number->second;
}

std::optional<std::vector<c4d::Verdict>> SlownessWatch::CloseWindow(Monotonic now, const JobState& job) {
  if (!begun_ || now - *begun_ < WindowOf(job) - kWindowMin / 2) return std::nullopt;
  ++windows_;
  std::vector<c4d::Verdict> verdicts = watch_.CloseWindow(now - *begun_, communicators_);
  begun_ = now;
  return verdicts;
}

}  // namespace aimaster
