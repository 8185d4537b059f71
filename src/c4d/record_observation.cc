#include "c4d/record_observation.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "c4d/analysis_limits.h"

namespace aimaster::c4d {
namespace {

// Of all groups together; what is beyond is left out. A job of 16,384 ranks in five groups each has 82,000.
constexpr uint64_t kMembersMax = 16 << 20;
constexpr size_t kTextsMax = 60'000;

using GroupKey = std::pair<RecordSource, uint64_t>;

// What of a record is needed again and again.
struct Process {
  const RankRecord* of = nullptr;
  bool is_asking = false;                         // it is in a call, or left one a moment ago
  std::vector<std::vector<uint32_t>> operations;  // of each communicator, in the record's
  bool has_unseen_wait = false;                   // it waits in a group that is left out
  bool has_wait = false;                          // it waits in one that is not
};

// A communicator of a process.
struct Part {
  uint32_t process = 0;
  uint32_t communicator = 0;  // in its record's
};

struct Group {
  std::vector<Part> parts;        // by rank
  std::vector<uint32_t> by_rank;  // the job's rank of each rank in it
};

Duration AgeOf(const Record& record, Monotonic time) { return std::max(Duration::zero(), record.taken - time); }

// It is in a call, or left one a moment ago.
bool IsAsking(const Record& record) {
  return record.other_threads_inside > 0 || std::ranges::any_of(record.threads, [&](const RecordedThread& thread) {
           return thread.inside || AgeOf(record, thread.changed) <= kPollingMax;
         });
}

bool IsWaitedFor(const Record& record, const RecordedOperation& operation, bool is_asking) {
  if (record.source != RecordSource::kMpi || operation.is_blocking) return true;
  return operation.started && is_asking;
}

// Of MPI, the time for which it has been waited for.
Monotonic WaitedSince(const Record& record, const RecordedOperation& operation) {
  return record.source == RecordSource::kMpi ? operation.started.value_or(operation.issued) : operation.issued;
}

std::string Hexadecimal(uint64_t number) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, 16).ptr;
  return std::string(digits, end);
}

class Observer {
 public:
  Observer(std::span<const RankRecord> records, uint32_t ranks) {
    job_.ranks.resize(ranks);
    ChooseRecords(records);
    for (Process& process : processes_) Prepare(process);
  }

  ObservedRecords Observe() && {
    CollectGroups();
    for (auto& [key, group] : groups_) AddGroup(key, group);
    for (Process& process : processes_) AddUnrecorded(process);
    for (const Process& process : processes_) ObserveRank(process);
    return {.observation = std::move(job_), .keys = std::move(keys_)};
  }

 private:
  void ChooseRecords(std::span<const RankRecord> records) {
    std::map<std::pair<Rank, RecordSource>, const RankRecord*> youngest;
    for (const RankRecord& record : records) {
      if (Value(record.rank) >= job_.ranks.size()) continue;
      const RankRecord*& place = youngest[{record.rank, record.record.source}];
      if (place == nullptr || place->record.created.monotonic < record.record.created.monotonic) place = &record;
    }
    for (const auto& [key, record] : youngest) processes_.push_back({.of = record});
    is_recorded_.assign(job_.ranks.size(), false);
    for (uint32_t i = 0; i < processes_.size(); ++i) {
      const Record& record = processes_[i].of->record;
      is_recorded_[Value(processes_[i].of->rank)] = true;
      if (record.world_rank) of_world_rank_[{record.source, Value(*record.world_rank)}] = i;
      of_rank_[{record.source, Value(processes_[i].of->rank)}] = i;
    }
  }

  static void Prepare(Process& process) {
    const Record& record = process.of->record;
    process.operations.resize(record.communicators.size());
    for (uint32_t i = 0; i < record.operations.size(); ++i) {
      process.operations[record.operations[i].communicator].push_back(i);
    }
    process.is_asking = IsAsking(record);
  }

