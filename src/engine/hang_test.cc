// The stories of jobs that hang: found, looked at, and restarted or failed.
#include "engine/engine_harness.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

class HangHarness : public EngineHarness {
 public:
  explicit HangHarness(uint32_t workers = 2, uint32_t nodes = 1) : EngineHarness(workers, nodes) {
    spec.fault_tolerance.enable_job_hang_detection = true;
    spec.fault_tolerance.job_hang_interval = 60s;
    spec.fault_tolerance.enable_job_exit_hang_detection = true;
    spec.fault_tolerance.job_exit_hang_interval = 30s;
  }
  HangFound Silent(Duration lasts = 60s) const {
    return {.kind = HangKind::kSilence,
            .round = job().round,
            .lasts = lasts,
            .interval = spec.fault_tolerance.job_hang_interval};
  }
  HangFound AtExit(Duration lasts = 30s) const {
    return {.kind = HangKind::kExit,
            .round = job().round,
            .lasts = lasts,
            .interval = spec.fault_tolerance.job_exit_hang_interval};
  }
  StacksCaptured Stacks() const {
    return {.capture = job().stacks.number,
            .ranks_asked = 2,
            .ranks_answered = 2,
            .path = "stacks/1.json",
            .summary = "rank 1 alone is in load (data.py:12)",
            .culprits = {Rank{1}},
            .where = "load (data.py:12)"};
  }
  // From a job that runs to one that hangs and whose stacks are there.
  void Hang() {
    Pass(5min);
    Feed(Silent());
    Feed(Stacks());
  }
  // In the chain of the last decision.
  bool HasReason(const std::string& words) const {
    return std::ranges::any_of(last.decisions.at(0).reasons,
                               [&](const std::string& reason) { return reason.contains(words); });
  }
  bool HasEvent(const std::string& type) const {
    return std::ranges::any_of(last.events, [&](const JobEvent& event) { return event.type == type; });
  }
};

TEST(HangTest, ASilentJobIsLookedAtBeforeAnythingIsStopped) {
  HangHarness job;
  job.Run();
  job.Pass(5min);
  job.Feed(job.Silent());
  EXPECT_EQ(job.job().phase, Phase::kCollecting);
  EXPECT_TRUE(job.HasEvent("aimaster.hang.found"));
  ASSERT_EQ(HangHarness::Of<CaptureStacks>(job.last).size(), 1u);
  EXPECT_TRUE(HangHarness::Of<StopInstance>(job.last).empty());
  job.Pass(2s);
  job.Feed(job.Stacks());
  EXPECT_EQ(HangHarness::Of<StopInstance>(job.last).size(), 2u);
  EXPECT_EQ(job.job().status, JobStatus::kRestarting);
  EXPECT_EQ(job.job().restarts, 1u) << "a restart by a hang counts";

  const RestartRecord& record = job.job().records.at(0);
  EXPECT_EQ(record.restarts, 1u);
  EXPECT_EQ(record.judgement.source, ErrorSource::kHang);
  EXPECT_EQ(record.judgement.fault, "JobHang");
  EXPECT_EQ(record.judgement.message,
            "the job hangs: all 2 ranks silent for 1 min 0 s; rank 1 (dlc0123456789abc-worker-1) on node-0 is in load "
            "(data.py:12)");
  EXPECT_EQ(record.judgement.root_rank, Rank{1});
  EXPECT_EQ(record.judgement.stacks, "stacks/1.json");
  EXPECT_EQ(record.instance_name, "dlc0123456789abc-worker-1");
  EXPECT_EQ(record.node_name, "node-0");
  EXPECT_EQ(record.restart_time.monotonic - record.began.monotonic, 62s) << "it began when all fell silent";
  ASSERT_EQ(record.judgement.details.size(), 1u);
  EXPECT_TRUE(record.judgement.details[0].is_root);

  job.EndedAll();
  job.Run();
  EXPECT_EQ(job.job().records.at(0).result, RestartResult::kRestarted);
  EXPECT_EQ(job.StagesOf(1), (Strings{"detect", "collect", "decide", "stop", "acquire", "start", "ready"}));
  EXPECT_EQ(job.job().rounds[1].stages[0].duration, 60s);
  EXPECT_EQ(job.job().rounds[1].stages[1].duration, 2s);
}

