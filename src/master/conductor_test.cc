// The master's order of things: durable first, then done; and what it makes of agents that come, go and come back.
#include "master/conductor.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

namespace aimaster {
namespace {

using namespace std::chrono_literals;

constexpr ConnectionId kFirst{1}, kSecond{2};

class Bench {
 public:
  explicit Bench(uint64_t epoch = 1, uint32_t workers = 2) : conductor(Epoch{epoch}, "/job") {
    spec.id = *JobId::Parse("dlc0123456789abc");
    spec.roles = {{Role::kWorker, workers, 1}};
    spec.command = {"train"};
    spec.fault_tolerance.enable_job_restart = true;
  }

  void Begin() { conductor.Begin(now, spec); }
  void Pass(Duration duration) {
    now.monotonic = now.monotonic + duration;
    now.wall = now.wall + duration;
  }

  void Say(ConnectionId connection, const v1::ToMaster& message) {
    conductor.OnMessage(now, connection, message.SerializeAsString());
  }
  void Hello(ConnectionId connection, const std::string& agent = "a", uint64_t greatest_epoch = 0, uint32_t node = 0) {
    v1::ToMaster message;
    message.mutable_hello()->set_node(node);
    message.mutable_hello()->set_node_name("node");
    message.mutable_hello()->set_agent_id(agent);
    message.mutable_hello()->set_greatest_epoch(greatest_epoch);
    Say(connection, message);
  }
  void Heartbeat(ConnectionId connection) {
    v1::ToMaster message;
    message.mutable_heartbeat();
    Say(connection, message);
  }
  static v1::Report Started(uint32_t instance) {
    v1::Report report;
    report.mutable_attempt_started()->mutable_id()->set_instance(instance);
    return report;
  }
  void Report(ConnectionId connection, uint64_t sequence, v1::Report report) {
    v1::ToMaster message;
    *message.mutable_report() = std::move(report);
    message.mutable_report()->set_sequence(sequence);
    Say(connection, message);
  }

  // The journal takes all that waits, again and again until nothing does.
  void Settle() {
    while (conductor.WantsToWrite()) {
      conductor.BeginWrite();
      conductor.OnDurable(now);
      Collect();
    }
    Collect();
  }
  void Collect() {
    for (Effect& effect : conductor.TakeEffects()) effects.push_back(std::move(effect));
  }
  // A job whose instances have been told to start on one node.
  void RunToStart() {
    Begin();
    Settle();
    Hello(kFirst);
    Settle();
    v1::Report report;
    report.mutable_port_reserved()->set_reservation(1);
    report.mutable_port_reserved()->set_port(23456);
    Report(kFirst, 1, report);
    Settle();
    ASSERT_EQ(conductor.engine().job().phase, Phase::kRunning);
  }

  // What was transmitted since it was asked last.
  std::vector<v1::ToAgent> Heard(ConnectionId connection) {
    Collect();
    std::vector<v1::ToAgent> messages;
    for (const Effect& effect : effects) {
      const auto* transmit = std::get_if<Transmit>(&effect);
      if (transmit == nullptr || transmit->connection != connection) continue;
      messages.emplace_back().ParseFromString(transmit->bytes);
    }
    effects.clear();
    return messages;
  }
  template <typename Kind>
  size_t Count() {
    Collect();
    return static_cast<size_t>(
        std::ranges::count_if(effects, [](const Effect& effect) { return std::holds_alternative<Kind>(effect); }));
  }

