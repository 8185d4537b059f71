#include "c4d/mismatch.h"

#include <algorithm>

namespace aimaster::c4d {
namespace {

bool MayCountsDiffer(Function function) {
  switch (function) {
    case Function::kAllToAll:
    case Function::kAllGather:
    case Function::kGather:
    case Function::kScatter:
    case Function::kBarrier:
    case Function::kOtherCollective:
      return true;
    case Function::kAllReduce:
    case Function::kReduceScatter:
    case Function::kBroadcast:
    case Function::kReduce:
    case Function::kScan:
    case Function::kSend:
    case Function::kReceive:
      return false;
  }
  return false;
}

bool HasRoot(Function function) {
  return function == Function::kBroadcast || function == Function::kReduce || function == Function::kGather ||
         function == Function::kScatter;
}

Difference Compare(const Observation& observation, const Operation& a, const Operation& b) {
  const auto differ = [&](uint16_t left, uint16_t right) {
    return left != right && left != 0 && right != 0 && observation.Text(left) != observation.Text(right);
  };
  constexpr Rank kNobody{UINT32_MAX};
  if (a.function != b.function) {
    // Who tells only the name of one may mean the same.
    const bool is_told = a.function != Function::kOtherCollective && b.function != Function::kOtherCollective;
    return is_told || differ(a.name, b.name) ? Difference::kOperation : Difference::kNothing;
  }
  if (a.function == Function::kOtherCollective && differ(a.name, b.name)) return Difference::kOperation;
  if (HasRoot(a.function) && a.peer != b.peer && a.peer != kNobody && b.peer != kNobody) return Difference::kOperation;
  if (a.function == Function::kBarrier) return Difference::kNothing;
  if (differ(a.type, b.type)) return Difference::kSize;
  const bool is_counted = a.count != kUnknown && b.count != kUnknown && !MayCountsDiffer(a.function);
  return is_counted && a.count != b.count ? Difference::kSize : Difference::kNothing;
}

}  // namespace

Difference FindDifference(const Observation& observation, const Places& places, const Rung& rung) {
  Difference found = Difference::kNothing;
  if (rung.operation == kNone) return found;
  const Operation& first = observation.operations[rung.operation];
  for (const Seat& seat : places.SeatsOf(rung)) {
    if (seat.operation == kNone) continue;
    found = std::max(found, Compare(observation, first, observation.operations[seat.operation]));
  }
  return found;
}

std::vector<Party> PartiesOf(const Observation& observation, const Places& places, const Rung& rung) {
  // More parties than that are no parties; the last takes who is left.
  constexpr size_t kPartiesMax = 16;
  std::vector<Party> parties;
  for (const Seat& seat : places.SeatsOf(rung)) {
    if (seat.operation == kNone) continue;
    auto party = std::ranges::find_if(parties, [&](const Party& candidate) {
      return Compare(observation, observation.operations[candidate.operation],
                     observation.operations[seat.operation]) == Difference::kNothing;
    });
    if (party == parties.end()) {
      if (parties.size() == kPartiesMax) {
        party = parties.end() - 1;
      } else {
        party = parties.insert(parties.end(), Party{.operation = seat.operation, .ranks = {}});
      }
    }
    party->ranks.push_back(seat.rank);
  }
  std::ranges::sort(parties, {}, [](const Party& party) {
    return std::pair(-static_cast<int64_t>(party.ranks.size()), party.ranks.front());
  });
  return parties;
}

}  // namespace aimaster::c4d