TEST(HangTest, TheReasonsNameTheIntervalAndWhoSetIt) {
  HangHarness job;
  job.Run();
  job.Hang();
  const std::string of_flag = "the interval is 1 min 0 s, of --job-hang-interval";
  EXPECT_TRUE(job.HasReason(of_flag));
  job.EndedAll();
  job.Run();
  job.Pass(5min);
  HangFound by_sdk = job.Silent(10s);
  by_sdk.interval = 10s;
  by_sdk.set_by = NodeIndex{0};
  job.Feed(by_sdk);
  job.Feed(job.Stacks());
  const std::string of_sdk = "the interval is 10.0 s, set through the SDK on node node-0";
  EXPECT_TRUE(job.HasReason(of_sdk));
}

TEST(HangTest, WithoutStacksTheQuietestIsNamedAndNobodyBlamed) {
  HangHarness job(3, 2);
  job.Run();
  job.Pass(5min);
  HangFound hang = job.Silent();
  hang.quietest = Rank{2};
  hang.quietest_for = 90s;
  job.Feed(hang);
  job.NextTick();  // --stack-timeout
  const Judgement& judgement = job.job().records.at(0).judgement;
  EXPECT_EQ(judgement.root_rank, std::nullopt);
  EXPECT_EQ(
      judgement.message,
      "the job hangs: all 3 ranks silent for 1 min 0 s; longest silent: rank 2 (dlc0123456789abc-worker-2) on node-1");
  EXPECT_EQ(job.job().records.at(0).node_name, "node-1");
  EXPECT_EQ(judgement.stacks, "");
}

TEST(HangTest, ThePolicyDoesNotGovernHangs) {
  HangHarness job;
  job.spec.fault_tolerance.fault_tolerant_policy = FaultTolerantPolicy::kNever;
  job.Run();
  job.Hang();
  EXPECT_EQ(job.job().status, JobStatus::kRestarting);
}

TEST(HangTest, WithoutPermissionTheJobFailsWithStacksAndARecord) {
  HangHarness job;
  job.spec.fault_tolerance.enable_job_restart = false;
  job.Run();
  job.Hang();
  EXPECT_EQ(job.job().status, JobStatus::kStopping);
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_EQ(job.job().reason_code, "JobHang");
  EXPECT_TRUE(job.job().reason_message.contains("--enable-job-restart=False")) << job.job().reason_message;
  EXPECT_TRUE(job.job().reason_message.contains("load (data.py:12)"));
  EXPECT_EQ(job.job().exit_code, 1);
  ASSERT_EQ(job.job().records.size(), 1u);
  EXPECT_EQ(job.job().records[0].restarts, 0u);
  EXPECT_EQ(job.job().records[0].result, RestartResult::kFailed);
  EXPECT_EQ(job.job().records[0].judgement.stacks, "stacks/1.json");
}

TEST(HangTest, TheLimitOfRestartsCountsHangsToo) {
  HangHarness job;
  job.spec.fault_tolerance.max_num_of_job_restart = 1;
  job.Run();
  job.Hang();
  job.EndedAll();
  job.Run();
  job.Hang();
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_TRUE(job.job().reason_message.contains("--max-num-of-job-restart=1"));
  EXPECT_EQ(job.job().records.size(), 2u);
}

TEST(HangTest, ASilentStartIsAHang) {
  HangHarness job;
  job.Submit();
  job.JoinAll();
  job.Port();
  job.StartedAll();  // and nobody is ever ready
  job.Pass(1min);
  job.Feed(job.Silent());
  job.Feed(job.Stacks());
  EXPECT_EQ(job.job().status, JobStatus::kRestarting);
  for (const StageTime& stage : job.job().rounds[0].stages) EXPECT_TRUE(stage.duration) << Name(stage.stage);
  job.EndedAll();
  job.Port();
  job.StartedAll();
  job.Pass(1min);
  job.Feed(job.Silent());
  job.Feed(job.Stacks());
  EXPECT_EQ(job.job().records.at(0).result, RestartResult::kFailed) << "the restart was never ready";
}

TEST(HangTest, WhatIsNotLookedForIsNoHang) {
  for (const auto& change : std::vector<void (*)(FaultToleranceParameters&)>{
           [](FaultToleranceParameters& p) { p.enable_job_hang_detection = false; },
           [](FaultToleranceParameters& p) { p.job_hang_interval = 61s; },
           [](FaultToleranceParameters& p) { p.execution_mode = ExecutionMode::kAsync; }}) {
    HangHarness job;
    change(job.spec.fault_tolerance);
    job.Run();
    job.Pass(5min);
    EXPECT_EQ(job.Feed(job.Silent()), StepResult{});
  }
}