  Conductor conductor;
  JobSpec spec;
  Moment now{Monotonic{1000s}, Wall{1'700'000'000s}};
  std::vector<Effect> effects;
};

size_t CountOf(const std::vector<v1::ToAgent>& messages, v1::Command::BodyCase kind) {
  return static_cast<size_t>(std::ranges::count_if(
      messages, [kind](const v1::ToAgent& message) { return message.command().body_case() == kind; }));
}

size_t Acknowledgements(const std::vector<v1::ToAgent>& messages) {
  return static_cast<size_t>(
      std::ranges::count_if(messages, [](const v1::ToAgent& message) { return message.has_acknowledge(); }));
}

TEST(ConductorTest, NothingIsDoneBeforeItIsDurable) {
  Bench bench;
  bench.Begin();
  EXPECT_EQ(bench.Count<AcquireFromProvider>(), 0u);
  bench.conductor.BeginWrite();
  EXPECT_EQ(bench.Count<AcquireFromProvider>(), 0u);
  bench.conductor.OnDurable(bench.now);
  EXPECT_GE(bench.Count<AcquireFromProvider>(), 1u);
}

TEST(ConductorTest, AReportThatComesDuringAWriteIsNotAcknowledgedByIt) {
  Bench bench;
  bench.RunToStart();
  bench.Heard(kFirst);
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.conductor.BeginWrite();
  bench.Report(kFirst, 3, Bench::Started(1));
  bench.conductor.OnDurable(bench.now);
  const std::vector<v1::ToAgent> first = bench.Heard(kFirst);
  ASSERT_EQ(Acknowledgements(first), 1u);
  EXPECT_EQ(first.front().acknowledge().sequence(), 2u);
  bench.Settle();
  EXPECT_EQ(bench.Heard(kFirst).front().acknowledge().sequence(), 3u);
}

TEST(ConductorTest, AReportThatIsSentAgainIsAcknowledgedAgainAndChangesNothing) {
  Bench bench;
  bench.RunToStart();
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.Settle();
  bench.Heard(kFirst);
  bench.Report(kFirst, 2, Bench::Started(0));
  EXPECT_TRUE(bench.conductor.BeginWrite().empty());
  bench.conductor.OnDurable(bench.now);
  EXPECT_EQ(Acknowledgements(bench.Heard(kFirst)), 1u);
}

TEST(ConductorTest, AFailedWriteIsTriedAgainWithAllThatCameSince) {
  Bench bench;
  bench.RunToStart();
  bench.Heard(kFirst);
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.conductor.BeginWrite();
  bench.conductor.OnNotDurable("disk full");
  EXPECT_EQ(bench.conductor.trouble(), "disk full");
  EXPECT_FALSE(bench.conductor.NextDeadline());  // decisions wait
  bench.Report(kFirst, 3, Bench::Started(1));
  EXPECT_EQ(Acknowledgements(bench.Heard(kFirst)), 0u);
  EXPECT_EQ(bench.conductor.BeginWrite().size(), 2u);
  bench.conductor.OnDurable(bench.now);
  EXPECT_EQ(bench.conductor.trouble(), "");
  EXPECT_EQ(bench.Heard(kFirst).front().acknowledge().sequence(), 3u);
}

TEST(ConductorTest, APersonsStopIsCarriedOutThoughTheDiskIsFull) {
  Bench bench;
  bench.RunToStart();
  bench.Heard(kFirst);
  bench.conductor.Stop(bench.now, false, "Ctrl-C");
  bench.conductor.BeginWrite();
  EXPECT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kStopInstance), 0u);
  bench.conductor.OnNotDurable("disk full");
  EXPECT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kStopInstance), 2u);
}

TEST(ConductorTest, ADecisionIsNotCarriedOutWhileTheDiskIsFull) {
  Bench bench;
  bench.RunToStart();
  v1::Report failed;
  failed.mutable_rank_exited()->set_code(1);
  bench.Report(kFirst, 2, failed);
  bench.Settle();
  bench.Heard(kFirst);
  for (bench.Pass(3min); bench.conductor.engine().job().phase != Phase::kStopping; bench.Pass(1s)) {
    bench.conductor.OnTime(bench.now);
    bench.conductor.BeginWrite();
    if (bench.conductor.engine().job().phase != Phase::kStopping) bench.conductor.OnDurable(bench.now);
    ASSERT_LT(bench.now.monotonic.since_origin, 2000s);
  }
  ASSERT_EQ(bench.conductor.engine().job().phase, Phase::kStopping);
  bench.conductor.OnNotDurable("disk full");
  EXPECT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kStopInstance), 0u);
}

TEST(ConductorTest, AConnectionThatDoesNotBeginWithHelloIsHungUp) {
  Bench bench;
  bench.Begin();
  bench.Settle();
  bench.Report(kFirst, 1, Bench::Started(0));
  EXPECT_EQ(bench.Count<HangUp>(), 1u);
  bench.conductor.OnMessage(bench.now, kSecond, "\xff\xff\xff");
  EXPECT_EQ(bench.Count<HangUp>(), 2u);
}