  static bool IsWaitedFor(const Process& process, const RecordedOperation& operation) {
    return c4d::IsWaitedFor(process.of->record, operation, process.is_asking);
  }

  // The groups in which anybody still is.
  void CollectGroups() {
    for (uint32_t p = 0; p < processes_.size(); ++p) {
      const Record& record = processes_[p].of->record;
      for (uint32_t c = 0; c < record.communicators.size(); ++c) {
        const Part part{.process = p, .communicator = c};
        if (record.communicators[c].id == 0) {  // it can't be told which of the others' it is
          NoteUnseenWait(part);
          continue;
        }
        std::vector<Part>& parts = groups_[{record.source, record.communicators[c].id}].parts;
        if (parts.empty() || parts.back().process != p) {
          parts.push_back(part);
        } else {  // a process that is two members of it, one for each of its devices
          NoteUnseenWait(part);
        }
      }
    }
    std::erase_if(groups_, [&](const auto& entry) {
      return std::ranges::all_of(entry.second.parts, [&](const Part& part) {
        const RecordedCommunicator& communicator = CommunicatorOf(part);
        const bool is_idle = communicator.issued == communicator.completed &&
                             processes_[part.process].operations[part.communicator].empty();
        return is_idle && (communicator.is_retired || communicator.size == 1);
      });
    });
  }

  const RecordedCommunicator& CommunicatorOf(const Part& part) const {
    return processes_[part.process].of->record.communicators[part.communicator];
  }

  void NoteUnseenWait(const Part& part) {
    Process& process = processes_[part.process];
    for (const uint32_t o : process.operations[part.communicator]) {
      if (IsWaitedFor(process, process.of->record.operations[o])) process.has_unseen_wait = true;
    }
  }

  // False: who belongs to it can't be said, so that nobody may be missed in it.
  bool FindMembers(RecordSource source, Group& group) {
    const RecordedCommunicator* told = nullptr;
    for (const Part& part : group.parts) {
      const RecordedCommunicator& communicator = CommunicatorOf(part);
      if (communicator.members.empty()) continue;
      // Of two worlds, as a program has that starts others, both are called MPI_COMM_WORLD.
      if (told != nullptr && (told->size != communicator.size || told->members != communicator.members)) return false;
      told = &communicator;
    }
    const bool are_known = told != nullptr ? TakeMembers(source, *told, group) : PutMembersTogether(group);
    return are_known &&
           std::ranges::none_of(group.by_rank, [&](uint32_t rank) { return MayHaveLost(source, group, rank); });
  }

  bool HasRoom(uint32_t size) {
    if (size > job_.ranks.size() || members_ + size > kMembersMax) return false;
    members_ += size;
    return true;
  }

  bool TakeMembers(RecordSource source, const RecordedCommunicator& told, Group& group) {
    if (!HasRoom(told.size)) return false;
    for (const MemberRun& run : told.members) {
      for (uint32_t i = 0; i < run.count; ++i) {
        const auto world = static_cast<uint32_t>(run.first + int64_t{run.step} * i);
        const auto known = of_world_rank_.find({source, world});
        const uint32_t rank = known == of_world_rank_.end() ? world : Value(processes_[known->second].of->rank);
        if (rank >= job_.ranks.size()) return false;
        group.by_rank.push_back(rank);
      }
    }
    return true;
  }

  // By each process's own rank in it, where the source does not tell those of the others.
  bool PutMembersTogether(Group& group) {
    uint32_t told = 0, least = 0;
    for (const Part& part : group.parts) {
      const RecordedCommunicator& communicator = CommunicatorOf(part);
      least = std::max(least, communicator.size);
      if (!communicator.is_size_told) continue;
      if (told != 0 && communicator.size != told) return false;
      told = communicator.size;
    }
    const uint32_t size = told != 0 ? told : least;
    if (size < least || !HasRoom(size)) return false;
    group.by_rank.assign(size, kNone);
    for (const Part& part : group.parts) {
      uint32_t& rank = group.by_rank[CommunicatorOf(part).rank];
      if (rank != kNone) return false;
      rank = Value(processes_[part.process].of->rank);
    }
    return FillGaps(group);
  }