TEST(HangTest, AFindingOfAFormerRoundChangesNothing) {
  HangHarness job;
  job.Run();
  const HangFound old = job.Silent();
  job.FailAndJudge(0);
  job.EndedAll();
  job.Run();
  EXPECT_EQ(job.Feed(old), StepResult{});
}

TEST(HangTest, WhoDiesWhileTheStacksAreTakenChangesNothing) {
  HangHarness job(3);
  job.Run();
  job.Pass(5min);
  job.Feed(job.Silent());
  job.Fail(0, 137);
  EXPECT_EQ(job.job().phase, Phase::kCollecting);
  job.Feed(job.Stacks());
  EXPECT_EQ(job.job().records.at(0).judgement.fault, "JobHang");
  EXPECT_TRUE(job.HasReason("rank 0 (dlc0123456789abc-worker-0) ended while the call stacks were being taken"));
}

TEST(HangTest, WhenAllHaveDiedNothingIsWaitedFor) {
  HangHarness job;
  job.Run();
  job.Pass(5min);
  job.Feed(job.Silent());
  job.Fail(0);
  job.Fail(1);
  EXPECT_EQ(job.job().status, JobStatus::kRestarting);
}

TEST(HangTest, AJobThatIsDoneAfterAllHasSucceeded) {
  HangHarness job;
  job.Run();
  job.Pass(5min);
  job.Feed(job.Silent());
  for (uint32_t i : {0u, 1u}) job.Feed(RankSucceeded{InstanceIndex{i}, Attempt{0}, Rank{i}});
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kSucceeded) << Name(job.job().status);
}

TEST(HangTest, AStopIsCarriedOutAtOnce) {
  HangHarness job;
  job.Run();
  job.Pass(5min);
  job.Feed(job.Silent());
  job.Feed(StopRequested{false, "test"});
  EXPECT_EQ(HangHarness::Of<StopInstance>(job.last).size(), 2u);
  job.Feed(job.Stacks());
  job.EndedAll();
  EXPECT_EQ(job.job().status, JobStatus::kStopped);
  EXPECT_TRUE(job.job().records.empty());
}

TEST(HangTest, AMasterThatTookOverAsksForTheStacksAgain) {
  HangHarness job;
  job.Run();
  job.Pass(5min);
  job.Feed(job.Silent());
  const Engine after(job.engine.job());
  EXPECT_EQ(HangHarness::Of<CaptureStacks>({.actions = after.Outstanding()}).size(), 1u);
  EXPECT_TRUE(HangHarness::Of<CollectEvidence>({.actions = after.Outstanding()}).empty());
}

TEST(HangTest, SilentButAdvancingIsAHangByThePlainRule) {
  HangHarness job;
  job.Run();
  job.Pass(5min);
  HangFound hang = job.Silent();
  hang.is_advancing = true;
  job.Feed(hang);
  job.Feed(job.Stacks());
  EXPECT_EQ(job.job().status, JobStatus::kRestarting);
  EXPECT_TRUE(job.HasReason("silent but advancing"));
}

TEST(HangTest, SilentButAdvancingIsLeftRunningWhereProgressIsRequiredAndToldOnce) {
  HangHarness job;
  job.spec.fault_tolerance.hang_requires = HangRequires::kLogAndProgress;
  job.Run();
  job.Pass(5min);
  HangFound hang = job.Silent();
  hang.is_advancing = true;
  job.Feed(hang);
  EXPECT_TRUE(job.HasEvent("aimaster.hang.advancing"));
  EXPECT_EQ(job.job().phase, Phase::kRunning);
  job.Pass(1min);
  hang.lasts += 1min;
  EXPECT_EQ(job.Feed(hang), StepResult{}) << "the same silence, found again by another master";
  job.Pass(5min);
  hang.lasts = 1min;
  job.Feed(hang);
  EXPECT_TRUE(job.HasEvent("aimaster.hang.advancing")) << "it had spoken in between";
  job.Pass(1min);
  job.Feed(job.Silent(2min));
  EXPECT_EQ(job.job().phase, Phase::kCollecting) << "and now its steps stand still";
}