TEST(ConductorTest, AnAgentThatComesBackIsToldAgainWhatItHasNotAnswered) {
  Bench bench;
  bench.RunToStart();
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.Settle();
  bench.conductor.OnDisconnected(kFirst, "reset");
  bench.Hello(kSecond);
  bench.Settle();
  const std::vector<v1::ToAgent> heard = bench.Heard(kSecond);
  ASSERT_TRUE(heard.front().has_welcome());
  EXPECT_EQ(CountOf(heard, v1::Command::kStartInstance), 1u);  // of instance 1; 0 has answered
}

TEST(ConductorTest, TheFormerConnectionOfAnAgentIsNobodysOnceItHasDialledAgain) {
  Bench bench;
  bench.RunToStart();
  bench.effects.clear();
  bench.Hello(kSecond);
  EXPECT_EQ(bench.Count<HangUp>(), 1u);
  bench.Settle();
  bench.Heard(kSecond);
  bench.conductor.OnDisconnected(kFirst, "late");
  bench.Report(kSecond, 2, Bench::Started(0));
  bench.Settle();
  EXPECT_EQ(Acknowledgements(bench.Heard(kSecond)), 1u);
}

TEST(ConductorTest, ReportsOfANewAgentProcessCountFromOneAgain) {
  Bench bench;
  bench.RunToStart();
  bench.Hello(kSecond, "b");
  bench.Settle();
  bench.Report(kSecond, 1, Bench::Started(0));
  EXPECT_EQ(bench.conductor.BeginWrite().size(), 1u);
}

TEST(ConductorTest, AnAgentThatHasSeenAGreaterEpochIsNotWelcomed) {
  Bench bench(3);
  bench.Begin();
  bench.Settle();
  bench.Hello(kFirst, "a", 4);
  EXPECT_EQ(bench.Count<LookForSuccessor>(), 1u);
  EXPECT_EQ(bench.Count<HangUp>(), 1u);
  EXPECT_TRUE(bench.Heard(kFirst).empty());
}

TEST(ConductorTest, TheAgentOfALostNodeIsRefusedAndItsRanksAreToEnd) {
  Bench bench;
  bench.RunToStart();
  bench.conductor.OnNodeLost(bench.now, NodeIndex{0}, "power");
  bench.Settle();
  bench.Heard(kSecond);
  bench.Hello(kSecond);
  const std::vector<v1::ToAgent> heard = bench.Heard(kSecond);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_TRUE(heard.front().refused().job_over());
}

TEST(ConductorTest, NobodyIsRefusedForWhatIsNotDurableYet) {
  Bench bench;
  bench.RunToStart();
  bench.conductor.OnNodeLost(bench.now, NodeIndex{0}, "power");
  bench.conductor.BeginWrite();
  bench.conductor.OnNotDurable("disk full");
  bench.Heard(kSecond);
  bench.Hello(kSecond);
  EXPECT_EQ(bench.Count<HangUp>(), 1u) << "so that it dials again";
  EXPECT_TRUE(bench.Heard(kSecond).empty()) << "a crash may still forget that the node was lost";
  bench.Settle();
  bench.Hello(ConnectionId{77});
  const std::vector<v1::ToAgent> heard = bench.Heard(ConnectionId{77});
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_TRUE(heard.front().refused().job_over());
}

TEST(ConductorTest, TheAgentOfANodeThatIsDeclaredLostIsTurnedAwayAtOnce) {
  Bench bench;
  bench.RunToStart();
  bench.Heard(kFirst);
  bench.conductor.OnNodeLost(bench.now, NodeIndex{0}, "power");
  bench.conductor.BeginWrite();
  bench.conductor.OnDurable(bench.now);
  const std::vector<v1::ToAgent> heard = bench.Heard(kFirst);
  ASSERT_FALSE(heard.empty());
  EXPECT_TRUE(heard.back().refused().job_over());
  EXPECT_EQ(heard.back().refused().epoch(), 1u);
}

