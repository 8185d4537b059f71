// What a master makes of the records of all ranks: who hangs is found once it is certain, and nobody else.
#include "master/communication_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "c4d/record_harness.h"
#include "wire/record_message.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;
using c4d::TestProcess;

// A job of one rank on each node, all in one communicator; the watch over it, and the answers of its agents.
class Observed {
 public:
  explicit Observed(uint32_t nodes = 3) : watch(Epoch{1}), processes(nodes), worlds(nodes) {
    FaultToleranceParameters& parameters = job.spec.fault_tolerance;
    parameters.enable_job_hang_detection = true;
    parameters.enable_c4d_hang_detection = true;
    for (uint32_t i = 0; i < nodes; ++i) {
      job.instances.push_back({.name = "worker", .first_rank = Rank{i}, .node = NodeIndex{i}, .live = true});
      job.nodes[NodeIndex{i}] = {.joined = true};
      worlds[i] = processes[i].JoinWorld(i, nodes);
    }
    job.rank_ended.assign(nodes, false);
    Start();
  }

  void Start() {
    job.phase = Phase::kRunning;
    job.ranks_started = now;
    job.tallies.started = static_cast<uint32_t>(job.instances.size());
    job.rounds.push_back({.round = job.round});
    job.rounds.back().stages.push_back({Stage::kReady, {now, {}}, std::nullopt});
  }

  void AllReduce(uint32_t rank) { processes[rank].Complete(worlds[rank], c4d::kTestAllReduce); }
  RecorderTicket WaitInAllReduce(uint32_t rank) {
    return processes[rank].Begin(worlds[rank], c4d::kTestAllReduce, kRecordBlocking);
  }

  // As if the records had been read so long after they were written.
  v1::Records RecordsOf(uint32_t node, uint64_t number, Duration later) const {
    v1::Records records;
    records.set_number(number);
    v1::ProcessRecord& process = *records.add_processes();
    process = ToMessage(processes[node].Read(later));
    process.mutable_id()->set_instance(node);
    return records;
  }
  void Beat(std::optional<Duration> longest_wait, uint32_t processes_there = 1) {
    for (uint32_t node = 0; node < processes.size(); ++node) {
      v1::Heartbeat beat;
      beat.mutable_communication()->set_processes(processes_there);
      if (longest_wait) beat.mutable_communication()->set_longest_wait_ns(longest_wait->count());
      watch.Heard(now, NodeIndex{node}, beat, job);
    }
  }
  // A second in which somebody waits, as long as that; who is asked answers, but for those who are silent. What is
  // told.
  std::optional<CommunicationJudged> Second(std::optional<Duration> wait, std::set<uint32_t> silent = {}) {
    now = now + 1s;
    Beat(wait);
    CommunicationWatch::Answer answer = watch.Look(now, job);
    asked += answer.ask.size();
    for (const NodeIndex node : answer.ask) {
      if (!silent.contains(Value(node))) watch.Take(node, RecordsOf(Value(node), answer.number, *wait), job);
    }
    if (!answer.judged) answer = watch.Look(now, job);
    if (!answer.judged && !silent.empty()) answer = watch.Look(*watch.NextLook(job), job);
    if (answer.judged) job.communication = answer.judged->verdicts;  // as the engine does
    return answer.judged;
  }

  Monotonic now{1000s};
  JobState job;
  CommunicationWatch watch;
  std::deque<TestProcess> processes;
  std::vector<uint32_t> worlds;
  size_t asked = 0;
};

TEST(CommunicationWatchTest, NobodyIsAskedAsLongAsNobodyWaitsForLong) {
  Observed bench;
  for (int i = 0; i < 60; ++i) EXPECT_FALSE(bench.Second(9s));
  EXPECT_EQ(bench.asked, 0u);
}

