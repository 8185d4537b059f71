// What holds for every job, whatever has failed in it and whatever is known of it.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "c4d/c4d_test_support.h"
#include "c4d/simulated_job.h"

namespace aimaster::c4d {
namespace {

SimulatedLayout AnyLayout() {
  const uint32_t pipeline = *rc::gen::inRange(1u, 5u);
  return {.tensor = *rc::gen::inRange(1u, 4u),
          .data = *rc::gen::inRange(1u, 4u),
          .pipeline = pipeline,
          .microbatches = *rc::gen::inRange(1u, 5u),
          .steps = 3,
          .chunks = pipeline < 3 ? 1 : *rc::gen::inRange(1u, 4u),
          .ahead = *rc::gen::inRange(1u, 60u),
          .tells_start = *rc::gen::arbitrary<bool>(),
          .overlaps = *rc::gen::arbitrary<bool>()};
}

struct Broken {
  Observation job;
  std::set<uint32_t> culprits;
  bool has_left = false;  // a program stands still, and all that others miss of it are its parts of transfers
};

// Others have issued a collective that it has not.
bool IsMissedInCollective(const Observation& job, uint32_t rank) {
  return std::ranges::any_of(job.states, [&](const MemberState& mine) {
    return mine.rank == Rank{rank} && std::ranges::any_of(job.states, [&](const MemberState& other) {
             return other.communicator == mine.communicator && other.issued > mine.issued;
           });
  });
}

// A job in which up to three ranks have failed, each in its way, before anybody else was done.
Broken AnyBrokenJob(std::vector<SimulatedFault> faults = {SimulatedFault::kHost, SimulatedFault::kDevice,
                                                          SimulatedFault::kCompletions}) {
  const SimulatedLayout layout = AnyLayout();
  SimulatedJob simulated(layout);
  Broken broken;
  std::vector<uint32_t> hosts;
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
    const uint32_t rank = *rc::gen::inRange(0u, layout.ranks());
    if (!broken.culprits.insert(rank).second) continue;
    const uint32_t at = *rc::gen::inRange(0u, simulated.program_length(rank) / 2);
    const SimulatedFault fault = *rc::gen::elementOf(faults);
    simulated.Break(rank, fault, at);
    if (fault == SimulatedFault::kHost) hosts.push_back(rank);
  }
  broken.job = simulated.Run(30s);
  for (uint32_t rank = 0; rank < layout.ranks(); ++rank) {
    if (!broken.culprits.contains(rank)) RC_PRE(!simulated.is_finished(rank));
  }
  for (const uint32_t rank : hosts) {
    if (!IsMissedInCollective(broken.job, rank)) broken.has_left = true;
  }
  return broken;
}

void CheckNamed(const std::vector<Verdict>& verdicts, const std::set<uint32_t>& culprits) {
  RC_LOG() << Describe(verdicts);
  for (const Verdict& verdict : verdicts) {
    if (verdict.kind == VerdictKind::kNoProbeData || verdict.is_group) continue;
    for (const Rank rank : verdict.ranks) RC_ASSERT(culprits.contains(Value(rank)));
  }
}

// States and operations that no program would leave behind.
Observation AnythingAtAll() {
  const uint32_t ranks = *rc::gen::inRange(1u, 7u);
  JobBuilder job(ranks);
  const auto age = [] { return *rc::gen::elementOf(std::vector<Duration>{kNoAge, 1s, 20s, 21s, 22s, 300s}); };
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    job.Process(rank) = {.is_observed = *rc::gen::inRange(0, 6) > 0, .is_alive = *rc::gen::inRange(0, 8) > 0};
    if (*rc::gen::arbitrary<bool>()) job.Process(rank).outside = age();
  }
  const uint32_t groups = *rc::gen::inRange(1u, 4u);
  for (uint32_t group = 0; group < groups; ++group) {
    std::vector<uint32_t> members;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      if (*rc::gen::inRange(0, 4) > 0) members.push_back(rank);
    }
    job.Group(std::to_string(group), members);
    for (const uint32_t member : members) {
      if (*rc::gen::inRange(0, 8) == 0) continue;
      std::vector<Operation> operations;
      const uint64_t completed = *rc::gen::inRange(0u, 4u), issued = completed + *rc::gen::inRange(0u, 4u);
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
        operations.push_back({.sequence = *rc::gen::inRange(1u, 8u),
                              .count = *rc::gen::inRange(1u, 3u),
                              .age = age(),
                              .peer = Rank{*rc::gen::inRange(0u, ranks + 1)},
                              .function = static_cast<Function>(*rc::gen::inRange(0, 13)),
                              .start = static_cast<Start>(*rc::gen::inRange(0, 3))});
      }
      job.Member(member, issued, completed, operations);
      if (*rc::gen::arbitrary<bool>()) job.Last().started = *rc::gen::inRange(0u, 8u);
      if (*rc::gen::arbitrary<bool>()) job.Last().progress = *rc::gen::inRange(0u, 3u);
      job.Last().idle = age();
    }
  }
  return job.Job();
}