  // Members without a record.
  bool FillGaps(Group& group) const {
    const auto gaps = std::ranges::count(group.by_rank, kNone);
    if (gaps == 0) return true;
    const bool is_whole_job = group.by_rank.size() == job_.ranks.size();
    std::vector<bool> may_be(job_.ranks.size());
    for (size_t rank = 0; rank < may_be.size(); ++rank) may_be[rank] = is_whole_job || !is_recorded_[rank];
    for (const uint32_t rank : group.by_rank) {
      if (rank != kNone) may_be[rank] = false;
    }
    if (std::ranges::count(may_be, true) != gaps) return FillInSteps(group, may_be);
    uint32_t next = 0;
    for (uint32_t& rank : group.by_rank) {
      if (rank != kNone) continue;
      while (!may_be[next]) ++next;
      rank = next++;
    }
    return true;
  }

  static bool FillInSteps(Group& group, const std::vector<bool>& may_be) {
    std::vector<int64_t> known;
    for (size_t i = 0; i < group.by_rank.size(); ++i) {
      if (group.by_rank[i] != kNone) known.push_back(static_cast<int64_t>(i));
    }
    if (known.size() < 2) return false;
    const auto at = [&](int64_t i) { return static_cast<int64_t>(group.by_rank[static_cast<size_t>(i)]); };
    const int64_t rise = at(known.back()) - at(known.front()), run = known.back() - known.front();
    const int64_t step = rise / run, first = at(known.front()) - step * known.front();
    for (int64_t i = 0; i < static_cast<int64_t>(group.by_rank.size()); ++i) {
      const int64_t rank = first + step * i;
      const bool is_known = at(i) != int64_t{kNone};
      if (is_known ? rank != at(i) : rank < 0 || rank >= std::ssize(may_be) || !may_be[static_cast<size_t>(rank)]) {
        return false;
      }
    }
    for (size_t i = 0; i < group.by_rank.size(); ++i) {
      group.by_rank[i] = static_cast<uint32_t>(first + step * static_cast<int64_t>(i));
    }
    return true;
  }

  // Whether the record of this member has no trace of the group although it may have been in it.
  bool MayHaveLost(RecordSource source, const Group& group, uint32_t rank) const {
    const auto found = of_rank_.find({source, rank});
    if (found == of_rank_.end()) return false;
    const auto part = std::ranges::lower_bound(group.parts, found->second, {}, &Part::process);
    if (part != group.parts.end() && part->process == found->second) return false;
    const Record& record = processes_[found->second].of->record;
    return record.losses.communicators > 0 || record.losses.torn > 0 ||
           std::ranges::any_of(record.communicators, [](const auto& other) { return other.generation > 1; });
  }

  void AddGroup(const GroupKey& key, Group& group) {
    if (!FindMembers(key.first, group)) {
      for (const Part& part : group.parts) NoteUnseenWait(part);
      return;
    }
    const std::string name = NameOf(key, group);
    AddCommunicator(name, group.by_rank, {.source = key.first, .id = key.second});
    for (const Part& part : group.parts) AddCollectives(group, part);
    // What goes from rank to rank has numbers of its own, so it is told as a group of its own.
    const auto carries = [&](const Part& part) { return CommunicatorOf(part).common_issued > 0; };
    if (!std::ranges::any_of(group.parts, carries)) return;
    AddCommunicator(name + " (rank to rank)", group.by_rank, {.source = key.first, .id = std::nullopt});
    for (const Part& part : group.parts) AddCommon(group, part);
  }

  std::string NameOf(const GroupKey& key, const Group& group) {
    std::string name = CommunicatorOf(group.parts.front()).name;
    if (name.empty()) name = "communicator";
    if (names_.insert({name, 0}).second) return name;
    return name + " " + Hexadecimal(key.second);
  }

