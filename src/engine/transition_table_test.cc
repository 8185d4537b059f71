// Every phase × every input: what happens, also where nothing does. And what holds whatever happens.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "engine/engine_harness.h"

namespace aimaster {
namespace {

// A job of two instances on two nodes, brought to the given phase.
EngineHarness InPhase(Phase phase) {
  EngineHarness job(2, 2);
  if (phase == Phase::kNew) return job;
  job.Submit();
  if (phase == Phase::kAcquiring) return job;
  job.JoinAll();
  if (phase == Phase::kReserving) return job;
  job.Port();
  job.StartedAll();
  if (phase == Phase::kRunning) return job;
  job.Fail(0);
  if (phase == Phase::kCollecting) return job;
  job.Collect();
  if (phase == Phase::kJudging) return job;
  job.Judged(job.Verdict(0));
  if (phase == Phase::kStopping) return job;
  job.Feed(StopRequested{true, "test"});
  job.EndedAll();
  return job;
}

Event MakeEvent(size_t kind, const EngineHarness& job) {
  const JobState& state = job.job();
  const bool submitted = !state.instances.empty();
  const Attempt attempt = submitted ? state.instances[1].attempt : Attempt{};
  const InstanceIndex one{1};
  switch (kind) {
    case 0:
      return JobSubmitted{job.spec};
    case 1:
      return MasterStarted{Epoch{2}};
    case 2:
      return NodeJoined{NodeIndex{0}, "node-0", "10.0.0.0"};
    case 3:
      return NodeDenied{"no more"};
    case 4:
      return NodeLost{NodeIndex{1}, "gone"};
    case 5:
      return PortReserved{state.reservation, 1234};
    case 6:
      return PortRefused{state.reservation, "none"};
    case 7:
      return InstanceStarted{one, attempt};
    case 8:
      return InstanceReady{one, attempt};
    case 9:
      return RankSucceeded{one, attempt, Rank{1}};
    case 10:
      return submitted ? RankFailed{job.Failure(1, 1)} : RankFailed{};
    case 11:
      return InstanceEnded{one, attempt};
    case 12:
      return EvidenceCollected{state.collection, NodeIndex{1}, {}};
    case 13:
      return FailureJudged{state.judgement_number, submitted ? job.Verdict(1, Retryable::kNo) : Judgement{}};
    case 14:
      return StopRequested{false, "test"};
    default:
      return Tick{};
  }
}
constexpr size_t kEventKinds = std::variant_size_v<Event>;
constexpr Phase kPhases[] = {Phase::kNew,        Phase::kAcquiring, Phase::kReserving, Phase::kRunning,
                             Phase::kCollecting, Phase::kJudging,   Phase::kStopping,  Phase::kEnded};

TEST(TransitionTableTest, EveryInputInEveryPhaseLeadsWhereTheTableSays) {
  // Rows: phases in their order. Columns: inputs in the order of Event. A letter is the phase that follows.
  //                        Submitted Master Joined Denied Lost Reserved Refused Started Ready Succeeded Failed Ended
  //                        Evidence Judged Stop Tick
  const char* const table[] = {/* New        */ "A N N N N N N N N N N N N N N N",
                               /* Acquiring  */ "A A A E A A A A A A A A A A E A",
                               /* Reserving  */ "P P P P A R P P P P P P P P E P",
                               /* Running    */ "R R R R C R R R R R C C R R S R",
                               /* Collecting */ "C C C C J C C C C J J J C C S C",
                               /* Judging    */ "J J J J J J J J J J J J J S S J",
                               /* Stopping   */ "S S S S S S S S S S S S S S S S",
                               /* Ended      */ "E E E E E E E E E E E E E E E E"};
  const std::string letters = "NAPRCJSE";
  for (size_t phase = 0; phase < std::size(kPhases); ++phase) {
    for (size_t kind = 0; kind < kEventKinds; ++kind) {
      EngineHarness job = InPhase(kPhases[phase]);
      ASSERT_EQ(job.job().phase, kPhases[phase]);
      job.Feed(MakeEvent(kind, job));
      EXPECT_EQ(letters[static_cast<size_t>(job.job().phase)], table[phase][kind * 2])
          << "phase " << letters[phase] << ", input " << kind;
    }
  }
}

TEST(TransitionTableTest, WhatIsAboutAFormerAttemptChangesNothing) {
  EngineHarness job = InPhase(Phase::kStopping);
  job.EndedAll();
  job.Port();
  job.StartedAll();
  ASSERT_EQ(job.AttemptOf(1), Attempt{1});
  const InstanceIndex one{1};
  RankFailure old = job.Failure(1, 1);
  old.attempt = Attempt{0};
  for (const Event& event :
       {Event(InstanceStarted{one, Attempt{0}}), Event(InstanceReady{one, Attempt{0}}),
        Event(RankSucceeded{one, Attempt{0}, Rank{1}}), Event(RankFailed{old}), Event(InstanceEnded{one, Attempt{0}}),
        Event(InstanceEnded{InstanceIndex{99}, Attempt{0}})}) {
    EXPECT_EQ(job.Feed(event), StepResult{}) << event.index();
  }
}

// Plays a random job: mostly sensible answers, sometimes anything.
std::vector<size_t> Anything() {
  return *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, kEventKinds + 4));
}

RC_GTEST_PROP(EnginePropertyTest, WhateverHappensTheRulesHold, ()) {
  EngineHarness job(2, 2);
  job.spec.fault_tolerance.max_num_of_job_restart = 2;
  job.Submit();
  std::map<InstanceIndex, std::set<Attempt>> started;
  std::set<InstanceIndex> live;
  for (const size_t step : Anything()) {
    job.Pass(std::chrono::milliseconds{50});
    const JobStatus before = job.job().status;
    if (step < kEventKinds) {
      job.Feed(MakeEvent(step, job));
    } else if (job.engine.NextDeadline()) {
      job.NextTick();
    } else {
      job.Feed(InstanceEnded{InstanceIndex{0}, job.AttemptOf(0)});
    }
    if (IsEnd(before)) {
      RC_ASSERT(job.job().status == before);
      RC_ASSERT(job.last.actions.empty());
    }
    for (const StartInstance& start : EngineHarness::Of<StartInstance>(job.last)) {
      RC_ASSERT(started[start.instance].insert(start.attempt).second);  // an attempt is started once
    }
    RC_ASSERT(job.job().restarts <= 2u);
    RC_ASSERT(job.job().records.size() == job.job().restarts);
    for (const auto& [index, node] : job.job().nodes) RC_ASSERT(!(node.isolated && node.lost && !node.joined));
  }
}

RC_GTEST_PROP(EnginePropertyTest, TheSameInputsGiveTheSameResults, ()) {
  EngineHarness first(2, 2);
  first.Submit();
  for (const size_t step : Anything()) {
    first.Pass(std::chrono::milliseconds{50});
    first.Feed(MakeEvent(step % kEventKinds, first));
  }
  Engine again, once_more;
  for (const Input& input : first.inputs) RC_ASSERT(again.Step(input) == once_more.Step(input));
  RC_ASSERT(again.Outstanding() == first.engine.Outstanding());
  RC_ASSERT(again.NextDeadline() == first.engine.NextDeadline());
}

}  // namespace
}  // namespace aimaster