TEST(CommunicationWatchTest, WhoIsWaitedForIsNamedWithItsPlaceOnceTwoAnswersAgree) {
  Observed bench;
  bench.WaitInAllReduce(0);
  bench.WaitInAllReduce(2);
  EXPECT_FALSE(bench.Second(11s)) << "one answer is none";
  const auto judged = bench.Second(12s);
  ASSERT_TRUE(judged);
  ASSERT_EQ(judged->verdicts.size(), 1u);
  const CommunicationVerdict& verdict = judged->verdicts.front();
  EXPECT_EQ(verdict.kind, "RankNonCommHang");
  EXPECT_EQ(verdict.level, C4dLogLevel::kWarning);
  EXPECT_EQ(verdict.ranks, std::vector{Rank{1}});
  EXPECT_EQ(verdict.instances, std::vector{InstanceIndex{1}});
  EXPECT_TRUE(verdict.is_culprit);
  EXPECT_FALSE(verdict.suspects_node);
  EXPECT_EQ(verdict.text, "rank 1 hangs outside communication, and others wait for it");
  EXPECT_GE(verdict.lasts, 10s);
  EXPECT_FALSE(verdict.evidence.empty());
  EXPECT_FALSE(bench.Second(13s)) << "it is told once";
  EXPECT_EQ(bench.asked, 9u) << "and looked at again every second";
}

TEST(CommunicationWatchTest, AHangInCommunicationBecomesAnErrorInItsTime) {
  Observed bench;
  bench.job.spec.fault_tolerance.c4d_common_envs = {{"C4D_HANG_TIMEOUT", "2"}, {"C4D_HANG_TIMES", "3"}};
  bench.WaitInAllReduce(1);
  for (const uint32_t rank : {0u, 2u}) {
    bench.AllReduce(rank);
    bench.WaitInAllReduce(rank);
  }
  EXPECT_FALSE(bench.Second(3s));
  auto judged = bench.Second(4s);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->verdicts.front().kind, "RankCommHang");
  EXPECT_EQ(judged->verdicts.front().level, C4dLogLevel::kWarning);
  EXPECT_TRUE(judged->verdicts.front().suspects_node);
  EXPECT_FALSE(bench.Second(5s));
  EXPECT_FALSE(bench.Second(7s));
  judged = bench.Second(8s);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->verdicts.front().level, C4dLogLevel::kError);
  EXPECT_EQ(judged->verdicts.front().ranks, std::vector{Rank{1}});
}

TEST(CommunicationWatchTest, WhatIsOverIsToldAsOver) {
  Observed bench;
  std::vector<RecorderTicket> tickets{bench.WaitInAllReduce(0), bench.WaitInAllReduce(2)};
  bench.Second(11s);
  ASSERT_TRUE(bench.Second(12s));
  EXPECT_FALSE(bench.Second(1s)) << "for a moment nobody waits";
  const auto judged = bench.Second(std::nullopt);
  ASSERT_TRUE(judged);
  EXPECT_TRUE(judged->verdicts.empty());
  EXPECT_FALSE(bench.Second(std::nullopt));
}

TEST(CommunicationWatchTest, AMasterThatTakesOverTellsNothingAsOverBeforeItHasHeardAll) {
  Observed bench;
  bench.WaitInAllReduce(0);
  bench.WaitInAllReduce(2);
  bench.Second(11s);
  ASSERT_TRUE(bench.Second(12s));
  bench.watch = CommunicationWatch(Epoch{2});
  v1::Heartbeat nobody_waits;
  nobody_waits.mutable_communication()->set_processes(1);
  for (int second = 0; second < 5; ++second) {
    bench.now = bench.now + 1s;
    bench.watch.Heard(bench.now, NodeIndex{1}, nobody_waits, bench.job);
    EXPECT_FALSE(bench.watch.Look(bench.now, bench.job).judged);
  }
  EXPECT_FALSE(bench.Second(18s));
  EXPECT_FALSE(bench.Second(19s)) << "it holds, as was told";
}

TEST(CommunicationWatchTest, RanksThatGoOneAfterTheOtherAreNotToldOfOneByOne) {
  Observed bench(8);
  for (uint32_t rank = 0; rank < 2; ++rank) bench.WaitInAllReduce(rank);
  int told = 0;
  for (uint32_t second = 0; second < 20; ++second) {
    if (second % 3 == 2 && second / 3 + 2 < 7) bench.WaitInAllReduce(second / 3 + 2);
    if (bench.Second(Duration(11s) + Duration(1s) * second)) ++told;
  }
  EXPECT_LE(told, 3);
}

