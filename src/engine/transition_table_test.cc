// Every phase × every input: what happens, also where nothing does. And what holds whatever happens.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "core/roles.h"
#include "engine/engine_harness.h"

namespace aimaster {
namespace {

// A job of two instances on two nodes, brought to the given phase.
EngineHarness InPhase(Phase phase, ExecutionMode mode = ExecutionMode::kSync) {
  EngineHarness job(2, 2);
  job.spec.fault_tolerance.execution_mode = mode;
  job.spec.fault_tolerance.enable_job_hang_detection = true;
  job.spec.fault_tolerance.enable_c4d_hang_detection = true;
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
  job.Judged(job.Verdict(0));  // one judgement over all: about the job, also in Async
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
    case 15:
      return RetryableErrorsAdded{{"connect timeout"}};
    case 16:
      return StacksRequested{"test"};
    case 17:
      return StacksCaptured{state.stacks.number, 2, 2, "stacks/1.json", "rank 1 is alone"};
    case 18:
      return HangFound{.round = state.round, .lasts = std::chrono::hours{1}, .interval = std::chrono::hours{1}};
    case 19:
      return CommunicationJudged{state.round, {{.kind = "RankCommHang", .level = C4dLogLevel::kError}}};
    case 20:
      return CustomMessageSent{one, Rank{1}, "loss is NaN"};
    case 21:
      return CheckpointTold{state.round, 80, Wall{std::chrono::seconds(1)}};
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
  //                        Evidence Judged Stop RetryableErrors StacksRequested StacksCaptured Hang Communication
  //                        Message Checkpoint Tick
  const char* const table[] = {/* New        */ "A N N N N N N N N N N N N N N N N N N N N N N",
                               /* Acquiring  */ "A A A E A A A A A A A A A A E A A A A A A A A",
                               /* Reserving  */ "P P P P A R P P P P P P P P E P P P P P P P P",
                               /* Running    */ "R R R R C R R R R R C C R R S R R R C C R R R",
                               /* Collecting */ "C C C C J C C C C J J J C C S C C C C C C C C",
                               /* Judging    */ "J J J J J J J J J J J J J S S J J J J J J J J",
                               /* Stopping   */ "S S S S S S S S S S S S S S S S S S S S S S S",
                               /* Ended      */ "E E E E E E E E E E E E E E E E E E E E E E E"};
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

TEST(TransitionTableTest, InAnAsyncJobTheSameHoldsUntilAWorkerIsDecidedAbout) {
  // As above; only that who succeeds, or ends, while another is judged makes no failure of the job.
  const char* const table[] = {/* New        */ "A N N N N N N N N N N N N N N N N N N N N N N",
                               /* Acquiring  */ "A A A E A A A A A A A A A A E A A A A A A A A",
                               /* Reserving  */ "P P P P A R P P P P P P P P E P P P P P P P P",
                               /* Running    */ "R R R R C R R R R R C C R R S R R R R R R R R",
                               /* Collecting */ "C C C C J C C C C J J J C C S C C C C C C C C",
                               /* Judging    */ "J J J J J J J J J J J J J S S J J J J J J J J",
                               /* Stopping   */ "S S S S S S S S S S S S S S S S S S S S S S S",
                               /* Ended      */ "E E E E E E E E E E E E E E E E E E E E E E E"};
  const std::string letters = "NAPRCJSE";
  for (size_t phase = 0; phase < std::size(kPhases); ++phase) {
    for (size_t kind = 0; kind < kEventKinds; ++kind) {
      EngineHarness job = InPhase(kPhases[phase], ExecutionMode::kAsync);
      ASSERT_EQ(job.job().phase, kPhases[phase]);
      job.Feed(MakeEvent(kind, job));
      EXPECT_EQ(letters[static_cast<size_t>(job.job().phase)], table[phase][kind * 2])
          << "phase " << letters[phase] << ", input " << kind;
    }
  }
}

// Renewal × what may come: the state of the instance that follows, and whether its next attempt has begun.
TEST(TransitionTableTest, EveryInputInEveryStateOfARestartLeadsWhereTheTableSays) {
  // Columns: Started Ready Succeeded Failed Ended Lost(node) Judged(again) Tick(its deadline)
  const std::vector<std::pair<Renewal, std::string>> table = {
      {Renewal::kNone, "- - - F F F - -"},     {Renewal::kFailed, "F F F F F F s F"},
      {Renewal::kStopping, "s s s s + w s s"}, {Renewal::kPausing, "p p p p p p p +"},
      {Renewal::kWaiting, "w w w w w w w w"},
  };
  const std::string letters = "-Fspw";
  for (const auto& [renewal, row] : table) {
    for (size_t column = 0; column < 8; ++column) {
      EngineHarness job(3, 2);  // instances 0 and 1 on node 0, 2 on node 1
      job.spec.fault_tolerance.execution_mode = ExecutionMode::kAsync;
      job.Run();
      Attempt before{};
      const auto last_letter = [&] {
        const InstanceState& instance = job.job().instances[2];
        const char letter = letters[static_cast<size_t>(RenewalOf(instance))];
        return letter == '-' && instance.attempt > before ? '+' : letter;
      };
      if (renewal == Renewal::kFailed) {
        job.Fail(2);
        job.Collect();
      }
      if (renewal == Renewal::kStopping) job.FailAlone(2);
      if (renewal == Renewal::kPausing) {
        job.RestartAlone(2);
        job.FailAlone(2);
        job.Ended(2);
      }
      if (renewal == Renewal::kWaiting) {
        job.Feed(NodeLost{NodeIndex{1}, "gone"});
        job.Collect();
        job.JudgedApart({job.Verdict(2)});
      }
      const InstanceIndex two{2};
      const Attempt attempt = before = job.AttemptOf(2);
      const Event events[] = {InstanceStarted{two, attempt},
                              InstanceReady{two, attempt},
                              RankSucceeded{two, attempt, Rank{2}},
                              RankFailed{job.Failure(2, 9)},
                              InstanceEnded{two, attempt},
                              NodeLost{NodeIndex{1}, "gone"},
                              FailureJudged{job.job().judgement_number, job.Verdict(2), true},
                              Tick{}};
      if (column == 7 && job.job().instances[2].own->deadline) job.Pass(std::chrono::minutes{11});
      job.Feed(events[column]);
      char expected = row[column * 2];
      if (renewal == Renewal::kStopping && column == 7) expected = '-';  // it can't be killed: the job fails
      EXPECT_EQ(last_letter(), expected) << Name(renewal) << ", column " << column;
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
  job.spec.fault_tolerance.enable_job_hang_detection = true;
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
    // A hang has a record also where the limit is reached.
    const auto failed_hangs = std::ranges::count_if(job.job().records, [&](const RestartRecord& record) {
      return IsHang(record.judgement) && record.result == RestartResult::kFailed &&
             &record == &job.job().records.back();
    });
    const size_t more = job.job().records.size() - job.job().restarts;
    RC_ASSERT(more == 0u || (more == 1u && failed_hangs == 1));
    RC_ASSERT(!job.job().hang || job.job().phase == Phase::kCollecting);
    for (const auto& [index, node] : job.job().nodes) RC_ASSERT(!(node.isolated && node.lost && !node.joined));
  }
}

RC_GTEST_PROP(EnginePropertyTest, WhateverHappensToAnAsyncJobTheRulesHold, ()) {
  EngineHarness job(4, 2);
  job.spec.fault_tolerance.execution_mode = ExecutionMode::kAsync;
  job.spec.fault_tolerance.max_num_of_job_restart = 2;
  job.spec.roles = {{Role::kWorker, 3, 1}, {Role::kPs, 1, 1}};
  job.spec.framework = *rc::gen::element(Framework::kPyTorch, Framework::kTensorFlow);
  job.Submit();
  job.JoinAll();
  job.Ports();
  std::set<std::pair<InstanceIndex, Attempt>> judged;
  uint32_t alone = 0;
  for (const auto& [step, number] : *rc::gen::container<std::vector<std::pair<uint32_t, uint32_t>>>(
           rc::gen::pair(rc::gen::inRange<uint32_t>(0, 11), rc::gen::inRange<uint32_t>(0, 4)))) {
    job.Pass(std::chrono::milliseconds{*rc::gen::inRange(0, 3000)});
    const std::vector<InstanceState> before = job.job().instances;
    const size_t records = job.job().records.size();
    const InstanceIndex index{number};
    const Attempt attempt = job.AttemptOf(number);
    switch (step) {
      case 0:
      case 1:
        job.Fail(number, 1 + static_cast<int>(number));
        break;
      case 2:
        job.Ended(number);
        break;
      case 3:
        job.Feed(InstanceStarted{index, attempt});
        break;
      case 4:
        job.Feed(InstanceReady{index, attempt});
        break;
      case 5:
        job.Feed(RankSucceeded{index, attempt, Rank{number}});
        break;
      case 6:
        if (number == 0) job.Feed(NodeLost{NodeIndex{*rc::gen::inRange(0u, 3u)}, "gone"});
        break;
      case 7:
        job.Feed(NodeDenied{"no more"});
        break;
      case 8:
        if (job.job().phase == Phase::kCollecting) job.Collect();
        break;
      case 9: {
        if (job.job().phase != Phase::kJudging) break;
        const bool apart = std::get<JudgeFailure>(job.engine.Outstanding().back()).apart;
        std::vector<Judgement> all;
        std::set<InstanceIndex> named;
        for (const RankFailure& failure : job.job().failures) {
          if (named.insert(failure.instance).second) all.push_back(job.Verdict(Value(failure.rank)));
        }
        if (apart) job.JudgedApart(all);
        if (!apart) job.Judged(all.front());
        break;
      }
      default:
        job.Ports();
        if (job.engine.NextDeadline()) job.NextTick();
    }
    const JobState& now = job.job();
    RC_ASSERT(now.tallies == CountAll(now));
    std::set<InstanceIndex> restarted;
    for (size_t i = records; i < now.records.size(); ++i) {
      if (now.records[i].scope == RestartScope::kJob) continue;
      ++alone;
      const InstanceIndex which = now.records[i].judgement.root_instance;
      restarted.insert(which);
      RC_ASSERT(RestartsAlone(now.spec, now.instances[Value(which)].role));
      if (now.records[i].judgement.fault == "TestFault") {
        RC_ASSERT(judged.emplace(which, before[Value(which)].attempt).second);  // never twice
      }
    }
    if (now.phase == Phase::kRunning || now.phase == Phase::kCollecting || now.phase == Phase::kJudging) {
      for (const StopInstance& stop : EngineHarness::Of<StopInstance>(job.last)) {
        const bool own =
            restarted.contains(stop.instance) || RenewalOf(before[Value(stop.instance)]) == Renewal::kStopping;
        RC_ASSERT(own);  // nobody else is stopped
      }
      for (const InstanceState& instance : now.instances) {
        const bool is_judged = RenewalOf(instance) != Renewal::kFailed || now.phase != Phase::kRunning;
        RC_ASSERT(is_judged);  // no failure is forgotten
        RC_ASSERT(instance.live || instance.status == InstanceStatus::kSucceeded ||
                  RenewalOf(instance) != Renewal::kNone);
      }
    } else {
      for (const InstanceState& instance : now.instances) {
        RC_ASSERT(RenewalOf(instance) == Renewal::kNone);
        RC_ASSERT(!instance.own || (!instance.own->deadline && !instance.own->open_record));
      }
    }
    RC_ASSERT(now.restarts <= 2u);
    RC_ASSERT(now.records.size() == now.restarts + alone);
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