RC_GTEST_PROP(HangsPropertyTest, OnlyCulpritsAreNamedWhereRanksAreNamed, ()) {
  const Broken broken = AnyBrokenJob();
  const std::vector<Verdict> verdicts = FindHangs(broken.job, {});
  RC_LOG() << Describe(verdicts);
  const bool is_missed = std::ranges::any_of(broken.job.states, [&](const MemberState& state) {
    return state.operation_count > 0 && !broken.culprits.contains(Value(state.rank));
  });
  // Who has finished after its last transfer, and who stands still after one, look alike: then nobody may be named.
  RC_ASSERT(!verdicts.empty() || !is_missed || broken.has_left);
  CheckNamed(verdicts, broken.culprits);
  for (const Verdict& verdict : verdicts) {
    const bool names_one =
        std::ranges::any_of(verdict.ranks, [&](Rank rank) { return broken.culprits.contains(Value(rank)); });
    RC_ASSERT(names_one);
  }
}

RC_GTEST_PROP(HangsPropertyTest, AHealthyJobGivesNoVerdictWheneverOneLooks, ()) {
  SimulatedJob simulated(AnyLayout());
  simulated.StopAfter(*rc::gen::inRange(0u, 2000u));
  const std::vector<Verdict> verdicts = FindHangs(simulated.Run(50ms), {});
  RC_LOG() << Describe(verdicts);
  RC_ASSERT(verdicts.empty());
}

RC_GTEST_PROP(HangsPropertyTest, NobodyOfWhomNothingIsKnownIsAccused, ()) {
  Observation job = *rc::gen::arbitrary<bool>() ? AnyBrokenJob().job : AnythingAtAll();
  for (RankState& rank : job.ranks) rank.is_observed = rank.is_observed && *rc::gen::inRange(0, 4) > 0;
  const std::vector<Verdict> verdicts = FindHangs(job, {});
  RC_LOG() << Describe(verdicts);
  for (const uint32_t rank : AllAccused(verdicts)) {
    RC_ASSERT(job.ranks[rank].is_observed);
    RC_ASSERT(job.ranks[rank].is_alive);
  }
}

// A verdict on a group says that its culprit can't be told: nobody is named by it.
std::set<uint32_t> AllNamed(std::vector<Verdict> verdicts) {
  std::erase_if(verdicts, [](const Verdict& verdict) { return verdict.is_group; });
  return AllAccused(verdicts);
}

RC_GTEST_PROP(HangsPropertyTest, WithoutAVictimNobodyElseIsNamed, ()) {
  const Broken broken = AnyBrokenJob();
  Observation less = broken.job;
  const int victims = *rc::gen::inRange(1, 4);
  for (int i = 0; i < victims; ++i) {
    const auto rank = *rc::gen::inRange(0u, static_cast<uint32_t>(less.ranks.size()));
    if (!broken.culprits.contains(rank)) Hide(less, rank);
  }
  const std::vector<Verdict> before = FindHangs(broken.job, {}), after = FindHangs(less, {});
  RC_LOG() << Describe(before) << "without:\n" << Describe(after);
  const std::set<uint32_t> accused = AllAccused(before);
  for (const uint32_t rank : AllNamed(after)) RC_ASSERT(accused.contains(rank) || broken.culprits.contains(rank));
}

