// Who kept the others waiting: what watchdogs of several versions print, and what follows from it together.
#include "detect/collective_progress.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "detect/root_cause.h"

namespace aimaster {
namespace {

using How = OddRanks::How;

std::vector<LineMatch> Lines(const std::vector<std::string>& lines) {
  std::vector<LineMatch> matches;
  for (const std::string& line : lines)
    matches.push_back({"CollectiveTimeout", line, "rank.err", matches.size() * 200});
  return matches;
}

std::vector<CollectiveReport> Read(uint32_t rank, const std::vector<std::string>& lines) {
  return ReadCollectiveReports(Rank{rank}, Lines(lines));
}

CollectiveReport Waits(uint32_t rank, int64_t number, const std::string& operation = "ALLREDUCE", int64_t size = 64) {
  return {.rank = Rank{rank},
          .group = "0(default_pg)",
          .ordinal = 0,
          .timed_out = number,
          .last_enqueued = number,
          .operation = operation,
          .elements_in = size,
          .elements_out = size};
}

std::optional<OddRanks> Find(const std::vector<CollectiveReport>& reports, const std::vector<Rank>& silent = {},
                             uint32_t ranks = 8) {
  const auto odd = FindOddRanks(reports, silent, ranks);
  std::vector<CollectiveReport> reversed(reports.rbegin(), reports.rend());
  EXPECT_EQ(odd.has_value(), FindOddRanks(reversed, silent, ranks).has_value());
  return odd;
}

// ---- reading

TEST(ReadCollectiveReportsTest, TheLinesOfANewLibraryMakeOneReport) {
  const auto reports = Read(
      1, {"[E1218 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, "
          "OpType=BROADCAST, NumelIn=131072, NumelOut=131072, Timeout(ms)=600000) ran for 600088 milliseconds before "
          "timing out.",
          "[E1218 ProcessGroupNCCL.cpp:2168] [PG ID 1 PG GUID 7 Rank 1]  failure detected by watchdog at work sequence "
          "id: 1 PG status: last enqueued work: 547, last completed work: -1"});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0], (CollectiveReport{.rank = Rank{1},
                                          .group = "7",
                                          .ordinal = 1,
                                          .timed_out = 1,
                                          .last_enqueued = 547,
                                          .operation = "BROADCAST",
                                          .elements_in = 131072,
                                          .elements_out = 131072}));
}

TEST(ReadCollectiveReportsTest, OlderLibrariesTellLess) {
  auto reports = Read(3, {"[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, "
                          "Timeout(ms)=1800000) ran for 1808493 milliseconds before timing out."});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].operation, "ALLREDUCE");
  EXPECT_FALSE(reports[0].timed_out);
  reports = Read(2, {"[E ProcessGroupNCCL.cpp:1537] [PG 1 Rank 2] Timeout at NCCL work: 7, last enqueued NCCL work: 8, "
                     "last completed NCCL work: 6."});
  EXPECT_EQ(reports[0].group, "1");
  EXPECT_EQ(reports[0].timed_out, 7);
  EXPECT_EQ(reports[0].last_enqueued, 8);
}

TEST(ReadCollectiveReportsTest, ARankThatDidNotTimeOutSaysHowFarItCame) {
  const auto reports = Read(
      0,
      {"[PG ID 0 PG GUID 0(default_pg) Rank 0] Received a dump signal due to a collective timeout from  rank 10 and we "
       "will try our best to dump the debug info. Last enqueued NCCL work: 166, last completed NCCL work: 166."});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_FALSE(reports[0].timed_out);
  EXPECT_EQ(reports[0].last_enqueued, 166);
  EXPECT_EQ(reports[0].group, "0(default_pg)");
}

TEST(ReadCollectiveReportsTest, SomeLibrariesNameThoseThatDidNotCome) {
  const std::vector<Rank> one{Rank{1}}, two{Rank{2}, Rank{5}};
  EXPECT_EQ(
      Read(0, {"- [1] finished collective #1155873, but didn't join collective #1155874 (count from 1)"})[0].accused,
      one);
  EXPECT_EQ(
      Read(0, {"- To our best knowledge, ranks [2, 5] are the lagging ranks that caused this timeout."})[0].accused,
      two);
  EXPECT_EQ(Read(0, {"RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 30000 ms"})[0].accused, one);
  EXPECT_EQ(Read(0, {"RuntimeError: [Rank 0]: Ranks 2, 5 failed to pass monitoredBarrier in 30000 ms"})[0].accused,
            two);
}

