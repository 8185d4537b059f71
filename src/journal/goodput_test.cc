// How much of a job's time counted, and what took the rest.
#include "journal/goodput.h"

#include <gtest/gtest.h>

namespace aimaster {
namespace {

using namespace std::chrono_literals;

Wall At(Duration since_submission) { return {1000s + since_submission}; }

// A job of which each line is one thing that happened to it, at seconds after its submission.
struct Story {
  JobSnapshot snapshot;

  Story() {
    snapshot.summary.submit_time = At(0s);
    snapshot.instances.resize(4);
  }
  Story& Round(Duration start) {
    snapshot.rounds.push_back(
        {.round = aimaster::Round{static_cast<uint32_t>(snapshot.rounds.size())}, .start = {{}, At(start)}});
    return *this;
  }
  Story& Ready(Duration began, Duration ended) {
    snapshot.rounds.back().stages.push_back({Stage::kReady, {{}, At(began)}, ended - began});
    return *this;
  }
  Story& Checkpoint(Duration at) {
    snapshot.rounds.back().checkpoint = aimaster::Checkpoint{.step = 5, .at = At(at)};
    return *this;
  }
  // The failure is the last round's; what it leads to is another round, or the end.
  Story& Fails(Duration at, const std::string& fault, Duration next) {
    RestartRecord& record = snapshot.records.emplace_back();
    record.round = snapshot.rounds.back().round;
    record.judgement.fault = fault;
    snapshot.rounds.back().result = RoundResult::kFailed;
    snapshot.rounds.back().end = At(next);
    Round(next);
    snapshot.rounds.back().stages.push_back({Stage::kDetect, {{}, At(at)}, 1s});
    return *this;
  }
  Story& FailsForGood(Duration at, const std::string& reason, Duration end) {
    RoundState& round = snapshot.rounds.back();
    round.result = RoundResult::kFailed;
    round.end = At(end);
    round.stages.push_back({Stage::kDetect, {{}, At(at)}, 1s});
    snapshot.summary.reason_code = reason;
    snapshot.summary.end_time = At(end);
    return *this;
  }
  Story& Succeeds(Duration end) {
    snapshot.rounds.back().result = RoundResult::kSucceeded;
    snapshot.rounds.back().end = snapshot.summary.end_time = At(end);
    return *this;
  }
  Goodput Measure(Duration now = 100000s) const { return MeasureGoodput(snapshot, At(now)); }
};

using Lost = std::vector<LostTime>;

TEST(GoodputTest, AJobThatRunsThroughOnlyHadToStart) {
  const Goodput goodput = Story().Round(1s).Ready(2s, 10s).Succeeds(110s).Measure();
  EXPECT_EQ(goodput.wall, 110s);
  EXPECT_EQ(goodput.productive, 100s);
  EXPECT_EQ(goodput.lost, (Lost{{"starting", 1, 10s, 0s}}));
  EXPECT_FALSE(goodput.knows_checkpoints);
}

TEST(GoodputTest, WhatRanAfterTheLastCheckpointIsLostToWhatFailed) {
  const Goodput goodput = Story()
                              .Round(1s)
                              .Ready(2s, 10s)
                              .Checkpoint(70s)
                              .Fails(90s, "GpuEcc", 95s)
                              .Ready(96s, 100s)
                              .Succeeds(200s)
                              .Measure();
  EXPECT_EQ(goodput.wall, 200s);
  EXPECT_EQ(goodput.productive, 60s + 100s);
  EXPECT_EQ(goodput.lost, (Lost{{"GpuEcc", 1, 10s, 20s}, {"starting", 1, 10s, 0s}}));
  EXPECT_DOUBLE_EQ(goodput.share(), 0.8);
}

TEST(GoodputTest, ARoundThatSavedNothingIsLostAsAWhole) {
  const Goodput goodput = Story()
                              .Round(0s)
                              .Ready(0s, 10s)
                              .Checkpoint(50s)
                              .Fails(50s, "Sigkill", 51s)
                              .Ready(51s, 60s)
                              .Fails(80s, "Sigkill", 81s)
                              .Ready(81s, 90s)
                              .Succeeds(100s)
                              .Measure();
  EXPECT_EQ(goodput.productive, 40s + 10s);
  EXPECT_EQ(goodput.lost, (Lost{{"Sigkill", 2, 20s, 20s}, {"starting", 1, 10s, 0s}}));
}

TEST(GoodputTest, WithoutCheckpointsAllThatRanCounts) {
  const Goodput goodput =
      Story().Round(0s).Ready(0s, 10s).Fails(50s, "Sigkill", 51s).Ready(51s, 60s).Succeeds(100s).Measure();
  EXPECT_EQ(goodput.productive, 80s);
}

TEST(GoodputTest, ARoundThatNeverCameUpIsLostToWhatCalledForIt) {
  const Goodput goodput = Story()
                              .Round(0s)
                              .Ready(0s, 10s)
                              .Fails(50s, "GpuEcc", 51s)
                              .Fails(70s, "PortInUse", 71s)
                              .Ready(71s, 80s)
                              .Succeeds(100s)
                              .Measure();
  EXPECT_EQ(goodput.lost, (Lost{{"GpuEcc", 1, 20s, 0s}, {"PortInUse", 1, 10s, 0s}, {"starting", 1, 10s, 0s}}));
}

TEST(GoodputTest, OfAJobThatFailedForGoodNothingCountsThatWasNotSaved) {
  const Goodput goodput =
      Story().Round(0s).Ready(0s, 10s).Checkpoint(30s).FailsForGood(50s, "TypeError", 52s).Measure();
  EXPECT_EQ(goodput.productive, 20s);
  EXPECT_EQ(goodput.lost, (Lost{{"TypeError", 1, 2s, 20s}, {"starting", 1, 10s, 0s}}));
}

TEST(GoodputTest, AJobThatRunsIsMeasuredUntilNow) {
  EXPECT_EQ(Story().Round(0s).Ready(0s, 10s).Measure(50s).productive, 40s);
  const Goodput starting = Story().Round(0s).Measure(5s);
  EXPECT_EQ(starting.productive, 0s);
  EXPECT_EQ(starting.lost, (Lost{{"starting", 1, 5s, 0s}}));
  EXPECT_EQ(Story().Measure(0s).share(), 1.0);
}

TEST(GoodputTest, AllTheTimeIsAccountedForOnce) {
  const Goodput goodput = Story()
                              .Round(1s)
                              .Ready(2s, 10s)
                              .Checkpoint(70s)
                              .Fails(90s, "GpuEcc", 95s)
                              .Ready(96s, 100s)
                              .Checkpoint(150s)
                              .Fails(170s, "Sigkill", 171s)
                              .Ready(172s, 175s)
                              .Measure(300s);
  Duration sum = goodput.productive;
  for (const LostTime& lost : goodput.lost) sum += lost.total();
  EXPECT_EQ(sum, goodput.wall);
}

TEST(GoodputTest, WhoWasRestartedAloneWasMissingForItsShare) {
  Story story = Story().Round(0s).Ready(0s, 10s).Succeeds(110s);
  RestartRecord& record = story.snapshot.records.emplace_back();
  record.scope = RestartScope::kInstance;
  record.judgement.fault = "Sigkill";
  record.duration = 20s;
  EXPECT_EQ(story.Measure().productive, 95s);
  EXPECT_EQ(story.Measure().lost.back(), (LostTime{"Sigkill", 1, 5s, 0s}));
}

TEST(GoodputTest, AClockThatWasSetBackGivesNoNegativeTimes) {
  const Goodput goodput = Story()
                              .Round(0s)
                              .Ready(0s, 10s)
                              .Checkpoint(-50s)
                              .Fails(-20s, "Sigkill", 51s)
                              .Ready(51s, 60s)
                              .Succeeds(-100s)
                              .Measure();
  EXPECT_EQ(goodput.wall, 0s);
  EXPECT_GE(goodput.productive, 0s);
  for (const LostTime& lost : goodput.lost) EXPECT_GE(lost.total(), 0s);
}

}  // namespace
}  // namespace aimaster
