#include "wire/record_message.h"

#include <algorithm>
#include <map>

namespace aimaster {
namespace {

using c4d::Record;
using c4d::RecordedCommunicator;
using c4d::RecordedOperation;
using c4d::RecordedThread;

constexpr uint64_t kFunctionsEnd = static_cast<uint64_t>(c4d::Function::kOtherCollective) + 1;
constexpr uint32_t kSourcesEnd = static_cast<uint32_t>(c4d::RecordSource::kTorch) + 1;
constexpr int kNumbersOfARun = 3;

int64_t Nanoseconds(Monotonic time) { return time.since_origin.count(); }
// What is beyond what a clock has shown is not a time.
Monotonic Time(int64_t nanoseconds) { return {Duration(std::clamp<int64_t>(nanoseconds, 0, int64_t{1} << 61))}; }

void Fill(const RecordedCommunicator& from, v1::RecordedCommunicator& to) {
  to.set_id(from.id);
  to.set_name(from.name);
  to.set_size(from.size);
  to.set_size_is_least(!from.is_size_told);
  to.set_rank(from.rank);
  to.set_is_retired(from.is_retired);
  to.set_generation(from.generation);
  for (const c4d::MemberRun& run : from.members) {
    to.add_members(run.first);
    to.add_members(run.step);
    to.add_members(run.count);
  }
  to.set_issued(from.issued);
  to.set_started(from.started);
  to.set_completed(from.completed);
  to.set_progress(from.progress);
  to.set_common_issued(from.common_issued);
  to.set_common_completed(from.common_completed);
  if (from.changed) to.set_changed_ns(Nanoseconds(*from.changed));
  if (from.collective_changed) to.set_collective_changed_ns(Nanoseconds(*from.collective_changed));
}

// Of the names of a record, some two hundred, those that something is called by.
class UsedNames {
 public:
  UsedNames(const Record& record, v1::ProcessRecord& message) : record_(record), message_(message) {}

  uint32_t NumberOf(uint16_t name) {
    const auto [place, is_new] = numbers_.try_emplace(name, message_.names_size());
    if (is_new) message_.add_names(record_.names[name]);
    return place->second;
  }