TEST(ConductorTest, AnAttemptThatWasGivenUpIsStoppedWhereItIsFoundAndNoOther) {
  Bench bench;
  bench.RunToStart();
  v1::ToMaster message;
  message.mutable_hello()->set_node_name("node");
  message.mutable_hello()->set_agent_id("b");
  message.mutable_hello()->add_live()->set_instance(0);
  v1::AttemptId& stray = *message.mutable_hello()->add_live();
  stray.set_instance(1);
  stray.set_attempt(7);
  bench.Say(kSecond, message);
  const std::vector<v1::ToAgent> heard = bench.Heard(kSecond);
  ASSERT_EQ(CountOf(heard, v1::Command::kStopInstance), 1u);
  EXPECT_EQ(heard.back().command().stop_instance().id().attempt(), 7u);
}

// ---- an agent that does not name what should run on its node ----

v1::Report Ended(uint32_t instance, const std::string& lost_reason = {}) {
  v1::Report report;
  report.mutable_attempt_ended()->mutable_id()->set_instance(instance);
  report.mutable_attempt_ended()->set_lost_reason(lost_reason);
  return report;
}

TEST(ConductorTest, AnAttemptThatHadStartedAndIsNotNamedIsJudgedLost) {
  Bench bench;
  bench.RunToStart();
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.Settle();
  bench.Hello(kSecond, "b");
  bench.Settle();
  EXPECT_EQ(CountOf(bench.Heard(kSecond), v1::Command::kStartInstance), 1u) << "what had not started is started";
  bench.Heartbeat(kSecond);
  EXPECT_FALSE(bench.conductor.WantsToWrite()) << "its end may be on the way";
  bench.Heartbeat(kSecond);
  bench.Settle();
  const JobState& job = bench.conductor.engine().job();
  EXPECT_EQ(job.phase, Phase::kCollecting);
  ASSERT_EQ(job.failures.size(), 1u);
  EXPECT_EQ(job.failures[0].instance, InstanceIndex{0});
  EXPECT_NE(job.failures[0].lost_reason.find("finds no record of it"), std::string::npos);
}

TEST(ConductorTest, WhatIsNotNamedAndHasEndedIsNoLoss) {
  Bench bench;
  bench.RunToStart();
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.Settle();
  bench.Hello(kSecond);
  bench.Heartbeat(kSecond);
  v1::Report well;
  well.mutable_rank_exited()->set_code(0);
  bench.Report(kSecond, 3, well);
  bench.Report(kSecond, 4, Ended(0));
  bench.Heartbeat(kSecond);
  bench.Settle();
  EXPECT_EQ(bench.conductor.engine().job().phase, Phase::kRunning);
  EXPECT_EQ(bench.conductor.engine().job().instances[0].status, InstanceStatus::kSucceeded);
}

TEST(ConductorTest, TheReasonOfALostAttemptCountsForRanksOfWhomNothingWasSaid) {
  Bench bench;
  bench.RunToStart();
  bench.Report(kFirst, 2, Bench::Started(1));
  bench.Report(kFirst, 3, Ended(1, "its claim is lost"));
  bench.Settle();
  ASSERT_EQ(bench.conductor.engine().job().failures.size(), 1u);
  EXPECT_EQ(bench.conductor.engine().job().failures[0].lost_reason, "its claim is lost");
  EXPECT_EQ(bench.conductor.engine().job().failures[0].rank, Rank{1});
}

TEST(ConductorTest, WhatIsStartedWhileAnAgentComesBackIsNoLoss) {
  Bench bench;
  bench.Begin();
  bench.Settle();
  bench.Hello(kFirst);
  bench.Settle();
  v1::Report reserved;
  reserved.mutable_port_reserved()->set_reservation(1);
  reserved.mutable_port_reserved()->set_port(23456);
  bench.Report(kFirst, 1, reserved);
  bench.conductor.BeginWrite();  // the decision to start is being written
  bench.Hello(kSecond);          // by an agent that has been told nothing yet
  bench.conductor.OnDurable(bench.now);
  ASSERT_EQ(CountOf(bench.Heard(kSecond), v1::Command::kStartInstance), 2u);
  bench.Report(kSecond, 2, Bench::Started(0));
  for (int i = 0; i < 3; ++i) bench.Heartbeat(kSecond);
  bench.Settle();
  EXPECT_TRUE(bench.conductor.engine().job().instances[0].started);
  EXPECT_EQ(bench.conductor.engine().job().phase, Phase::kRunning);
}