TEST(ReadCollectiveReportsTest, OtherLinesSayNothing) {
  EXPECT_TRUE(
      Read(0, {"RuntimeError: CUDA out of memory", "[PG ID 0 PG GUID", "SeqNum=", "[] finished collective #"}).empty());
}

// ---- comparing

TEST(FindOddRanksTest, TheRankThatIsBehindKeptTheOthersWaiting) {
  CollectiveReport late{.rank = Rank{3}, .group = "0(default_pg)", .last_enqueued = 166};
  const auto odd = Find({Waits(0, 167), Waits(1, 167), Waits(2, 167), late});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->how, How::kBehind);
  EXPECT_EQ(odd->ranks, std::vector{Rank{3}});
  EXPECT_EQ(odd->words,
            "rank 3 is behind, at 166, while 3 ranks wait for collective 167 (ALLREDUCE) of group 0(default_pg)");
}

TEST(FindOddRanksTest, OfTwoThatWaitForDifferentNumbersTheSmallerIsBehind) {
  EXPECT_EQ(Find({Waits(0, 12), Waits(1, 11)}, {}, 2)->ranks, std::vector{Rank{1}});
}

TEST(FindOddRanksTest, TheOneThatCallsSomethingElseIsDifferent) {
  const auto odd = Find({Waits(0, 9), Waits(1, 9, "BROADCAST"), Waits(2, 9)});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->how, How::kDifferent);
  EXPECT_EQ(odd->ranks, std::vector{Rank{1}});
  EXPECT_EQ(
      odd->words,
      "rank 1 called BROADCAST of 64 elements where ranks 0, 2 called ALLREDUCE of 64 elements, at number 9 of group "
      "0(default_pg)");
  EXPECT_EQ(Find({Waits(0, 9), Waits(1, 9), Waits(2, 9, "ALLREDUCE", 128)})->ranks, std::vector{Rank{2}});
}

TEST(FindOddRanksTest, TwoThatDifferHaveNobodyToBlame) {
  const auto odd = Find({Waits(0, 9), Waits(1, 9, "BROADCAST")}, {}, 2);
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->how, How::kDifferent);
  EXPECT_TRUE(odd->ranks.empty());
}

TEST(FindOddRanksTest, SizesMayDifferWhereTheOperationAllowsIt) {
  EXPECT_FALSE(Find({Waits(0, 9, "ALLTOALL_BASE", 64), Waits(1, 9, "ALLTOALL_BASE", 128)}, {}, 2));
}

TEST(FindOddRanksTest, TheSilentOneIsAskedWhereAllOthersSpeak) {
  const auto odd = Find({Waits(0, 5), Waits(1, 5), Waits(2, 5)}, {Rank{3}}, 4);
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->how, How::kSilent);
  EXPECT_EQ(odd->ranks, std::vector{Rank{3}});
  EXPECT_EQ(odd->words, "rank 3 says nothing while 3 ranks wait for collective 5 (ALLREDUCE) of group 0(default_pg)");
  EXPECT_FALSE(Find({Waits(0, 5), Waits(1, 5)}, {Rank{2}, Rank{3}}, 4)) << "two of four may only be slower";
  CollectiveReport slice = Waits(0, 5);
  slice.group = "17";
  EXPECT_FALSE(Find({slice}, {Rank{3}}, 4)) << "nobody knows who is in that group";
}

TEST(FindOddRanksTest, WhereAllWaitForTheSameNobodyStandsOut) {
  EXPECT_FALSE(Find({Waits(0, 5), Waits(1, 5), Waits(2, 5), Waits(3, 5)}, {}, 4));
  EXPECT_FALSE(Find({}, {Rank{0}}, 4));
}

TEST(FindOddRanksTest, WhoIsNamedByManyIsNoCulprit) {
  CollectiveReport accuses{.rank = Rank{0}, .accused = {Rank{1}, Rank{2}, Rank{3}}};
  EXPECT_FALSE(Find({accuses}, {}, 4));
  accuses.accused = {Rank{2}};
  EXPECT_EQ(Find({accuses}, {}, 4)->how, How::kNamed);
}

TEST(FindOddRanksTest, GroupsOfOneKindThatAreFarApartRunDifferentPrograms) {
  CollectiveReport one = Waits(13, 216, "ALLTOALL_BASE"), other = Waits(15, 57);
  one.group = "119";
  other.group = "112";
  one.ordinal = other.ordinal = 11;
  const auto odd = Find({one, other}, {}, 16);
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->how, How::kDifferent);
  EXPECT_TRUE(odd->ranks.empty());
  other.timed_out = 215;
  EXPECT_FALSE(Find({one, other}, {}, 16)) << "a step apart is what waiting looks like";
  other.timed_out = 57;
  other.ordinal = 3;
  EXPECT_FALSE(Find({one, other}, {}, 16)) << "groups of different kinds";
}