TEST(HangTest, AnExitHangNamesWhoDoesNotEnd) {
  HangHarness job(3);
  job.Run();
  job.Feed(RankSucceeded{InstanceIndex{0}, Attempt{0}, Rank{0}});
  job.Ended(0);
  job.Pass(30s);
  job.Feed(job.AtExit());
  EXPECT_TRUE(job.HasEvent("aimaster.hang.exit-found"));
  job.NextTick();
  const Judgement& judgement = job.job().records.at(0).judgement;
  EXPECT_EQ(judgement.source, ErrorSource::kExitHang);
  EXPECT_EQ(judgement.fault, "JobExitHang");
  EXPECT_EQ(judgement.root_rank, Rank{1});
  EXPECT_EQ(
      judgement.message,
      "the job hangs at its exit: the first rank ended well 30.0 s ago, and rank 1 (dlc0123456789abc-worker-1), rank "
      "2 (dlc0123456789abc-worker-2) have not ended");
}

TEST(HangTest, WhoHasNoEndOfItsOwnIsNeitherEndedNorWaitedFor) {
  HangHarness job(2);
  job.spec.roles.push_back({Role::kPs, 1, 1});
  job.Run();
  job.Feed(RankSucceeded{InstanceIndex{2}, Attempt{0}, Rank{2}});  // a ps that ends all the same
  EXPECT_EQ(job.job().first_success, std::nullopt);
  job.Pass(30s);
  EXPECT_EQ(job.Feed(job.AtExit()), StepResult{});
  job.Feed(RankSucceeded{InstanceIndex{0}, Attempt{0}, Rank{0}});
  EXPECT_EQ(job.job().first_success, job.now.monotonic);
}

TEST(HangTest, OfAnInstanceWithSeveralRanksTheFirstThatEndsCounts) {
  HangHarness job(1);
  job.spec.roles = {{Role::kWorker, 1, 2}};
  job.Run();
  job.Feed(RankSucceeded{InstanceIndex{0}, Attempt{0}, Rank{0}});
  job.Pass(30s);
  job.Feed(job.AtExit());
  EXPECT_EQ(job.job().phase, Phase::kCollecting);
}

TEST(HangTest, AnExitHangIsOfItsRound) {
  HangHarness job;
  job.Run();
  job.Feed(RankSucceeded{InstanceIndex{0}, Attempt{0}, Rank{0}});
  job.Ended(0);
  job.Pass(30s);
  job.Feed(job.AtExit());
  job.NextTick();
  job.EndedAll();
  job.Run();
  EXPECT_EQ(job.job().first_success, std::nullopt);
  job.Pass(1min);
  EXPECT_EQ(job.Feed(job.AtExit()), StepResult{});
}

TEST(HangTest, TheSameHangRightAtTheStartAgainAndAgainIsNoProgress) {
  HangHarness job;
  job.spec.fault_tolerance.max_num_of_job_restart = 10;
  job.spec.fault_tolerance.no_progress_limit = 2;
  job.spec.fault_tolerance.job_hang_interval = 10s;
  for (int times = 0; times < 2; ++times) {
    job.Run();
    job.Pass(20s);
    job.Feed(job.Silent(10s));
    job.Feed(job.Stacks());
    job.EndedAll();
  }
  EXPECT_EQ(job.job().status, JobStatus::kFailed);
  EXPECT_TRUE(job.job().reason_message.contains("--no-progress-limit=2")) << job.job().reason_message;
}

TEST(HangTest, AWatchdogThatWasFasterIsAnAdvice) {
  HangHarness job;
  job.spec.fault_tolerance.enable_job_hang_detection = false;
  job.Run();
  job.Fail(0);
  job.Collect();
  Judgement judgement = job.Verdict(0);
  judgement.advised_interval = 450s;
  job.Judged(judgement);
  EXPECT_TRUE(job.HasEvent("aimaster.hang.advice"));
  EXPECT_TRUE(job.HasReason("--enable-job-hang-detection=True --job-hang-interval=450"));
  EXPECT_EQ(job.job().records.at(0).judgement.advised_interval, 450s);
}

// ---- what the analysis of communication says ----

