// Several instances of an Async job fail at once: each is judged by what it said itself.
#include "detect/judge_apart.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <set>

namespace aimaster {
namespace {

using std::chrono::milliseconds;

RankFailure Failed(uint32_t rank, RankExit exit, Duration at, uint32_t ranks_per_instance = 1) {
  exit.time = Wall{std::chrono::seconds(1'700'000'000) + at};
  const uint32_t instance = rank / ranks_per_instance;
  return {.rank = Rank{rank}, .instance = InstanceIndex{instance}, .node = NodeIndex{instance}, .exit = exit};
}
RankFailure Saying(RankFailure failure, const std::string& rule, const std::string& line) {
  failure.matches.push_back({rule, line, "rank.err", 0});
  failure.last_error_line = line;
  return failure;
}

TEST(JudgeApartTest, TwoThatDieOfDifferentThingsAreTwoCauses) {
  const std::vector<Judgement> judgements =
      JudgeApart(std::vector{Failed(0, {.signal = SIGKILL}, milliseconds(0)),
                             Saying(Failed(1, {.code = 1}, milliseconds(5)), "UserException", "ValueError: no")},
                 4);
  ASSERT_EQ(judgements.size(), 2u);
  EXPECT_EQ(judgements[0].root_instance, InstanceIndex{0});
  EXPECT_EQ(judgements[0].error_code, 137);
  EXPECT_EQ(judgements[0].retryable, Retryable::kYes);
  EXPECT_EQ(judgements[1].root_instance, InstanceIndex{1});
  EXPECT_EQ(judgements[1].fault, "UserException");
  EXPECT_EQ(judgements[1].retryable, Retryable::kNo) << "a mistake in the program is seen though another died first";
  EXPECT_FALSE(judgements[1].is_consequence);
}

TEST(JudgeApartTest, WhoLostItsPeerIsAConsequenceWhereSomebodyFailedByItself) {
  const RankFailure victim =
      Saying(Failed(0, {.code = 1}, milliseconds(0)), "PeerConnectionLost", "recv: Connection reset by peer");
  const std::vector<Judgement> together =
      JudgeApart(std::vector{victim, Failed(3, {.signal = SIGKILL}, milliseconds(50))}, 4);
  ASSERT_EQ(together.size(), 2u);
  EXPECT_EQ(together[0].root_instance, InstanceIndex{3}) << "who began comes first";
  EXPECT_FALSE(together[0].is_consequence);
  EXPECT_EQ(together[1].root_instance, InstanceIndex{0});
  EXPECT_TRUE(together[1].is_consequence);
  EXPECT_EQ(together[1].reasons.back(), "rank 3 failed at the same time by its own fault: this one followed");
  EXPECT_FALSE(JudgeApart(std::vector{victim}, 4)[0].is_consequence) << "alone it is all that there is";
}

TEST(JudgeApartTest, TheRanksOfOneInstanceAreOneFailure) {
  const std::vector<Judgement> judgements = JudgeApart(
      std::vector{Failed(2, {.code = 7}, milliseconds(9), 2), Failed(3, {.code = 8}, milliseconds(1), 2)}, 4);
  ASSERT_EQ(judgements.size(), 1u);
  EXPECT_EQ(judgements[0].root_rank, Rank{3});
  EXPECT_EQ(judgements[0].failed_ranks, 2u);
  EXPECT_EQ(judgements[0].details.size(), 2u);
}

TEST(JudgeApartTest, AStormIsJudgedPieceByPieceThoseWhoBeganFirst) {
  std::vector<RankFailure> failures;
  for (uint32_t rank = 0; rank < 400; ++rank) {
    failures.push_back(
        Saying(Failed(rank, {.code = 1}, milliseconds(rank)), "PeerConnectionLost", "recv: Connection reset by peer"));
  }
  failures[399].matches.clear();
  failures[399].exit = RankExit{.signal = SIGKILL, .time = failures[399].exit->time};
  const std::vector<Judgement> judgements = JudgeApart(failures, 400);
  ASSERT_EQ(judgements.size(), kJudgedApartMax);
  EXPECT_EQ(judgements[0].root_instance, InstanceIndex{399});
  std::set<InstanceIndex> judged;
  for (const Judgement& judgement : judgements) EXPECT_TRUE(judged.insert(judgement.root_instance).second);
}

}  // namespace
}  // namespace aimaster