TEST(FindOddRanksTest, SendsAndReceivesAreNotCompared) {
  EXPECT_FALSE(Find({Waits(0, 90, "SEND"), Waits(1, 5, "RECV"), Waits(2, 5, "COALESCED")}));
}

TEST(FindOddRanksTest, WhereTheGroupIsNotToldOnlyTheSameOperationIsCompared) {
  CollectiveReport one = Waits(0, 500), other = Waits(1, 100, "ALLGATHER"), third = Waits(2, 500);
  one.group = other.group = third.group = "";
  EXPECT_FALSE(Find({one, other, third}));
}

// ---- what the judge makes of it

RankFailure Fails(uint32_t rank, const std::vector<std::string>& lines) {
  RankFailure failure{.rank = Rank{rank}, .instance = InstanceIndex{rank}, .node = NodeIndex{rank / 2}};
  failure.exit = RankExit{.signal = 6, .time = Wall{std::chrono::milliseconds(1000 + rank)}};
  failure.matches = Lines(lines);
  return failure;
}

std::string Watchdog(int64_t number, const std::string& operation = "ALLREDUCE") {
  return "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" + std::to_string(number) +
         ", OpType=" + operation +
         ", NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600088 milliseconds before "
         "timing out.";
}

TEST(CollectiveJudgementTest, TheSilentRankIsTheRootThoughItHasNotFailed) {
  const std::vector<RankFailure> failures{Fails(0, {Watchdog(7)}), Fails(1, {Watchdog(7)}), Fails(3, {Watchdog(7)})};
  const Judgement judgement = Judge(failures, 4, RuleTable::BuiltIn(), [](Rank rank) {
    return std::optional(RankPlace{InstanceIndex{Value(rank)}, NodeIndex{1}});
  });
  EXPECT_EQ(judgement.root_rank, Rank{2});
  EXPECT_EQ(judgement.root_instance, InstanceIndex{2});
  EXPECT_EQ(judgement.root_node, NodeIndex{1});
  EXPECT_EQ(judgement.fault, "CollectiveTimeout");
  EXPECT_EQ(judgement.retryable, Retryable::kYes);
  EXPECT_EQ(judgement.message, "rank 2 says nothing while 3 ranks wait for collective 7 (ALLREDUCE)");
  EXPECT_TRUE(judgement.details.front().is_root);
  EXPECT_EQ(judgement.details.front().rank, Rank{2});
  EXPECT_EQ(judgement.details.size(), 4u);
  EXPECT_EQ(judgement.reasons.front(), judgement.message);

  const Judgement unplaced = Judge(failures, 4);
  EXPECT_EQ(unplaced.root_rank, Rank{0}) << "where it lives is not known: a reason names it";
  EXPECT_EQ(unplaced.reasons.front(), judgement.message);
}

TEST(CollectiveJudgementTest, ARankThatWeHadToStopMayBeTheOneThatWasSilent) {
  std::vector<RankFailure> failures{Fails(0, {Watchdog(7)}), Fails(1, {Watchdog(7)}), Fails(2, {})};
  failures[2].stopped_by_us = true;
  EXPECT_EQ(Judge(failures, 3).root_rank, Rank{2});
}

TEST(CollectiveJudgementTest, DifferentCallsAreAMistakeInTheProgram) {
  const Judgement judgement =
      Judge(std::vector{Fails(0, {Watchdog(7)}), Fails(1, {Watchdog(7, "BROADCAST")}), Fails(2, {Watchdog(7)})}, 3);
  EXPECT_EQ(judgement.fault, "CollectiveMismatch");
  EXPECT_EQ(judgement.retryable, Retryable::kNo);
  EXPECT_EQ(judgement.root_rank, Rank{1});
}

TEST(CollectiveJudgementTest, SomebodysOwnFaultSettlesIt) {
  RankFailure broken = Fails(1, {});
  broken.matches = {{"GpuEccUncorrectable", "uncorrectable ECC error", "rank1.err", 0}};
  EXPECT_EQ(Judge(std::vector{Fails(0, {Watchdog(7)}), broken, Fails(2, {Watchdog(7)})}, 4).fault,
            "GpuEccUncorrectable");
}

TEST(CollectiveJudgementTest, WhereAllWaitForTheSameNoRankIsTheRoot) {
  EXPECT_EQ(Judge(std::vector{Fails(0, {Watchdog(7)}), Fails(1, {Watchdog(7)})}, 2).root_rank, std::nullopt);
}

}  // namespace
}  // namespace aimaster