TEST(ConductorTest, AHelloThatAnotherHasOvertakenProvesNothing) {
  Bench bench;
  bench.RunToStart();
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.Settle();
  bench.Hello(kSecond);  // names nothing
  v1::ToMaster message;
  message.mutable_hello()->set_node_name("node");
  message.mutable_hello()->set_agent_id("a");
  message.mutable_hello()->add_live()->set_instance(0);
  bench.Say(ConnectionId{3}, message);
  for (int i = 0; i < 3; ++i) bench.Heartbeat(ConnectionId{3});
  bench.Settle();
  EXPECT_EQ(bench.conductor.engine().job().phase, Phase::kRunning);
}

TEST(ConductorTest, WhatAnAgentLacksIsSaidOnce) {
  Bench bench;
  bench.RunToStart();
  v1::ToMaster message;
  message.mutable_hello()->set_node_name("node");
  message.mutable_hello()->set_agent_id("b");
  message.mutable_hello()->set_trouble("it may have 64 files open\n");
  bench.effects.clear();
  bench.Say(kSecond, message);
  bench.Say(ConnectionId{3}, message);
  bench.Collect();
  size_t said = 0;
  for (const Effect& effect : bench.effects) {
    const auto* print = std::get_if<Print>(&effect);
    said += print != nullptr && print->line == "node 0: it may have 64 files open\\x0a";
  }
  EXPECT_EQ(said, 1u);
}

TEST(ConductorTest, ASilentNodeIsRecoveredOnceItsTimeIsOver) {
  Bench bench;
  bench.RunToStart();
  for (int second = 0; second < 29; ++second) {
    bench.Pass(1s);
    bench.conductor.Watch(bench.now);
  }
  EXPECT_EQ(bench.Count<RecoverAtProvider>(), 0u);
  bench.Pass(1s);
  bench.conductor.Watch(bench.now);
  EXPECT_EQ(bench.Count<RecoverAtProvider>(), 1u);
}

// A master that was stopped for an hour has heard nobody for an hour.
TEST(ConductorTest, AMasterThatWasAwayBlamesNoNode) {
  Bench bench;
  bench.RunToStart();
  bench.conductor.Watch(bench.now);
  bench.Pass(1h);
  bench.conductor.Watch(bench.now);
  EXPECT_EQ(bench.Count<RecoverAtProvider>(), 0u);
}

TEST(ConductorTest, ADeadlineThatWasMissedByFarWaitsForWhatIsInTheSockets) {
  Bench bench;
  bench.RunToStart();
  bench.Pass(1h);  // --start-timeout is ten minutes
  bench.conductor.OnTime(bench.now);
  EXPECT_FALSE(bench.conductor.WantsToWrite());
  bench.Report(kFirst, 2, Bench::Started(0));
  bench.Report(kFirst, 3, Bench::Started(1));
  bench.Settle();
  bench.Pass(1s);
  bench.conductor.OnTime(bench.now);
  bench.Settle();
  EXPECT_EQ(bench.conductor.engine().job().status, JobStatus::kRunning);
}

TEST(ConductorTest, ASuccessorDoesAgainWhatWasUnderWay) {
  Bench old;
  old.Begin();
  std::vector<Input> journal;
  const auto keep = [&] {
    while (old.conductor.WantsToWrite()) {
      for (const auto& [input, result] : old.conductor.BeginWrite()) journal.push_back(input);
      old.conductor.OnDurable(old.now);
    }
  };
  keep();
  old.Hello(kFirst);
  keep();

  Bench successor(2);
  Engine engine;
  for (const Input& input : journal) engine.Step(input);
  successor.conductor = Conductor(Epoch{2}, "/job", std::move(engine));
  successor.Begin();
  successor.Hello(kSecond, "a", 1);
  successor.Settle();
  EXPECT_EQ(successor.conductor.engine().job().epoch, Epoch{2});
  EXPECT_EQ(CountOf(successor.Heard(kSecond), v1::Command::kReservePort), 2u);  // taken over, and resent: idempotent
}

