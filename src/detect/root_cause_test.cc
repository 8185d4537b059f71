// Who began: each test is a small accident.
#include "detect/root_cause.h"

#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <cerrno>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace aimaster {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

Wall At(Duration since) { return Wall{seconds(1'700'000'000) + since}; }

// A rank that lives on the node and in the instance of its own number.
RankFailure Failed(uint32_t rank, RankExit exit, Duration at) {
  exit.time = At(at);
  return {.rank = Rank{rank}, .instance = InstanceIndex{rank}, .node = NodeIndex{rank}, .exit = exit};
}
RankFailure Exits(uint32_t rank, int code, Duration at) { return Failed(rank, {.code = code}, at); }
RankFailure Killed(uint32_t rank, int signal, Duration at) { return Failed(rank, {.signal = signal}, at); }
RankFailure Saying(RankFailure failure, const std::string& rule, const std::string& line) {
  failure.matches.push_back({rule, line, "rank.err", 0});
  failure.last_error_line = line;
  return failure;
}
RankFailure Exception(uint32_t rank, const std::string& line, Duration at) {
  return Saying(Exits(rank, 1, at), "UserException", line);
}
RankFailure LosesPeer(uint32_t rank, Duration at) {
  return Saying(Exits(rank, 1, at), "PeerConnectionLost", "recv: Connection reset by peer");
}
RankFailure OnNode(RankFailure failure, uint32_t node) {
  failure.node = NodeIndex{node};
  return failure;
}
RankFailure Unsure(RankFailure failure, Duration uncertainty) {
  failure.clock_uncertainty = uncertainty;
  return failure;
}

Judgement JudgeAll(const std::vector<RankFailure>& failures, uint32_t ranks = 8) { return Judge(failures, ranks); }

TEST(RootCauseTest, TheOneThatFailsFirstIsToBlameAlsoByTwentyMilliseconds) {
  const Judgement judgement = JudgeAll({Exits(0, 9, milliseconds(120)), Exits(1, 7, milliseconds(100))}, 2);
  EXPECT_EQ(judgement.root_rank, Rank{1});
  EXPECT_EQ(judgement.error_code, 7);
  EXPECT_EQ(judgement.reasons.front(), "rank 1: exit code 7; failed first, 20 ms before rank 0");
  EXPECT_EQ(judgement.reasons.back(), "rank 0 failed too: exit code 9");
}

TEST(RootCauseTest, OnOneNodeANanosecondDecides) {
  const Duration t = milliseconds(100);
  const auto first = Unsure(OnNode(Exits(1, 7, t), 0), seconds(1));
  const auto second = Unsure(OnNode(Exits(0, 9, t + Duration(1)), 0), seconds(1));
  EXPECT_EQ(JudgeAll({second, first}).root_rank, Rank{1});
}

TEST(RootCauseTest, WhereClocksCannotTellTheEvidenceDecides) {
  const auto plain = Unsure(Exits(0, 9, milliseconds(100)), milliseconds(5));
  const auto telling =
      Unsure(Saying(Exits(1, 1, milliseconds(104)), "GpuEccUncorrectable", "uncorrectable ECC error"), milliseconds(5));
  EXPECT_EQ(JudgeAll({plain, telling}).root_rank, Rank{1});
  const auto later = Unsure(telling, milliseconds(1));
  EXPECT_EQ(JudgeAll({Unsure(plain, milliseconds(1)), later}).root_rank, Rank{0}) << "now they can tell";
}

TEST(RootCauseTest, WhereNothingTellsTheSmallerRankIsTaken) {
  EXPECT_EQ(JudgeAll({Exits(3, 7, seconds(1)), Exits(2, 7, seconds(1))}).root_rank, Rank{2});
}

TEST(RootCauseTest, AKilledRankIsTheCauseOfItsPeersLostConnections) {
  const Judgement judgement =
      JudgeAll({LosesPeer(0, milliseconds(90)), Killed(2, 9, milliseconds(100)), LosesPeer(3, milliseconds(95))}, 4);
  EXPECT_EQ(judgement.root_rank, Rank{2});
  EXPECT_EQ(judgement.error_code, 137);
  EXPECT_EQ(judgement.fault, "Sigkill");
  EXPECT_EQ(judgement.message, "killed by SIGKILL (9)");
  EXPECT_EQ(judgement.retryable, Retryable::kYes);
  EXPECT_FALSE(judgement.node_suspect);
  EXPECT_EQ(judgement.reasons.back(), "rank 3 is a consequence: it says 'recv: Connection reset by peer'");
}

TEST(RootCauseTest, ARankThatWritesALargeCoreIsTheCauseThoughItExitsLast) {
  RankFailure crashed = Failed(1, {.signal = 11, .core_dumped = true}, seconds(30));
  crashed.dump_start = At(milliseconds(10));
  const Judgement judgement = JudgeAll({Exits(0, 1, milliseconds(300)), Exits(2, 1, milliseconds(400)), crashed}, 3);
  EXPECT_EQ(judgement.root_rank, Rank{1});
  EXPECT_EQ(judgement.error_code, 139);
  EXPECT_EQ(judgement.retryable, Retryable::kOncePerPlace);
}

TEST(RootCauseTest, OutOfMemoryOnOneRankShowsUpAsTimeoutsEverywhereElse) {
  const auto timeout = [](uint32_t rank, Duration at) {
    return Saying(Killed(rank, 6, at), "CollectiveTimeout", "Watchdog caught collective operation timeout");
  };
  const Judgement judgement =
      JudgeAll({timeout(0, seconds(1)), timeout(1, seconds(1)),
                Saying(Exits(2, 1, seconds(2)), "CudaOutOfMemory", "CUDA out of memory"), timeout(3, seconds(1))},
               4);
  EXPECT_EQ(judgement.root_rank, Rank{2});
  EXPECT_EQ(judgement.fault, "CudaOutOfMemory");
}

TEST(RootCauseTest, WhatWeStoppedOurselvesIsNeverTheCause) {
  RankFailure stopped = Killed(0, 15, milliseconds(1));
  stopped.stopped_by_us = true;
  const Judgement judgement = JudgeAll({stopped, LosesPeer(1, milliseconds(50))});
  EXPECT_EQ(judgement.root_rank, Rank{1}) << "a consequence, but of nothing that we see";
  EXPECT_EQ(judgement.reasons.back(), "rank 0 was stopped by AIMaster");
}

TEST(RootCauseTest, ALostNodeExplainsWhatItsPeersSay) {
  RankFailure lost{.rank = Rank{4}, .instance = InstanceIndex{4}, .node = NodeIndex{2}, .exit = std::nullopt};
  lost.lost_reason = "node-2 did not answer for 30 s";
  lost.node_lost = true;
  const Judgement judgement = JudgeAll({LosesPeer(0, seconds(1)), lost});
  EXPECT_EQ(judgement.root_rank, Rank{4});
  EXPECT_EQ(judgement.source, ErrorSource::kNode);
  EXPECT_EQ(judgement.error_code, std::nullopt);
  EXPECT_TRUE(judgement.node_suspect);
  EXPECT_EQ(judgement.severity, Severity::kIsolateNode);
  lost.node_lost = false;
  EXPECT_EQ(JudgeAll({LosesPeer(0, seconds(1)), lost}).source, ErrorSource::kProcess) << "its shim alone was lost";
}

TEST(RootCauseTest, ABadGpuMakesItsNodeSuspect) {
  const Judgement judgement = JudgeAll({Saying(Exits(5, 1, seconds(1)), "GpuEccUncorrectable",
                                               "RuntimeError: CUDA error: uncorrectable ECC error encountered")});
  EXPECT_TRUE(judgement.node_suspect);
  EXPECT_EQ(judgement.root_node, NodeIndex{5});
  EXPECT_EQ(judgement.category, "hardware");
  EXPECT_EQ(judgement.severity, Severity::kIsolateNode);
}

TEST(RootCauseTest, WhenAllFailAlikeNoRankIsTheRoot) {
  std::vector<RankFailure> failures;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    failures.push_back(
        Exception(rank, "ValueError: rank " + std::to_string(rank) + " has no data", milliseconds(rank)));
  }
  const Judgement judgement = JudgeAll(failures, 4);
  EXPECT_EQ(judgement.root_rank, std::nullopt);
  EXPECT_EQ(judgement.fault, "UserException");
  EXPECT_EQ(judgement.retryable, Retryable::kNo);
  EXPECT_TRUE(std::all_of(judgement.details.begin(), judgement.details.end(),
                          [](const FailureDetail& detail) { return detail.is_root; }));

  EXPECT_EQ(JudgeAll(failures, 8).root_rank, Rank{0}) << "the other four are alive";
  failures[2].exit->time = At(seconds(60));
  EXPECT_EQ(JudgeAll(failures, 4).root_rank, Rank{0}) << "not within seconds";
}

TEST(RootCauseTest, WhenAllAreVictimsOfTimeoutsNoRankIsTheRoot) {
  const auto timeout = [](uint32_t rank) {
    return Saying(Killed(rank, 6, milliseconds(rank)), "CollectiveTimeout", "Watchdog caught …");
  };
  EXPECT_EQ(JudgeAll({timeout(0), timeout(1)}, 2).root_rank, std::nullopt);
}

TEST(RootCauseTest, ASingleRankIsItsOwnRoot) { EXPECT_EQ(JudgeAll({Exits(0, 7, seconds(1))}, 1).root_rank, Rank{0}); }

TEST(RootCauseTest, ATakenPortIsAFailureOfTheStart) {
  const Judgement judgement =
      JudgeAll({Saying(Exits(0, 1, seconds(1)), "AddressInUse", "bind: Address already in use"),
                Saying(Exits(1, 1, milliseconds(900)), "ConnectTimeout", "connect() timed out")});
  EXPECT_TRUE(judgement.address_in_use);
  EXPECT_EQ(judgement.root_rank, Rank{0});
  EXPECT_EQ(judgement.severity, Severity::kRetryInPlace);
}

TEST(RootCauseTest, ACommandThatCannotBeExecutedNeverStarted) {
  RankFailure failure = Exits(0, 127, seconds(1));
  EXPECT_FALSE(JudgeAll({failure}).never_started);
  failure.exec_error = "/no/such/train.py: No such file or directory";
  const Judgement judgement = JudgeAll({failure});
  EXPECT_TRUE(judgement.never_started);
  EXPECT_EQ(judgement.fault, "CommandNotFound");
  EXPECT_EQ(judgement.error_code, 127);
  EXPECT_EQ(judgement.message, "/no/such/train.py: No such file or directory");
}

TEST(RootCauseTest, AStartThatLackedResourcesMayBeTriedAgain) {
  RankFailure failure = Exits(0, 126, seconds(1));
  failure.exec_error = "cannot create a process: Resource temporarily unavailable";
  failure.exec_errno = EAGAIN;
  const Judgement judgement = JudgeAll({failure});
  EXPECT_FALSE(judgement.never_started);
  EXPECT_EQ(judgement.fault, "NoResources");
  EXPECT_EQ(judgement.retryable, Retryable::kYes);
}

TEST(RootCauseTest, AStormOfFailuresStaysSmall) {
  std::vector<RankFailure> failures;
  for (uint32_t rank = 0; rank < 4096; ++rank) {
    failures.push_back(Exception(rank, std::string(4096, 'a' + rank % 26), microseconds(rank)));
  }
  const Judgement judgement = JudgeAll(failures, 100'000);
  EXPECT_EQ(judgement.failed_ranks, 4096u);
  EXPECT_EQ(judgement.details.size(), kDetailsMax);
  EXPECT_TRUE(judgement.details[0].is_root);
  EXPECT_LE(judgement.details[1].message.size(), 512u);
  EXPECT_EQ(judgement.reasons.back(), "and 4087 more failures");
}

// ---- whatever happens
// --------------------------------------------------------------------------------------------------

rc::Gen<RankFailure> AnyFailure(uint32_t rank) {
  return rc::gen::exec([rank] {
    const auto& rules = RuleTable::BuiltIn().set().rules;
    RankFailure failure;
    failure.rank = Rank{rank};
    failure.instance = InstanceIndex{rank / 2};
    failure.node = NodeIndex{*rc::gen::inRange(0u, 3u)};
    // Few values, so that ties are common.
    const Wall time = At(milliseconds(*rc::gen::inRange(0, 6)));
    if (*rc::gen::inRange(0, 8) > 0) {
      failure.exit = *rc::gen::arbitrary<bool>() ? RankExit{.code = *rc::gen::element(0, 1, 7, 137, 255)}
                                                 : RankExit{.signal = *rc::gen::element(6, 9, 11, 15)};
      failure.exit->time = time;
    } else {
      failure.lost_reason = "lost";
      failure.node_lost = *rc::gen::arbitrary<bool>();
    }
    failure.stopped_by_us = *rc::gen::inRange(0, 5) == 0;
    failure.clock_uncertainty = milliseconds(*rc::gen::inRange(0, 3));
    const int lines = *rc::gen::inRange(0, 3);
    for (int i = 0; i < lines; ++i) {
      const Rule& rule = rules[*rc::gen::inRange<size_t>(0, rules.size())];
      failure.matches.push_back({rule.code, rule.message, "rank.err", static_cast<uint64_t>(i)});
    }
    return failure;
  });
}

std::vector<RankFailure> AnyFailures() {
  std::vector<RankFailure> failures;
  const uint32_t count = *rc::gen::inRange(1u, 9u);
  for (uint32_t rank = 0; rank < count; ++rank) failures.push_back(*AnyFailure(rank));
  return failures;
}

TEST(RootCauseProperty, TheOrderOfReportsMakesNoDifference) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<RankFailure> failures = AnyFailures();
    std::vector<size_t> order(failures.size());
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[*rc::gen::inRange<size_t>(0, i)]);
    std::vector<RankFailure> shuffled;
    for (size_t i : order) shuffled.push_back(failures[i]);
    RC_ASSERT(Judge(failures, 8) == Judge(shuffled, 8));
  }));
}

TEST(RootCauseProperty, AConsequenceIsNeverTheRootWhileThereIsABetterCandidate) {
  EXPECT_TRUE(rc::check([] {
    std::vector<RankFailure> failures = AnyFailures();
    failures.push_back(Exits(100, 7, seconds(9)));  // somebody with a fault of its own, seen last
    const Judgement judgement = Judge(failures, 8);
    RC_ASSERT(judgement.root_rank.has_value());
    const auto root = std::find_if(failures.begin(), failures.end(),
                                   [&](const RankFailure& failure) { return failure.rank == *judgement.root_rank; });
    const RuleTable& rules = RuleTable::BuiltIn();
    RC_ASSERT(!root->stopped_by_us);
    RC_ASSERT(rules.rule(*rules.Find(judgement.fault)).role == RuleRole::kRoot);
    RC_ASSERT(judgement.details.front().is_root);
    RC_ASSERT(judgement.failed_ranks == failures.size());
  }));
}

}  // namespace
}  // namespace aimaster