  void AddCommunicator(const std::string& name, std::span<const uint32_t> ranks, const ObservedRecords::Key& key) {
    Communicator& communicator = job_.communicators.emplace_back();
    communicator.name = name;
    for (const uint32_t rank : ranks) communicator.members.push_back(Rank{rank});
    std::ranges::sort(communicator.members);
    keys_.push_back(key);
  }

  MemberState& AddState(const Process& process) {
    return job_.states.emplace_back(MemberState{.communicator = static_cast<uint32_t>(job_.communicators.size() - 1),
                                                .rank = process.of->rank,
                                                .first_operation = static_cast<uint32_t>(job_.operations.size())});
  }

  void AddCollectives(const Group& group, const Part& part) {
    Process& process = processes_[part.process];
    const Record& record = process.of->record;
    const RecordedCommunicator& communicator = CommunicatorOf(part);
    MemberState& state = AddState(process);
    state.idle = AgeOf(record, communicator.collective_changed.value_or(record.created.monotonic));

    std::vector<uint64_t> unwaited;  // ascending
    for (const uint32_t o : process.operations[part.communicator]) {
      const RecordedOperation& operation = record.operations[o];
      if (IsPointToPoint(operation.function)) continue;
      if (IsWaitedFor(process, operation)) {
        AddOperation(group, process, operation, state);
      } else {
        unwaited.push_back(operation.sequence);
      }
    }
    std::ranges::sort(unwaited);
    const uint64_t unfinished = communicator.issued - communicator.completed;
    const uint64_t seen = state.operation_count + unwaited.size();
    uint64_t lost = unfinished > seen ? unfinished - seen : 0;
    if (record.source == RecordSource::kMpi && !process.is_asking) lost = 0;
    if (state.operation_count + lost > 0) process.has_wait = true;
    state.issued = communicator.issued;
    while (!unwaited.empty() && unwaited.back() == state.issued) {
      unwaited.pop_back();
      --state.issued;
    }
    const uint64_t outstanding = state.operation_count + lost;
    state.completed = state.issued > outstanding ? state.issued - outstanding : 0;
    if (record.source == RecordSource::kNccl) {
      state.started = communicator.started;
      if (communicator.progress > 0) state.progress = communicator.progress;
    }
  }

  void AddCommon(const Group& group, const Part& part) {
    Process& process = processes_[part.process];
    const Record& record = process.of->record;
    const RecordedCommunicator& communicator = CommunicatorOf(part);
    MemberState& state = AddState(process);
    state.carries_point_to_point = true;
    state.idle = AgeOf(record, communicator.changed.value_or(record.created.monotonic));
    uint64_t counted = 0;
    for (const uint32_t o : process.operations[part.communicator]) {
      const RecordedOperation& operation = record.operations[o];
      if (!IsPointToPoint(operation.function)) continue;
      if (operation.is_counted) ++counted;
      if (!IsWaitedFor(process, operation)) continue;
      process.has_wait = true;
      AddOperation(group, process, operation, state);
    }
    const bool may_wait = process.is_asking || record.source != RecordSource::kMpi;
    if (communicator.common_issued - communicator.common_completed > counted && may_wait) {
      job_.ranks[Value(process.of->rank)].has_lost_operations = true;
      if (state.operation_count == 0) process.has_unseen_wait = true;
    }
  }

  void AddOperation(const Group& group, const Process& process, const RecordedOperation& from, MemberState& state) {
    const Record& record = process.of->record;
    Operation& operation = job_.operations.emplace_back();
    ++state.operation_count;
    operation.sequence = from.sequence;
    operation.count = from.count;
    operation.function = from.function;
    operation.name = TextIndex(record.names[from.name]);
    operation.type = TextIndex(from.type);
    if (from.peer < group.by_rank.size()) operation.peer = Rank{group.by_rank[from.peer]};
    operation.age = AgeOf(record, WaitedSince(record, from));
    if (record.source == RecordSource::kNccl) operation.start = from.started ? Start::kStarted : Start::kNotStarted;
  }

