#include "agent/finished_reader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/limits.h"
#include "c4d/sample.h"

namespace aimaster::agent {
namespace {

using c4d::RecordedCommunicator;
using c4d::RecordedFinished;

// Collectives in which a program may have waited for others, of members who all tell theirs.
bool IsComparable(const RecordedFinished& one, c4d::RecordSource source) {
  // What MPI does while a program computes ends whenever that asks for it.
  const bool is_waited_in = one.is_blocking || source != c4d::RecordSource::kMpi;
  return !IsPointToPoint(one.function) && is_waited_in && one.communicator_id != 0 && one.members >= 2 &&
         one.sequence != 0;
}

v1::FinishedGroup* GroupOf(const c4d::Record& record, uint64_t id, uint32_t one_in, v1::Finished& finished) {
  for (v1::FinishedGroup& group : *finished.mutable_groups()) {
    if (group.id() == id) return &group;
  }
  const auto communicator = std::ranges::find(record.communicators, id, &RecordedCommunicator::id);
  if (communicator == record.communicators.end() || finished.groups_size() == kFinishedGroupsMax) return nullptr;
  v1::FinishedGroup& group = *finished.add_groups();
  group.set_id(id);
  group.set_name(communicator->name);
  group.set_size(communicator->size);
  group.set_one_in(one_in);
  return &group;
}

}  // namespace

void FinishedReader::ChooseSamples(const c4d::Record& record, Duration since, Process& process) {
  const bool is_rate = since >= kRateOver;
  const double each_second = std::clamp(kSampleOfAll / std::max(record.world_size, 1u), kSampleMin, kSampleMax);
  const double wanted = each_second * std::chrono::duration<double>(since).count();
  const std::map<uint64_t, Group> before = std::exchange(process.groups, {});
  for (const RecordedCommunicator& communicator : record.communicators) {
    if (communicator.id == 0) continue;
    const auto last = before.find(communicator.id);
    const uint64_t known = last == before.end() ? 0 : last->second.completed;
    const uint64_t count = communicator.completed - std::min(known, communicator.completed);
    const bool keeps = !is_rate && last != before.end();
    process.groups[communicator.id] = {
        .completed = communicator.completed,
        .one_in =
            keeps ? last->second.one_in : c4d::OneIn(count, std::max<uint64_t>(static_cast<uint64_t>(wanted), 1))};
  }
}

void FinishedReader::Read(AttemptKey key, const c4d::Record& record, v1::Communication& to) {
  const auto [entry, is_new] = processes_.try_emplace(
      {key, record.source, record.pid, record.created.monotonic.since_origin}, Process{.read = record.taken});
  Process& process = entry->second;
  process.look = look_;
  const std::vector<uint64_t> told = std::exchange(process.ordinals, {});
  for (const c4d::RecordedThread& thread : record.threads) process.ordinals.push_back(thread.finished);
  const Duration since = record.taken - process.read;
  ChooseSamples(record, since, process);
  if (is_new) return;
  const Monotonic last_read = std::exchange(process.read, record.taken);

  v1::Finished finished;
  Duration waited{};
  uint64_t seen = 0, all = 0;
  for (size_t i = 0; i < process.ordinals.size(); ++i) {
    all += process.ordinals[i] - std::min(process.ordinals[i], i < told.size() ? told[i] : 0);
  }
  for (const RecordedFinished& one : record.finished) {
    const uint64_t before = one.thread < told.size() ? told[one.thread] : 0;
    if (one.ordinal <= before || one.ordinal > process.ordinals[one.thread]) continue;
    ++seen;
    if (!IsComparable(one, record.source)) {
      waited += one.duration;
      continue;
    }
    const uint32_t one_in = process.groups[one.communicator_id].one_in;
    if (!c4d::IsInSample(one.sequence, one_in)) continue;
    v1::FinishedGroup* group = GroupOf(record, one.communicator_id, one_in, finished);
    if (group == nullptr || group->sequence_size() == kFinishedOfGroupMax) continue;
    group->add_sequence(one.sequence);
    group->add_function(static_cast<uint32_t>(one.function));
    group->add_size_bytes(one.bytes);
    group->add_duration_ns(one.duration.count());
  }
  const bool was_elsewhere =
      record.elsewhere > 0 || (record.elsewhere_changed && *record.elsewhere_changed > last_read);
  if (seen < all || was_elsewhere) waited = std::max(waited, since);
  if (waited == Duration::zero() && finished.groups_size() == 0) return;
  finished.mutable_id()->set_instance(key.instance);
  finished.mutable_id()->set_attempt(key.attempt);
  finished.set_source(static_cast<uint32_t>(record.source));
  finished.set_rank(Value(*record.world_rank));
  finished.set_waited_ns(waited.count());
  bytes_ += finished.ByteSizeLong();
  if (bytes_ <= kFinishedBytesMax) *to.add_finished() = std::move(finished);
}

void FinishedReader::ForgetOthers() {
  std::erase_if(processes_, [&](const auto& entry) { return entry.second.look != look_; });
  ++look_;
  bytes_ = 0;
}

}  // namespace aimaster::agent
