#include "c4d/dump_observation.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "c4d/data_tree.h"
#include "c4d/limits.h"

namespace aimaster::c4d {
namespace {

constexpr uint32_t kNoCommunicator = UINT32_MAX;

class Builder {
 public:
  Builder(std::span<const RankDump> dumps, const GroupTable& groups, Duration stood_for)
      : dumps_(dumps), groups_(groups.groups()), stood_for_(stood_for), middle_ns_(MiddleNewest(dumps)) {}

  Observation Build() {
    MakeCommunicators();
    MakeRanks();
    MakeStates();
    return std::move(observation_);
  }

 private:
  // A dump that names a group without its members means the one of that name whose members others tell.
  uint32_t Resolve(uint32_t group) const {
    if (!groups_[group].members.empty()) return group;
    const auto told = told_.find(groups_[group].name);
    return told == told_.end() ? group : told->second;
  }

  void MakeCommunicators() {
    std::set<uint32_t> named;
    for (const RankDump& dump : dumps_) {
      for (const GroupPart& part : dump.parts) named.insert(part.group);
    }
    for (const uint32_t group : named) {
      if (!groups_[group].members.empty()) told_.emplace(groups_[group].name, group);
    }
    std::map<uint32_t, std::vector<Rank>> members;
    for (const uint32_t group : named) {
      if (!groups_[group].members.empty()) members[group] = groups_[group].members;
    }
    for (const RankDump& dump : dumps_) {
      for (const GroupPart& part : dump.parts) {
        std::vector<Rank>& list = members[Resolve(part.group)];
        if (groups_[Resolve(part.group)].members.empty()) list.push_back(dump.rank);  // dumps come by rank
      }
    }
    std::vector<uint32_t> order;
    for (const auto& [group, list] : members) order.push_back(group);
    std::ranges::sort(order, {}, [&](uint32_t group) {
      const std::optional<int64_t> number = ParseInteger(groups_[group].name);
      return std::tuple(!number, number.value_or(0), std::string_view(groups_[group].name), group);
    });
    communicator_of_.assign(groups_.size(), kNoCommunicator);
    std::map<std::string_view, int> times;
    for (const uint32_t group : order) {
      communicator_of_[group] = static_cast<uint32_t>(observation_.communicators.size());
      std::string name = groups_[group].name;
      if (const int time = ++times[groups_[group].name]; time > 1) name += " (" + std::to_string(time) + ")";
      observation_.communicators.push_back(
          {.name = std::move(name), .description = groups_[group].description, .members = std::move(members[group])});
    }
  }

  void MakeRanks() {
    uint32_t count = 0;
    for (const Communicator& communicator : observation_.communicators) {
      if (!communicator.members.empty()) count = std::max(count, Value(communicator.members.back()) + 1);
    }
    for (const RankDump& dump : dumps_) count = std::max(count, Value(dump.rank) + 1);
    observation_.ranks.resize(count);
    for (const RankDump& dump : dumps_) {
      RankState& rank = observation_.ranks[Value(dump.rank)];
      rank.is_observed = dump.is_whole;
      rank.outside = AgeOf(dump, dump.newest_ns);
      rank.has_lost_operations = !dump.is_whole || std::ranges::any_of(dump.parts, HasForgotten);
    }
  }

  void MakeStates() {
    std::map<std::pair<uint32_t, Rank>, const GroupPart*> parts;  // by communicator
    std::vector<bool> carries(observation_.communicators.size(), false);
    for (const RankDump& dump : dumps_) {
      for (const GroupPart& part : dump.parts) {
        const uint32_t communicator = communicator_of_[Resolve(part.group)];
        parts.emplace(std::pair(communicator, dump.rank), &part);
        if (part.carries_point_to_point) carries[communicator] = true;
      }
    }
    std::vector<const RankDump*> dump_of(observation_.ranks.size(), nullptr);
    for (const RankDump& dump : dumps_) dump_of[Value(dump.rank)] = &dump;
    for (uint32_t communicator = 0; communicator < carries.size(); ++communicator) {
      for (const Rank rank : observation_.communicators[communicator].members) {
        const RankDump* dump = dump_of[Value(rank)];
        if (dump == nullptr) continue;
        const auto part = parts.find({communicator, rank});
        if (part != parts.end()) {
          AddState(communicator, *dump, *part->second, carries[communicator]);
        } else if (dump->tells_all_groups) {
          AddState(communicator, *dump, {}, carries[communicator]);
        }
      }
    }
  }

  void AddState(uint32_t communicator, const RankDump& dump, const GroupPart& part, bool carries) {
    MemberState state{.communicator = communicator,
                      .rank = dump.rank,
                      .issued = part.last_issued,
                      .idle = AgeOf(dump, part.changed_ns),
                      .first_operation = static_cast<uint32_t>(observation_.operations.size()),
                      .carries_point_to_point = carries};
    const std::optional<DumpStatus> counters = dump.is_whole && !carries ? part.status : std::nullopt;
    const bool is_known = part.has_entries || counters || (dump.tells_all_groups && !part.status);
    if (!is_known || (!dump.is_whole && part.open.empty())) return;
    if (counters) state.issued = std::max(state.issued, counters->enqueued.value_or(0));
    const uint64_t completed = counters ? counters->completed.value_or(0) : 0;
    uint64_t first_open = kUnknown;
    for (const DumpEntry& entry : part.open) {
      if (!entry.is_point_to_point && entry.collective_sequence > completed) {
        first_open = std::min(first_open, entry.collective_sequence);
      }
    }
    const bool all_done = first_open == kUnknown && !counters;
    state.completed = std::max({completed, part.last_done, all_done ? state.issued : 0});
    if (first_open != kUnknown) state.completed = std::max(completed, first_open == 0 ? 0 : first_open - 1);
    state.issued = std::max(state.issued, state.completed);
    if (dump.tells_starts) {
      const uint64_t started = counters ? counters->started.value_or(0) : 0;
      state.started = std::max({started, part.last_started, state.completed});
    }
    for (const DumpEntry& entry : part.open) {
      if (!IsDoneByStatus(entry, part, state, carries)) AddOperation(entry, dump, state);
    }
    state.operation_count = static_cast<uint32_t>(observation_.operations.size()) - state.first_operation;
    observation_.states.push_back(state);
  }