  // Calls of which it is not known what they wait for are told as if they received something from whoever comes.
  void AddUnrecorded(Process& process) {
    const Record& record = process.of->record;
    std::optional<uint16_t> name;
    std::optional<Monotonic> since = record.elsewhere_changed;
    bool is_inside = record.elsewhere > 0 || record.other_threads_inside > 0;
    for (const RecordedThread& thread : record.threads) {
      if (!thread.inside) continue;
      is_inside = true;
      name = thread.inside;
      since = thread.changed;
    }
    const bool is_unrecorded = record.elsewhere > 0 || process.has_unseen_wait;
    if (!is_unrecorded && (!is_inside || process.has_wait)) return;
    const uint32_t rank = Value(process.of->rank);
    AddCommunicator("calls of rank " + std::to_string(rank) + " that are not recorded", std::span(&rank, 1),
                    {.source = record.source, .id = std::nullopt});
    MemberState& state = AddState(process);
    state.carries_point_to_point = true;
    state.operation_count = 1;
    Operation& operation = job_.operations.emplace_back();
    operation.function = Function::kReceive;
    operation.sequence = 1;
    if (name) operation.name = TextIndex(record.names[*name]);
    if (since) operation.age = AgeOf(record, *since);
    state.idle = operation.age;
  }

  void ObserveRank(const Process& process) {
    const Record& record = process.of->record;
    RankState& rank = job_.ranks[Value(process.of->rank)];
    rank.is_observed = true;
    rank.is_alive = process.of->is_alive;
    rank.hold = std::max(rank.hold, process.of->hold);
    Monotonic changed = record.created.monotonic;
    if (record.elsewhere_changed) changed = std::max(changed, *record.elsewhere_changed);
    for (const RecordedCommunicator& communicator : record.communicators) {
      if (communicator.changed) changed = std::max(changed, *communicator.changed);
    }
    const Duration age = AgeOf(record, changed);
    rank.outside = rank.outside == kNoAge ? age : std::min(rank.outside, age);
  }

  uint16_t TextIndex(std::string_view text) {
    if (text.empty()) return 0;
    const auto found = texts_.find(text);
    if (found != texts_.end()) return found->second;
    if (job_.texts.size() >= kTextsMax) return 0;
    const auto index = static_cast<uint16_t>(job_.texts.size());
    job_.texts.emplace_back(text);
    texts_.emplace(text, index);
    return index;
  }

  Observation job_;
  std::vector<ObservedRecords::Key> keys_;
  std::vector<Process> processes_;  // by rank, then source
  std::vector<bool> is_recorded_;   // of each rank, by any source
  std::map<std::pair<RecordSource, uint32_t>, uint32_t> of_world_rank_, of_rank_;
  std::map<GroupKey, Group> groups_;
  std::map<std::string, int> names_;
  std::map<std::string, uint16_t, std::less<>> texts_;
  uint64_t members_ = 0;
};

}  // namespace

std::optional<Duration> LongestWait(const Record& record) {
  std::optional<Duration> longest;
  const auto take = [&](Monotonic since) {
    longest = std::max(longest.value_or(Duration::zero()), AgeOf(record, since));
  };
  const bool is_asking = IsAsking(record);
  for (const RecordedOperation& operation : record.operations) {
    if (IsWaitedFor(record, operation, is_asking)) take(WaitedSince(record, operation));
  }
  for (const RecordedThread& thread : record.threads) {
    if (thread.inside) take(thread.changed);
  }
  if (record.elsewhere > 0 && record.elsewhere_changed) take(*record.elsewhere_changed);
  return longest;
}

ObservedRecords ObserveRecords(std::span<const RankRecord> records, uint32_t ranks) {
  return Observer(records, ranks).Observe();
}

}  // namespace aimaster::c4d