 private:
  const Record& record_;
  v1::ProcessRecord& message_;
  std::map<uint16_t, uint32_t> numbers_;
};

void Fill(const RecordedOperation& from, UsedNames& names, v1::RecordedOperation& to) {
  to.set_communicator(from.communicator);
  to.set_peer(from.peer);
  to.set_sequence(from.sequence);
  to.set_count(from.count);
  to.set_function(static_cast<uint32_t>(from.function));
  to.set_name(names.NumberOf(from.name));
  to.set_type(std::string(from.type));
  to.set_is_blocking(from.is_blocking);
  to.set_is_counted(from.is_counted);
  to.set_issued_ns(Nanoseconds(from.issued));
  if (from.started) to.set_started_ns(Nanoseconds(*from.started));
}

// The members of a communicator have to be as many as it says, and each a rank.
bool TakeMembers(const v1::RecordedCommunicator& from, RecordedCommunicator& to) {
  if (from.members_size() % kNumbersOfARun != 0) return false;
  uint64_t members = 0;
  for (int i = 0; i < from.members_size(); i += kNumbersOfARun) {
    const int64_t first = from.members(i), step = from.members(i + 1), count = from.members(i + 2);
    const bool is_run = first >= 0 && first < c4d::kRecordRanksMax && step > -int64_t{c4d::kRecordRanksMax} &&
                        step < c4d::kRecordRanksMax && count > 0 && count <= c4d::kRecordRanksMax;
    if (!is_run || (step == 0 && count > 1)) return false;
    const int64_t last = first + step * (count - 1);
    if (last < 0 || last >= c4d::kRecordRanksMax) return false;
    to.members.push_back({.first = static_cast<uint32_t>(first),
                          .step = static_cast<int32_t>(step),
                          .count = static_cast<uint32_t>(count)});
    members += static_cast<uint64_t>(count);
  }
  return to.members.empty() || members == from.size();
}

bool Take(const v1::RecordedCommunicator& from, RecordedCommunicator& to) {
  if (from.size() == 0 || from.size() > c4d::kRecordRanksMax || from.rank() >= from.size() ||
      from.completed() > from.issued() || from.common_completed() > from.common_issued()) {
    return false;
  }
  to.id = from.id();
  to.name = from.name();
  to.size = from.size();
  to.is_size_told = !from.size_is_least();
  to.rank = from.rank();
  to.is_retired = from.is_retired();
  to.generation = from.generation();
  to.issued = from.issued();
  to.started = from.started();
  to.completed = from.completed();
  to.progress = from.progress();
  to.common_issued = from.common_issued();
  to.common_completed = from.common_completed();
  if (from.has_changed_ns()) to.changed = Time(from.changed_ns());
  if (from.has_collective_changed_ns()) to.collective_changed = Time(from.collective_changed_ns());
  return TakeMembers(from, to);
}

bool Take(const v1::RecordedOperation& from, const Record& record, RecordedOperation& to) {
  if (from.communicator() >= record.communicators.size() || from.name() >= record.names.size() ||
      from.function() >= kFunctionsEnd) {
    return false;
  }
  to.communicator = from.communicator();
  to.peer = from.peer();
  to.sequence = from.sequence();
  to.count = from.count();
  to.function = static_cast<c4d::Function>(from.function());
  to.name = static_cast<uint16_t>(from.name());
  to.type = c4d::KnownType(from.type());
  to.is_blocking = from.is_blocking();
  to.is_counted = from.is_counted();
  to.issued = Time(from.issued_ns());
  if (from.has_started_ns()) to.started = Time(from.started_ns());
  return true;
}

bool Take(const v1::RecordedThread& from, const Record& record, RecordedThread& to) {
  if (from.has_inside() && from.inside() >= record.names.size()) return false;
  if (from.has_inside()) to.inside = static_cast<uint16_t>(from.inside());
  to.changed = Time(from.changed_ns());
  return true;
}

}  // namespace

v1::ProcessRecord ToMessage(const Record& record) {
  v1::ProcessRecord message;
  message.set_source(static_cast<uint32_t>(record.source));
  message.set_pid(record.pid);
  if (record.world_rank) message.set_world_rank(Value(*record.world_rank));
  message.set_world_size(record.world_size);
  message.set_is_finished(record.is_finished);
  message.set_created_ns(Nanoseconds(record.created.monotonic));
  message.set_taken_ns(Nanoseconds(record.taken));
  UsedNames names(record, message);
  for (const RecordedCommunicator& communicator : record.communicators) {
    Fill(communicator, *message.add_communicators());
  }
  for (const RecordedOperation& operation : record.operations) Fill(operation, names, *message.add_operations());
  for (const RecordedThread& thread : record.threads) {
    v1::RecordedThread& to = *message.add_threads();
    if (thread.inside) to.set_inside(names.NumberOf(*thread.inside));
    to.set_changed_ns(Nanoseconds(thread.changed));
  }
  message.set_lost_communicators(record.losses.communicators);
  message.set_torn(record.losses.torn);
  message.set_elsewhere(record.elsewhere);
  if (record.elsewhere_changed) message.set_elsewhere_changed_ns(Nanoseconds(*record.elsewhere_changed));
  message.set_other_threads_inside(record.other_threads_inside);
  return message;
}

std::optional<Record> FromMessage(const v1::ProcessRecord& message) {
  if (message.source() >= kSourcesEnd || message.names_size() > UINT16_MAX ||
      message.world_rank() >= c4d::kRecordRanksMax) {
    return std::nullopt;
  }
  Record record;
  record.source = static_cast<c4d::RecordSource>(message.source());
  record.pid = message.pid();
  if (message.has_world_rank()) record.world_rank = Rank{message.world_rank()};
  record.world_size = message.world_size();
  record.is_finished = message.is_finished();
  record.created.monotonic = Time(message.created_ns());
  record.taken = Time(message.taken_ns());
  record.names.assign(message.names().begin(), message.names().end());
  for (const v1::RecordedCommunicator& from : message.communicators()) {
    if (!Take(from, record.communicators.emplace_back())) return std::nullopt;
  }
  for (const v1::RecordedOperation& from : message.operations()) {
    if (!Take(from, record, record.operations.emplace_back())) return std::nullopt;
  }
  for (const v1::RecordedThread& from : message.threads()) {
    if (!Take(from, record, record.threads.emplace_back())) return std::nullopt;
  }
  record.losses.communicators = message.lost_communicators();
  record.losses.torn = message.torn();
  record.elsewhere = message.elsewhere();
  if (message.has_elsewhere_changed_ns()) record.elsewhere_changed = Time(message.elsewhere_changed_ns());
  record.other_threads_inside = message.other_threads_inside();
  return record;
}

}  // namespace aimaster