TEST(ConductorTest, AReadOnlyMasterLeavesTrainingAloneAndStopsItWhenAsked) {
  Bench old;
  old.RunToStart();
  Bench successor(2);
  successor.conductor = Conductor(Epoch{2}, "/job", old.conductor.engine());
  successor.conductor.BeginReadOnly(successor.now, "the last two masters died over this");
  successor.Hello(kFirst, "a", 1);
  successor.Report(kFirst, 2, Bench::Started(0));
  EXPECT_FALSE(successor.conductor.WantsToWrite());
  EXPECT_EQ(successor.conductor.trouble(), "the last two masters died over this");
  const std::vector<v1::ToAgent> heard = successor.Heard(kFirst);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_TRUE(heard.front().has_welcome());
  successor.conductor.Stop(successor.now, false, "aimaster stop");
  EXPECT_EQ(CountOf(successor.Heard(kFirst), v1::Command::kStopInstance), 2u);
}

TEST(ConductorTest, WhatIsBeingSteppedIsTold) {
  Bench bench;
  std::vector<bool> told;
  bench.conductor.on_step = [&told](const Input* under_way) { told.push_back(under_way != nullptr); };
  bench.Begin();
  bench.conductor.BeginWrite();
  EXPECT_EQ(told, (std::vector<bool>{true, false, true, false}));
}

TEST(ConductorTest, ASignalGoesToEveryAgent) {
  Bench bench;
  bench.RunToStart();
  bench.Heard(kFirst);
  bench.conductor.Signal(SIGUSR1);
  EXPECT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kSignalInstances), 1u);
}

// ---- the end ----

TEST(ConductorTest, LeavesWhenTheLastAgentHasGone) {
  Bench bench;
  bench.RunToStart();
  for (uint32_t rank : {0u, 1u}) {
    v1::Report report;
    report.mutable_rank_exited()->mutable_id()->set_instance(rank);
    report.mutable_rank_exited()->set_rank(rank);
    report.mutable_rank_exited()->set_code(0);
    bench.Report(kFirst, 2 + 2 * rank, report);
    v1::Report ended;
    ended.mutable_attempt_ended()->mutable_id()->set_instance(rank);
    bench.Report(kFirst, 3 + 2 * rank, ended);
  }
  bench.Heard(kFirst);
  bench.Settle();
  EXPECT_EQ(bench.conductor.engine().job().status, JobStatus::kSucceeded);
  EXPECT_EQ(bench.Count<Leave>(), 0u);
  EXPECT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kShutdown), 1u);
  bench.conductor.OnDisconnected(kFirst, "goodbye");
  EXPECT_EQ(bench.Count<Leave>(), 1u);
}

TEST(ConductorTest, DoesNotWaitForeverForAnAgentThatStays) {
  Bench bench;
  bench.Begin();
  bench.Settle();
  bench.Hello(kFirst);
  bench.Settle();
  bench.conductor.Stop(bench.now, true, "test");
  bench.Settle();
  ASSERT_EQ(bench.conductor.engine().job().phase, Phase::kEnded);
  EXPECT_EQ(bench.Count<Leave>(), 0u);
  ASSERT_TRUE(bench.conductor.NextDeadline());
  bench.now.monotonic = *bench.conductor.NextDeadline();
  bench.conductor.OnTime(bench.now);
  EXPECT_EQ(bench.Count<Leave>(), 1u);
}

std::vector<std::string> TextsOf(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

TEST(ConductorTest, TextsOfTheJobsOwnAreToldToEveryAgentAndWithEveryWelcome) {
  Bench bench;
  bench.RunToStart();
  bench.Heard(kFirst);
  v1::Report report;
  report.mutable_retryable_errors()->add_texts("connect timeout");
  bench.Report(kFirst, 2, report);
  EXPECT_TRUE(bench.Heard(kFirst).empty()) << "it is not durable yet";
  bench.Settle();
  const std::vector<v1::ToAgent> heard = bench.Heard(kFirst);
  ASSERT_EQ(CountOf(heard, v1::Command::kRetryableErrors), 1u);
  EXPECT_EQ(Acknowledgements(heard), 1u);
  bench.Hello(kSecond, "b");
  bench.Settle();
  const std::vector<v1::ToAgent> welcome = bench.Heard(kSecond);
  ASSERT_TRUE(welcome.front().has_welcome());
  EXPECT_EQ(TextsOf(welcome.front().welcome().job().retryable_errors()), (std::vector<std::string>{"connect timeout"}));
}

}  // namespace
}  // namespace aimaster
