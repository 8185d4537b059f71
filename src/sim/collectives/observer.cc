#include "sim/collectives/observer.h"

#include <algorithm>
#include <string>
#include <utility>

namespace aimaster::sim::collectives {
namespace {

constexpr uint32_t kRanksPerNode = 8;
constexpr size_t kFunctions = static_cast<size_t>(c4d::Function::kOtherCollective) + 1;

// Of the transport: how far it is where all have come, where some have, and where the stuck one fell behind.
constexpr uint64_t kFar = 7, kBehind = 3, kBegun = 2;

}  // namespace

Observer::Observer(const Cluster& cluster, const Sight& sight) : cluster_(cluster), sight_(sight) {
  const Layout& layout = cluster.layout();
  observation_.ranks.resize(layout.ranks());
  for (const char* type : kTypes) observation_.texts.emplace_back(type);
  for (size_t i = 0; i < kFunctions; ++i) {
    observation_.texts.push_back("nccl:" + std::string(c4d::Name(static_cast<c4d::Function>(i))));
  }
  for (uint32_t group = 0; group < layout.groups().size(); ++group) {
    c4d::Communicator communicator{.name = std::to_string(group),
                                   .description = std::string(Name(layout.groups()[group].part))};
    for (const uint32_t rank : layout.groups()[group].members) communicator.members.push_back(Rank{rank});
    observation_.communicators.push_back(std::move(communicator));
    seen_.emplace_back(layout.groups()[group].members.size());
  }
}

void Observer::Collect(uint32_t rank) {
  if (sight_.is_hidden[rank]) return;
  c4d::RankState& of_rank = observation_.ranks[rank];
  of_rank.is_observed = true;
  if (sight_.outside) of_rank.outside = Age(cluster_.LastCrossing(rank));
  for (size_t part = 0; part < kParts; ++part) {
    const uint32_t group = cluster_.layout().GroupOf(rank, static_cast<Part>(part));
    if (group == kNone) continue;
    const Member& member = cluster_.MemberOf(rank, group);
    Seen& seen = seen_[group][cluster_.layout().PositionOf(rank, group)];
    seen.state = {.communicator = group,
                  .rank = Rank{rank},
                  .issued = member.issued,
                  .started = sight_.started ? member.started : c4d::kUnknown,
                  .completed = member.completed,
                  .progress = sight_.progress ? ProgressOf(rank, member) : c4d::kUnknown,
                  .idle = Age(sight_.started ? std::max(member.crossed, member.begun) : member.crossed),
                  .carries_point_to_point = member.point_to_point_issued > 0};
    const size_t count = member.outstanding.size();
    const size_t kept = sight_.kept == 0 ? count : std::min<size_t>(count, sight_.kept);
    // Of collectives the counters tell that.
    const bool loses_transfers = kept < count && seen.state.carries_point_to_point;
    of_rank.has_lost_operations = of_rank.has_lost_operations || loses_transfers;
    for (size_t i = count - kept; i < count; ++i) seen.operations.push_back(Describe(member.outstanding[i]));
  }
}

c4d::Observation Observer::Take() {
  for (uint32_t group = 0; group < seen_.size(); ++group) {
    const std::vector<uint32_t>& members = cluster_.layout().groups()[group].members;
    for (size_t position = 0; position < members.size(); ++position) {
      if (!observation_.ranks[members[position]].is_observed) continue;
      Seen& seen = seen_[group][position];
      seen.state.first_operation = static_cast<uint32_t>(observation_.operations.size());
      seen.state.operation_count = static_cast<uint32_t>(seen.operations.size());
      observation_.states.push_back(seen.state);
      observation_.operations.insert(observation_.operations.end(), seen.operations.begin(), seen.operations.end());
    }
  }
  return std::move(observation_);
}

Duration Observer::Age(Duration since) const {
  return sight_.ages ? std::max(Duration::zero(), cluster_.now() - since) : c4d::kNoAge;
}

c4d::Operation Observer::Describe(const Outstanding& operation) const {
  const Call& call = operation.call;
  c4d::Operation described{.sequence = operation.sequence,
                           .count = call.count,
                           .age = Age(operation.issued_at),
                           .name = static_cast<uint16_t>(1 + kTypes.size() + static_cast<size_t>(call.function)),
                           .type = static_cast<uint16_t>(1 + call.type),
                           .function = call.function};
  if (call.peer != kNone) described.peer = Rank{call.peer};
  if (sight_.started) described.start = operation.is_started ? c4d::Start::kStarted : c4d::Start::kNotStarted;
  return described;
}

uint64_t Observer::ProgressOf(uint32_t rank, const Member& member) const {
  for (const Outstanding& operation : member.outstanding) {
    if (!operation.is_started || c4d::IsPointToPoint(operation.call.function)) continue;
    const Meeting* meeting = cluster_.FindMeeting(rank, operation);
    if (meeting == nullptr || meeting->arrived < cluster_.SizeOf(operation) || meeting->differs) return kBegun;
    if (meeting->stuck < 0) return kFar;
    const Fault& fault = cluster_.faults()[static_cast<size_t>(meeting->stuck)];
    return fault.shows_behind && fault.rank == rank ? kBehind : kFar;
  }
  return 0;
}

c4d::Observation ObserveAll(const Cluster& cluster, const Sight& sight) {
  Observer observer(cluster, sight);
  for (uint32_t rank = 0; rank < cluster.layout().ranks(); ++rank) observer.Collect(rank);
  return observer.Take();
}

c4d::Observation ObserveOver(Cluster& cluster, const Sight& sight, Duration collecting) {
  Observer observer(cluster, sight);
  const uint32_t ranks = cluster.layout().ranks();
  const Duration step = collecting / ((ranks + kRanksPerNode - 1) / kRanksPerNode);
  for (uint32_t first = 0; first < ranks; first += kRanksPerNode) {
    for (uint32_t rank = first; rank < std::min(ranks, first + kRanksPerNode); ++rank) observer.Collect(rank);
    cluster.RunUntil(cluster.now() + step);
  }
  return observer.Take();
}

}  // namespace aimaster::sim::collectives