class CommunicationHarness : public HangHarness {
 public:
  explicit CommunicationHarness(uint32_t workers = 4, uint32_t nodes = 2) : HangHarness(workers, nodes) {
    spec.fault_tolerance.enable_c4d_hang_detection = true;
  }
  // Worker 2 is on node 1.
  static CommunicationVerdict Verdict(C4dLogLevel level, std::vector<uint32_t> ranks = {2}) {
    CommunicationVerdict verdict{.kind = "RankCommHang",
                                 .level = level,
                                 .is_culprit = true,
                                 .suspects_node = true,
                                 .text = "rank 2 hangs in the communication layer",
                                 .lasts = 11s,
                                 .evidence = {"AllReduce 12: the others completed it."}};
    for (const uint32_t rank : ranks) {
      verdict.ranks.push_back(Rank{rank});
      verdict.instances.push_back(InstanceIndex{rank});
    }
    return verdict;
  }
  CommunicationJudged Judged(std::vector<CommunicationVerdict> verdicts) const { return {job().round, verdicts}; }
};

TEST(CommunicationTest, AWarningIsToldOnceAndNothingFollows) {
  CommunicationHarness job;
  job.Run();
  job.Pass(5min);
  job.Feed(job.Judged({job.Verdict(C4dLogLevel::kWarning)}));
  ASSERT_EQ(job.last.events.size(), 1u);
  EXPECT_EQ(job.last.events[0].type, "aimaster.c4d.rank-comm-hang");
  EXPECT_EQ(job.last.events[0].subject, "node-1");
  EXPECT_EQ(job.last.events[0].message,
            "Warning: rank 2 hangs in the communication layer (RankCommHang), on node-1, for 11.0 s");
  EXPECT_EQ(job.job().phase, Phase::kRunning);
  EXPECT_TRUE(job.last.actions.empty());
  job.Feed(job.Judged({job.Verdict(C4dLogLevel::kWarning)}));
  EXPECT_TRUE(job.last.events.empty());
  job.Feed(job.Judged({}));
  EXPECT_TRUE(job.HasEvent("aimaster.c4d.over"));
  EXPECT_TRUE(job.job().communication.empty());
}

TEST(CommunicationTest, AnErrorLeavesTheNodeThatItNamesOnceTheStacksAreThere) {
  CommunicationHarness job;
  job.Run();
  job.Pass(5min);
  job.Feed(job.Judged({job.Verdict(C4dLogLevel::kError)}));
  EXPECT_EQ(job.job().phase, Phase::kCollecting);
  EXPECT_TRUE(job.HasEvent("aimaster.c4d.rank-comm-hang"));
  EXPECT_TRUE(job.HasEvent("aimaster.hang.found"));
  ASSERT_EQ(HangHarness::Of<CaptureStacks>(job.last).size(), 1u);
  job.Feed(job.Stacks());
  const RestartRecord& record = job.job().records.at(0);
  EXPECT_EQ(record.judgement.source, ErrorSource::kC4d);
  EXPECT_EQ(record.judgement.fault, "RankCommHang");
  EXPECT_EQ(record.judgement.root_rank, Rank{2}) << "and not rank 1, whose stack is the rarest";
  EXPECT_EQ(record.node_name, "node-1");
  EXPECT_EQ(record.judgement.stacks, "stacks/1.json");
  EXPECT_TRUE(record.isolated_node);
  EXPECT_TRUE(job.job().nodes.at(NodeIndex{1}).isolated);
  EXPECT_EQ(record.judgement.message,
            "the job hangs: rank 2 hangs in the communication layer (RankCommHang), on node-1, for 11.0 s; the rarest "
            "call stack: load (data.py:12)");
  EXPECT_TRUE(job.HasReason("C4D: AllReduce 12: the others completed it."));
  EXPECT_TRUE(job.HasReason("node node-1 is suspect and is isolated"));
  EXPECT_TRUE(job.job().restarts == 1 && job.job().status == JobStatus::kRestarting);
}