  // The recorder kept so few that of the point-to-point operations that are not done the oldest are gone.
  static bool HasForgotten(const GroupPart& part) {
    if (!part.status || !part.carries_point_to_point) return false;
    uint64_t oldest = kUnknown;
    for (const DumpEntry& entry : part.open) {
      if (entry.is_point_to_point) oldest = std::min(oldest, entry.point_to_point_sequence);
    }
    const bool counts_them = part.status->enqueued.value_or(0) > part.last_issued;
    return counts_them && oldest != kUnknown && oldest > part.status->completed.value_or(0) + 1;
  }

  static bool IsDoneByStatus(const DumpEntry& entry, const GroupPart& part, const MemberState& state, bool carries) {
    if (!entry.is_point_to_point) return entry.collective_sequence <= state.completed;
    // Members of batches stay open for ever in the recorder's eyes. Where pg_status counts point-to-point operations,
    // it says how far they are.
    const bool counts_them = part.status && part.status->enqueued.value_or(0) > part.last_issued;
    return carries && counts_them && entry.point_to_point_sequence <= part.status->completed.value_or(0);
  }

  void AddOperation(const DumpEntry& entry, const RankDump& dump, const MemberState& state) {
    if (observation_.operations.size() == kOperationsMax) return;
    Operation operation{.sequence = entry.collective_sequence,
                        .count = entry.count,
                        .age = AgeOf(dump, entry.created_ns),
                        .name = TextOf(entry.name),
                        .type = TextOf(entry.type),
                        .function = entry.function};
    const bool is_begun = entry.is_started || (!entry.is_point_to_point && state.started != kUnknown &&
                                               entry.collective_sequence <= state.started);
    if (is_begun) {
      operation.start = Start::kStarted;
    } else if (dump.tells_starts && !entry.is_point_to_point) {
      operation.start = Start::kNotStarted;
    }
    if (entry.is_point_to_point) {
      operation.sequence = entry.point_to_point_sequence;
      operation.peer = PeerOf(entry, dump.rank, observation_.communicators[state.communicator].members);
    }
    observation_.operations.push_back(operation);
  }

  // Positions in the group; where the rank's own is not where it stands, they are ranks of the job.
  static Rank PeerOf(const DumpEntry& entry, Rank rank, const std::vector<Rank>& members) {
    constexpr Rank kUnknownPeer{UINT32_MAX};
    if (!entry.own_position || !entry.peer_position) return kUnknownPeer;
    const uint32_t own = *entry.own_position;
    const uint32_t peer = *entry.peer_position;
    if (own < members.size() && members[own] == rank && peer < members.size()) return members[peer];
    const bool are_ranks = own == Value(rank) && std::ranges::binary_search(members, Rank{peer});
    return are_ranks ? Rank{peer} : kUnknownPeer;
  }

  Duration AgeOf(const RankDump& dump, int64_t time_ns) const {
    if (time_ns == 0) return kNoAge;
    // A clock that is far from the others knows itself alone.
    const bool agrees = Duration(std::abs(dump.newest_ns - middle_ns_)) <= kClocksApartMax;
    const Duration least{std::max(agrees ? middle_ns_ : 0, dump.newest_ns) - time_ns};
    // Longer than that, so that nothing counts as too young.
    return stood_for_ + Duration(1) + std::max(least, Duration::zero());
  }

  uint16_t TextOf(const std::string& text) {
    if (text.empty()) return 0;
    const auto known = texts_.find(text);
    if (known != texts_.end()) return known->second;
    if (observation_.texts.size() >= kTextsMax) return 0;
    const auto index = static_cast<uint16_t>(observation_.texts.size());
    observation_.texts.push_back(text);
    texts_.emplace(text, index);
    return index;
  }

  std::span<const RankDump> dumps_;
  const std::vector<GroupTable::Group>& groups_;
  Duration stood_for_;
  int64_t middle_ns_;
  std::map<std::string, uint32_t> told_;  // groups whose members are told, by name
  std::vector<uint32_t> communicator_of_;
  std::map<std::string, uint16_t> texts_;
  Observation observation_;
};

}  // namespace

int64_t MiddleNewest(std::span<const RankDump> dumps) {
  std::vector<int64_t> times;
  for (const RankDump& dump : dumps) {
    if (dump.newest_ns != 0) times.push_back(dump.newest_ns);
  }
  if (times.empty()) return 0;
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

Observation MakeObservation(std::span<const RankDump> dumps, const GroupTable& groups, Duration stood_for) {
  return Builder(dumps, groups, stood_for).Build();
}

}  // namespace aimaster::c4d
