#include "c4d/hang_words.h"

#include "core/count.h"
#include "core/rank_set.h"

namespace aimaster::c4d {

std::string RanksText(std::span<const uint32_t> ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + RankSet({ranks.begin(), ranks.end()}).Text(kRunsInTextMax);
}

std::string Capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string GroupText(const Observation& observation, uint32_t communicator) {
  const Communicator& group = observation.communicators[communicator];
  if (group.description.empty()) return "group " + group.name;
  return group.description + " " + group.name;
}

std::string OperationText(const Observation& observation, uint32_t index) {
  if (index == kNone) return "a collective";
  const Operation& operation = observation.operations[index];
  const bool is_named = operation.function == Function::kOtherCollective && operation.name != 0;
  std::string text(is_named ? observation.Text(operation.name) : Name(operation.function));
  if (operation.count == kUnknown) return text;
  text += " of " + std::to_string(operation.count);
  return text + (operation.type == 0 ? " elements" : " " + std::string(observation.Text(operation.type)));
}

std::string WhichText(const Observation& observation, const Rung& rung) {
  std::string text = "Collective";
  if (rung.operation != kNone) {
    const Operation& operation = observation.operations[rung.operation];
    const bool is_named = operation.function == Function::kOtherCollective && operation.name != 0;
    text = is_named ? observation.Text(operation.name) : Name(operation.function);
  }
  return text + " " + std::to_string(rung.position) + " in " + GroupText(observation, rung.communicator);
}

std::string OutsideSentence(const Observation& observation, uint32_t communicator, const Places& places,
                            uint32_t rank) {
  std::string text = "Rank " + std::to_string(rank) + " has ";
  constexpr std::string_view kOutside = "nothing outstanding in any group: it is outside of communication.";
  const Seat* seat = SeatIn(observation, places, communicator, Rank{rank});
  if (seat == nullptr || places.groups[communicator].carries_point_to_point) return text + std::string(kOutside);
  return text + "completed all of the " + Count(observation.states[seat->state].issued, "collective") +
         " that it has issued there, and has " + std::string(kOutside);
}

std::string BeforeSentence(uint32_t rank) {
  return "The device of " + RankText(rank) +
         " has begun nothing of what its program has issued: it is stuck in something before.";
}

std::string HeldSentence(uint32_t rank, Hold hold) {
  return "The process of " + RankText(rank) +
         (hold == Hold::kStopped ? " is stopped, by a signal or a debugger."
                                 : " is in the kernel and can't be interrupted: a driver, a device or a file server.");
}

std::string QuietSentence(uint32_t rank, Duration quiet) {
  return "Rank " + std::to_string(rank) + " has not entered or left any operation for " + FormatDuration(quiet) + ".";
}

std::string WaitingSentence(std::span<const Rank> waiting) {
  std::vector<uint32_t> ranks;
  ranks.reserve(waiting.size());
  for (const Rank rank : waiting) ranks.push_back(Value(rank));
  return Count(ranks.size(), "rank") + (ranks.size() == 1 ? " waits" : " wait") +
         " for that, directly or through others: " + RanksText(ranks) + ".";
}

}  // namespace aimaster::c4d