TEST(CommunicationTest, WhereNobodyOrSeveralNodesAreNamedNoneIsIsolated) {
  CommunicationVerdict group = CommunicationHarness::Verdict(C4dLogLevel::kError, {0, 1, 2, 3});
  group.is_culprit = group.suspects_node = false;
  CommunicationVerdict program = CommunicationHarness::Verdict(C4dLogLevel::kError);
  program.suspects_node = false;
  CommunicationVerdict nowhere = CommunicationHarness::Verdict(C4dLogLevel::kError);
  nowhere.instances.clear();
  CommunicationVerdict beyond = CommunicationHarness::Verdict(C4dLogLevel::kError, {4});
  for (const CommunicationVerdict& verdict :
       {group, program, nowhere, beyond, CommunicationHarness::Verdict(C4dLogLevel::kError, {0, 2})}) {
    CommunicationHarness job;
    job.Run();
    job.Pass(5min);
    job.Feed(job.Judged({verdict}));
    job.NextTick();  // no stacks
    EXPECT_EQ(job.job().restarts, 1u);
    EXPECT_FALSE(job.job().records.at(0).isolated_node);
  }
}

TEST(CommunicationTest, ItNamesWhoIsToBlameWhereAllAreSilent) {
  CommunicationHarness job;
  job.Run();
  job.Pass(5min);
  job.Feed(job.Judged({job.Verdict(C4dLogLevel::kWarning)}));
  job.Feed(job.Silent());
  job.Feed(job.Stacks());
  const RestartRecord& record = job.job().records.at(0);
  EXPECT_EQ(record.judgement.source, ErrorSource::kHang);
  EXPECT_EQ(record.judgement.root_rank, Rank{2});
  EXPECT_FALSE(record.isolated_node) << "a warning isolates nothing";
  EXPECT_TRUE(job.HasReason("C4D, Warning: rank 2 hangs in the communication layer"));
}

TEST(CommunicationTest, OfAnMpiProgramTheRanksAreItsOwn) {
  CommunicationHarness job(2, 2);
  job.spec.framework = Framework::kMpi;
  job.Run();
  job.Pass(5min);
  CommunicationVerdict verdict = job.Verdict(C4dLogLevel::kError, {17});
  verdict.instances = {InstanceIndex{1}};
  job.Feed(job.Judged({verdict}));
  job.NextTick();
  const Judgement& judgement = job.job().records.at(0).judgement;
  EXPECT_EQ(judgement.root_rank, Rank{1});
  ASSERT_EQ(judgement.details.size(), 1u);
  EXPECT_EQ(judgement.details[0].mpi_rank, 17u);
  EXPECT_TRUE(job.job().records.at(0).isolated_node);
}

TEST(CommunicationTest, WhatIsBelowTheLevelAskedForIsKeptAndNotTold) {
  CommunicationHarness job;
  job.spec.fault_tolerance.c4d_log_level = C4dLogLevel::kError;
  job.Run();
  job.Feed(job.Judged({job.Verdict(C4dLogLevel::kWarning)}));
  EXPECT_TRUE(job.last.events.empty());
  EXPECT_EQ(job.job().communication.size(), 1u);
  job.Feed(job.Judged({}));
  EXPECT_TRUE(job.last.events.empty());
}

TEST(CommunicationTest, WithoutHangDetectionOrOfAnotherRoundItMeansNothing) {
  for (const bool is_old : {true, false}) {
    CommunicationHarness job;
    job.spec.fault_tolerance.enable_job_hang_detection = is_old;
    job.Run();
    CommunicationJudged judged = job.Judged({job.Verdict(C4dLogLevel::kError)});
    if (is_old) judged.round = Round{7};
    job.Feed(judged);
    EXPECT_EQ(job.job().phase, Phase::kRunning);
    EXPECT_TRUE(job.last.events.empty() && job.job().communication.empty());
  }
}

TEST(CommunicationTest, ANewRoundBeginsWithoutIt) {
  CommunicationHarness job;
  job.Run();
  job.Feed(job.Judged({job.Verdict(C4dLogLevel::kWarning)}));
  job.Hang();
  job.EndedAll();
  job.Run();
  EXPECT_TRUE(job.job().communication.empty());
}

TEST(CommunicationTest, WithoutLeaveToRestartTheJobFailsAndTheRecordIsKept) {
  CommunicationHarness job;
  job.spec.fault_tolerance.enable_job_restart = false;
  job.Run();
  job.Feed(job.Judged({job.Verdict(C4dLogLevel::kError)}));
  job.NextTick();
  job.EndedAll();
  EXPECT_EQ(job.job().reason_code, "RankCommHang");
  ASSERT_EQ(job.job().records.size(), 1u);
  EXPECT_EQ(job.job().records[0].result, RestartResult::kFailed);
}

}  // namespace
}  // namespace aimaster
