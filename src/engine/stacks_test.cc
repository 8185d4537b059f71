// Call stacks, as the engine sees them: it orders them, waits a while, and tells what came.
#include <gtest/gtest.h>

#include "engine/engine_harness.h"

namespace aimaster {
namespace {

std::vector<CaptureStacks> OrdersIn(const StepResult& result) { return EngineHarness::Of<CaptureStacks>(result); }

StacksCaptured Answer(uint32_t capture) {
  return {.capture = capture,
          .ranks_asked = 2,
          .ranks_answered = 2,
          .path = "stacks/" + std::to_string(capture) + ".json",
          .summary = "rank 1 is alone at load (train.py:7)"};
}

TEST(StacksTest, APersonAsksAndIsTold) {
  EngineHarness job;
  job.Run();
  const StepResult asked = job.Feed(StacksRequested{"aimaster stacks"});
  EXPECT_EQ(OrdersIn(asked), (std::vector{CaptureStacks{1, "asked for by aimaster stacks"}}));
  const StepResult answered = job.Feed(Answer(1));
  ASSERT_EQ(answered.events.size(), 1u);
  EXPECT_EQ(answered.events[0].type, "aimaster.hang.stacks");
  EXPECT_EQ(answered.events[0].message,
            "stacks of 2 of 2 ranks (asked for by aimaster stacks): rank 1 is alone at load (train.py:7)");
  EXPECT_EQ(job.job().stacks.path, "stacks/1.json");
  EXPECT_EQ(job.job().phase, Phase::kRunning);
  EXPECT_FALSE(job.engine.NextDeadline());
}

TEST(StacksTest, WhoAsksWhileTheyAreBeingTakenGetsThose) {
  EngineHarness job;
  job.Run();
  job.Feed(StacksRequested{"one"});
  EXPECT_EQ(job.Feed(StacksRequested{"another"}), StepResult{});
  job.Feed(Answer(1));
  EXPECT_EQ(OrdersIn(job.Feed(StacksRequested{"another"})), (std::vector{CaptureStacks{2, "asked for by another"}}));
}

TEST(StacksTest, TheyAreWaitedForNoLongerThanTheJobSays) {
  EngineHarness job;
  job.spec.timing.stack_timeout = std::chrono::seconds{7};
  job.Run();
  const Monotonic asked = job.now.monotonic;
  job.Feed(StacksRequested{"aimaster stacks"});
  ASSERT_EQ(job.engine.NextDeadline(), asked + Duration(std::chrono::seconds{7}));
  const StepResult given_up = job.NextTick();
  ASSERT_EQ(given_up.events.size(), 1u);
  EXPECT_NE(given_up.events[0].message.find("within --stack-timeout"), std::string::npos);
  EXPECT_FALSE(job.engine.NextDeadline());
  EXPECT_EQ(job.Feed(Answer(1)), StepResult{}) << "too late";
}

TEST(StacksTest, AMasterThatTookOverOrdersThemAgain) {
  EngineHarness job(2, 2);
  job.Run();
  job.Feed(StacksRequested{"aimaster stacks"});
  const CaptureStacks order{1, "asked for by aimaster stacks"};
  EXPECT_EQ(job.engine.Outstanding(), std::vector<Action>{order});
  EXPECT_EQ(job.engine.Outstanding(NodeIndex{1}), std::vector<Action>{order}) << "as its agent's new connection";
  job.Feed(Answer(1));
  EXPECT_TRUE(job.engine.Outstanding().empty());
}

TEST(StacksTest, WithoutRanksThereAreNone) {
  EngineHarness job;
  EXPECT_EQ(job.Feed(StacksRequested{"aimaster stacks"}), StepResult{});
  job.Submit();
  EXPECT_EQ(job.Feed(StacksRequested{"aimaster stacks"}), StepResult{});
  job.Run();
  job.Feed(StopRequested{true, "test"});
  EXPECT_EQ(job.Feed(StacksRequested{"aimaster stacks"}), StepResult{});
}

TEST(StacksTest, TheEndOfTheJobEndsTheWaiting) {
  EngineHarness job;
  job.Run();
  job.Feed(StacksRequested{"aimaster stacks"});
  job.Feed(StopRequested{true, "test"});
  job.EndedAll();
  ASSERT_EQ(job.job().phase, Phase::kEnded);
  EXPECT_FALSE(job.engine.NextDeadline());
  EXPECT_EQ(job.Feed(Answer(1)), StepResult{});
}

TEST(StacksTest, AnAnswerToAnotherCaptureChangesNothing) {
  EngineHarness job;
  job.Run();
  job.Feed(StacksRequested{"aimaster stacks"});
  EXPECT_EQ(job.Feed(Answer(2)), StepResult{});
  EXPECT_TRUE(job.job().stacks.is_under_way);
}

}  // namespace
}  // namespace aimaster