// What a verdict says, without its words.
using Said = std::tuple<VerdictKind, Level, std::vector<Rank>, bool, std::optional<uint32_t>, std::optional<uint64_t>,
                        std::optional<Duration>, std::vector<Rank>>;

std::vector<Said> SaidOf(const Observation& job, const std::vector<uint32_t>& label) {
  const auto relabelled = [&](std::vector<Rank> ranks) {
    for (Rank& rank : ranks) rank = Rank{label[Value(rank)]};
    std::ranges::sort(ranks);
    return ranks;
  };
  std::vector<Said> said;
  for (const Verdict& verdict : FindHangs(job, {})) {
    said.emplace_back(verdict.kind, verdict.level, relabelled(verdict.ranks), verdict.is_group, verdict.communicator,
                      verdict.sequence, verdict.since, relabelled(verdict.waiting));
  }
  std::ranges::sort(said);
  return said;
}

RC_GTEST_PROP(HangsPropertyTest, OtherNumbersOfTheSameRanksGiveTheSameVerdicts, ()) {
  const Observation job = AnyBrokenJob().job;
  std::vector<uint32_t> label(job.ranks.size());
  std::iota(label.begin(), label.end(), 0u);
  for (size_t i = label.size(); i-- > 1;) std::swap(label[i], label[*rc::gen::inRange<size_t>(0, i + 1)]);

  Observation relabelled = job;
  for (size_t rank = 0; rank < label.size(); ++rank) relabelled.ranks[label[rank]] = job.ranks[rank];
  for (Communicator& group : relabelled.communicators) {
    for (Rank& member : group.members) member = Rank{label[Value(member)]};
    std::ranges::sort(group.members);
  }
  for (MemberState& state : relabelled.states) state.rank = Rank{label[Value(state.rank)]};
  std::ranges::sort(relabelled.states, {},
                    [](const MemberState& state) { return std::pair(state.communicator, state.rank); });
  for (Operation& operation : relabelled.operations) {
    if (Value(operation.peer) < label.size()) operation.peer = Rank{label[Value(operation.peer)]};
  }
  std::vector<uint32_t> same(label.size());
  std::iota(same.begin(), same.end(), 0u);
  RC_ASSERT(SaidOf(job, label) == SaidOf(relabelled, same));
}

RC_GTEST_PROP(HangsPropertyTest, WithOperationsThatWereLostOnlyCulpritsAreNamed, ()) {
  const Broken broken = AnyBrokenJob({SimulatedFault::kHost, SimulatedFault::kCompletions});
  // A ring is written over from its oldest entry on, and never up to its last.
  std::vector<Duration> last(broken.job.ranks.size(), Duration::max());
  for (const MemberState& state : broken.job.states) {
    for (uint32_t i = state.first_operation; i < state.first_operation + state.operation_count; ++i) {
      last[Value(state.rank)] = std::min(last[Value(state.rank)], broken.job.operations[i].age);
    }
  }
  const Duration kept = std::chrono::milliseconds(*rc::gen::inRange(30'000, 30'200));
  Observation job = KeepOperations(broken.job, [&](const MemberState& state, uint32_t index) {
    return broken.job.operations[index].age <= std::max(kept, last[Value(state.rank)]);
  });
  for (RankState& rank : job.ranks) rank.has_lost_operations = true;
  if (*rc::gen::arbitrary<bool>()) {
    for (RankState& rank : job.ranks) rank.is_observed = *rc::gen::inRange(0, 4) > 0;
  }
  CheckNamed(FindHangs(job, {}), broken.culprits);
}

RC_GTEST_PROP(HangsPropertyTest, WithRanksOfWhomNothingIsKnownOnlyCulpritsAreNamed, ()) {
  Broken broken = AnyBrokenJob();
  for (RankState& rank : broken.job.ranks) rank.is_observed = *rc::gen::inRange(0, 4) > 0;
  CheckNamed(FindHangs(broken.job, {}), broken.culprits);
}

}  // namespace
}  // namespace aimaster::c4d