TEST(CommunicationWatchTest, ANodeThatDoesNotAnswerIsNotWaitedForAndItsRankNotAccused) {
  Observed bench;
  bench.WaitInAllReduce(0);
  bench.WaitInAllReduce(2);
  for (int i = 11; i < 20; ++i) {
    const auto judged = bench.Second(Duration(1s) * i, {1});
    if (!judged) continue;
    for (const CommunicationVerdict& verdict : judged->verdicts) {
      EXPECT_EQ(verdict.kind, "NoProbeData");
      EXPECT_FALSE(verdict.is_culprit);
    }
  }
}

TEST(CommunicationWatchTest, AnAnswerToAnotherQuestionOrOfAnotherAttemptCountsForNothing) {
  Observed bench;
  bench.WaitInAllReduce(0);
  bench.WaitInAllReduce(2);
  bench.Beat(11s);
  const auto answer = bench.watch.Look(bench.now, bench.job);
  ASSERT_EQ(answer.ask.size(), 3u);
  bench.watch.Take(NodeIndex{1}, bench.RecordsOf(1, answer.number - 1, 11s), bench.job);
  ASSERT_TRUE(bench.watch.NextLook(bench.job));
  v1::Records old = bench.RecordsOf(1, answer.number, 11s);
  old.mutable_processes(0)->mutable_id()->set_attempt(7);
  bench.watch.Take(NodeIndex{1}, old, bench.job);
  for (const uint32_t rank : {0u, 2u}) {
    bench.watch.Take(NodeIndex{rank}, bench.RecordsOf(rank, answer.number, 11s), bench.job);
  }
  EXPECT_FALSE(bench.watch.Look(bench.now, bench.job).judged);
}

TEST(CommunicationWatchTest, WhatNothingTellsOfIsNotTakenForHealth) {
  Observed bench;
  bench.Beat(std::nullopt, 0);
  bench.now = bench.now + 29s;
  EXPECT_FALSE(bench.watch.Look(bench.now, bench.job).judged) << "a program takes its time to begin";
  bench.now = bench.now + 2s;
  const auto answer = bench.watch.Look(bench.now, bench.job);
  ASSERT_TRUE(answer.judged);
  EXPECT_EQ(answer.judged->verdicts.front().kind, "NoProbeData");
  EXPECT_EQ(answer.judged->verdicts.front().level, C4dLogLevel::kWarning);
  bench.job.communication = answer.judged->verdicts;
  EXPECT_FALSE(bench.watch.Look(bench.now + 2s, bench.job).judged) << "it is said once";
  bench.now = bench.now + 3s;
  bench.Second(std::nullopt);
  bench.Second(std::nullopt);
  EXPECT_TRUE(bench.job.communication.empty()) << "and over when somebody begins";
}

TEST(CommunicationWatchTest, NothingIsLookedAtUnlessBothAreAskedFor) {
  for (const bool hang_detection : {true, false}) {
    Observed bench;
    bench.job.spec.fault_tolerance.enable_job_hang_detection = hang_detection;
    bench.job.spec.fault_tolerance.enable_c4d_hang_detection = !hang_detection;
    bench.WaitInAllReduce(0);
    EXPECT_FALSE(bench.Second(100s));
    EXPECT_EQ(bench.asked, 0u);
  }
}

TEST(CommunicationWatchTest, ANewRoundForgetsTheLast) {
  Observed bench;
  bench.WaitInAllReduce(0);
  bench.WaitInAllReduce(2);
  bench.Second(11s);
  ASSERT_TRUE(bench.Second(12s));
  bench.job.communication.clear();
  bench.job.round = Round{1};
  bench.now = bench.now + 1s;
  bench.Start();
  EXPECT_FALSE(bench.watch.Look(bench.now, bench.job).judged);
  EXPECT_FALSE(bench.Second(13s)) << "two answers again";
  EXPECT_TRUE(bench.Second(14s));
}

}  // namespace
}  // namespace aimaster
