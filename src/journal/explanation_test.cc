// What `aimaster explain` is told: each decision with the judgement and the line that it rests on.
#include "journal/explanation.h"

#include "journal/job_reader.h"
#include "journal/journal_harness.h"

namespace aimaster {
namespace {

class ExplanationTest : public testing::Test {
 protected:
  std::vector<Explanation> Read(const EngineHarness& job) {
    const Played played = Play(job.inputs);
    {
      Journal journal = std::move(*Journal::OpenOrCreate(place_ / "journal.db", "rules"));
      EXPECT_TRUE(journal.Append(played.batch, played.engine.job()));
    }
    Database database = *Database::Open(place_ / "journal.db", Database::Mode::kRead);
    Result<std::vector<Explanation>> explanations = ReadExplanations(database);
    EXPECT_TRUE(explanations) << explanations.error().message;
    return std::move(*explanations);
  }

  // Rank 1 fails and prints a line.
  static void FailWithALine(EngineHarness& job, const std::string& line, int code = 7) {
    RankFailure failure = job.Failure(1, code);
    failure.matches = {{"Other", "something before", "rank0.err", 3}, {"TestFault", line, "rank0.err", 1841}};
    job.Feed(RankFailed{failure});
    if (job.job().phase == Phase::kCollecting) job.Collect();
    Judgement judgement = job.Verdict(1, Retryable::kYes, code);
    judgement.message = line;
    judgement.source = ErrorSource::kLog;
    job.Judged(judgement);
  }

  TemporaryDirectory place_;
};

TEST_F(ExplanationTest, ARestartRestsOnAJudgementAndALine) {
  EngineHarness job(4, 2);
  job.Run();
  FailWithALine(job, "KeyError: 'lr'");
  const std::vector<Explanation> explanations = Read(job);
  ASSERT_EQ(explanations.size(), 1u);
  const Explanation& restart = explanations.front();
  EXPECT_EQ(restart.decision.kind, "Restart");
  ASSERT_TRUE(restart.judgement);
  EXPECT_EQ(restart.judgement->root_rank, Rank{1});
  ASSERT_TRUE(restart.line);
  EXPECT_EQ(restart.line->match.line, "KeyError: 'lr'");
  EXPECT_EQ(restart.line->match.offset, 1841u);
  EXPECT_EQ(restart.line->instance, InstanceIndex{1});
}

TEST_F(ExplanationTest, TheReasonsOfTheLimitsAreApartFromThoseOfTheJudgement) {
  EngineHarness job(4, 2);
  job.Run();
  FailWithALine(job, "KeyError: 'lr'");
  const Explanation restart = Read(job).front();
  ASSERT_FALSE(restart.limits.empty());
  EXPECT_EQ(restart.limits.size() + restart.judgement->reasons.size(), restart.decision.reasons.size());
  EXPECT_EQ(restart.limits.back(), restart.decision.reasons.back());
}

TEST_F(ExplanationTest, EachFailureHasItsOwnLine) {
  EngineHarness job(4, 2);
  job.Run();
  FailWithALine(job, "first");
  job.EndedAll();
  job.Run();
  FailWithALine(job, "second");
  const std::vector<Explanation> explanations = Read(job);
  ASSERT_EQ(explanations.size(), 2u);
  EXPECT_EQ(explanations[0].line->match.line, "first");
  EXPECT_EQ(explanations[1].line->match.line, "second");
  EXPECT_NE(explanations[0].line->attempt, explanations[1].line->attempt);
}

TEST_F(ExplanationTest, AnExitThatTellsByItselfHasNoLine) {
  const std::vector<Explanation> explanations = Read(RestartedJob());
  ASSERT_EQ(explanations.size(), 1u);
  EXPECT_TRUE(explanations.front().judgement);
  EXPECT_FALSE(explanations.front().line);
}

TEST_F(ExplanationTest, ADecisionThatNoFailureLedToHasReasonsAlone) {
  EngineHarness job(4, 2);
  job.Run();
  job.Feed(StopRequested{.at_once = false, .by = "Ctrl-C"});
  const std::vector<Explanation> explanations = Read(job);
  ASSERT_EQ(explanations.size(), 1u);
  EXPECT_FALSE(explanations.front().judgement);
  EXPECT_EQ(explanations.front().limits, explanations.front().decision.reasons);
}

}  // namespace
}  // namespace aimaster
