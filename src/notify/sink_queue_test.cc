#include "notify/sink_queue.h"

#include <gtest/gtest.h>

namespace aimaster::notify {
namespace {

using namespace std::chrono_literals;

class SinkQueueTest : public testing::Test {
 protected:
  SinkQueueTest() { Make({}); }

  void Make(Sink sink) {
    sink.name = "ops";
    queue_.emplace(sink, [] { return 1.0; });  // no jitter
  }
  void Add(int64_t number, const char* type = "aimaster.instance.failed") {
    queue_->Add({number, {.at = {}, .type = type, .subject = "", .message = ""}});
  }
  // The numbers of what goes now, and nothing when nothing may.
  std::string Take() {
    const Batch* batch = queue_->Take(now_);
    if (batch == nullptr) return "nothing";
    return batch->first == batch->last ? std::to_string(batch->first)
                                       : std::to_string(batch->first) + "-" + std::to_string(batch->last);
  }
  std::string Deliver() {
    const std::string taken = Take();
    if (taken == "nothing") return taken;
    queue_->OnDelivered();
    queue_->OnMarked();
    return taken;
  }
  SinkQueue::Failure Fail(Outcome outcome = {}) { return queue_->OnFailed(now_, outcome); }
  // How long from now until Take may be asked again.
  Duration Until() const { return *queue_->NextDeadline(now_) - now_; }
  void Pass(Duration duration) { now_ = now_ + duration; }

  Monotonic now_{1h};
  std::optional<SinkQueue> queue_;
};

TEST_F(SinkQueueTest, EventsGoOneByOneInTheirOrder) {
  Add(3);
  Add(5);
  Add(9);
  EXPECT_EQ(Deliver(), "3");
  EXPECT_EQ(Deliver(), "5");
  EXPECT_EQ(Deliver(), "9");
  EXPECT_EQ(Take(), "nothing");
  EXPECT_TRUE(queue_->is_idle());
}

TEST_F(SinkQueueTest, TheNextOneWaitsUntilTheJournalKnowsOfTheOneBefore) {
  Add(1);
  Add(2);
  EXPECT_EQ(Take(), "1");
  EXPECT_EQ(Take(), "nothing") << "it is being sent";
  queue_->OnDelivered();
  EXPECT_EQ(Take(), "nothing") << "it is being marked";
  EXPECT_EQ(queue_->waiting(), 2u);
  queue_->OnMarked();
  EXPECT_EQ(Take(), "2");
}

TEST_F(SinkQueueTest, WhatFailedIsTriedAgainLaterAndLaterAndStaysFirst) {
  Add(1);
  EXPECT_EQ(Take(), "1");
  Add(2);
  for (const Duration delay : {1s, 2s, 4s, 8s}) {
    EXPECT_EQ(Fail(), SinkQueue::Failure::kTriedAgain);
    EXPECT_EQ(Until(), delay);
    Pass(delay - 1ms);
    EXPECT_EQ(Take(), "nothing");
    Pass(1ms);
    EXPECT_EQ(Take(), "1");
  }
  for (int i = 0; i < 6; ++i) {
    Fail();
    Pass(Until());
    EXPECT_EQ(Take(), "1");
  }
  Fail();
  EXPECT_EQ(Until(), Duration(kBackoffMost));
}

TEST_F(SinkQueueTest, JitterTakesUpToHalfOfTheDelay) {
  queue_.emplace(Sink{}, [] { return 0.0; });
  Add(1);
  Take();
  Fail();
  EXPECT_EQ(Until(), Duration(500ms));
}

TEST_F(SinkQueueTest, TheOtherSideMayAskForMoreTime) {
  Add(1);
  Take();
  EXPECT_EQ(Fail({.retry_after = milliseconds(42'000)}), SinkQueue::Failure::kTriedAgain);
  EXPECT_EQ(Until(), Duration(42s));
}

TEST_F(SinkQueueTest, AMessageIsGivenUpWhenItsTimeIsOver) {
  Make({.retry_for = milliseconds(10'000)});
  Add(1);
  Add(2);
  EXPECT_EQ(Take(), "1");
  EXPECT_EQ(Fail(), SinkQueue::Failure::kTriedAgain);  // 1 s
  Pass(1s);
  EXPECT_EQ(Take(), "1");
  EXPECT_EQ(Fail(), SinkQueue::Failure::kTriedAgain);  // 2 s
  Pass(2s);
  EXPECT_EQ(Take(), "1");
  EXPECT_EQ(Fail(), SinkQueue::Failure::kTriedAgain);  // 4 s
  Pass(4s);
  EXPECT_EQ(Take(), "1");
  EXPECT_EQ(Fail(), SinkQueue::Failure::kGivenUp);  // 8 s would be too late
  EXPECT_EQ(queue_->done().last, 1);
  EXPECT_EQ(queue_->tries(), 4u);
  queue_->OnMarked();
  EXPECT_EQ(Take(), "2") << "the next one has its own time";
  EXPECT_EQ(queue_->tries(), 1u);
}

TEST_F(SinkQueueTest, WhatIsRefusedIsGivenUpAtOnceAndHoldsUpNothing) {
  Add(1);
  Add(2);
  Take();
  EXPECT_EQ(Fail({.refused = true}), SinkQueue::Failure::kGivenUp);
  queue_->OnMarked();
  EXPECT_EQ(Deliver(), "2");
}

TEST_F(SinkQueueTest, AStormBecomesOneMessageAfterAnother) {
  Make({.per_minute = 3});
  Add(1);
  EXPECT_EQ(Deliver(), "1") << "the first one goes at once";
  for (int64_t number = 2; number <= 100; ++number) Add(number);
  Add(101, "aimaster.round.restarting");
  for (int64_t number = 102; number <= 121; ++number) Add(number, "aimaster.node.joined");
  ASSERT_EQ(Take(), "2-121");
  const Batch& digest = queue_->done();
  EXPECT_EQ(digest.event.number, 101) << "the one that tells most, with a decision behind it";
  EXPECT_EQ(digest.count, 120u);
  EXPECT_EQ(digest.kinds, (std::vector<std::pair<std::string, size_t>>{{"Instance Failed", 99}, {"Node Joined", 20}}));
  queue_->OnDelivered();
  queue_->OnMarked();
  EXPECT_TRUE(queue_->is_idle());
}

TEST_F(SinkQueueTest, TheWorstEventOfAStormIsToldInWhole) {
  Make({.per_minute = 1});
  Add(1);
  Add(2, "aimaster.round.restarting");
  Add(3, "aimaster.job.failed");
  Add(4);
  EXPECT_EQ(Take(), "1-4");
  EXPECT_EQ(queue_->done().event.number, 3);
}

TEST_F(SinkQueueTest, TheRateHoldsOverTime) {
  Make({.per_minute = 2});
  Add(1);
  EXPECT_EQ(Deliver(), "1");
  Add(2);
  EXPECT_EQ(Deliver(), "2");
  Add(3);
  EXPECT_EQ(Take(), "nothing");
  EXPECT_GT(Until(), Duration(29s));
  EXPECT_LT(Until(), Duration(31s));
  Pass(Until());
  EXPECT_EQ(Deliver(), "3");
  Pass(10min);
  for (int64_t number = 4; number <= 5; ++number) Add(number);
  EXPECT_EQ(Deliver(), "4") << "the right to speak is not saved up beyond a minute's";
  EXPECT_EQ(Deliver(), "5");
  Add(6);
  EXPECT_EQ(Take(), "nothing");
}

TEST_F(SinkQueueTest, ADigestStaysTheSameOverItsTries) {
  Make({.per_minute = 1});
  for (int64_t number = 1; number <= 5; ++number) Add(number);
  EXPECT_EQ(Take(), "1-5");
  Fail();
  Add(6);
  Pass(Until());
  EXPECT_EQ(Take(), "1-5");
}

TEST_F(SinkQueueTest, WhatWaitsForDaysForASinkThatIsAwayIsOneDigest) {
  const auto many = static_cast<int64_t>(SinkQueue::kKeptWhole) + 5;
  Add(1, "aimaster.round.ready");
  EXPECT_EQ(Take(), "1");
  for (int64_t number = 2; number <= many; ++number) {
    Add(number, number == 77 ? "aimaster.job.failed" : "aimaster.instance.failed");
    EXPECT_EQ(queue_->waiting(), static_cast<size_t>(number));
  }
  queue_->OnDelivered();
  queue_->OnMarked();
  Pass(24h);
  const Batch* digest = queue_->Take(now_);
  ASSERT_NE(digest, nullptr);
  EXPECT_EQ(std::pair(digest->first, digest->last), std::pair(int64_t{2}, many));
  EXPECT_EQ(digest->count, static_cast<size_t>(many - 1));
  EXPECT_EQ(digest->event.number, 77) << "the worst is told in whole";
  ASSERT_EQ(digest->kinds.size(), 1u);
  EXPECT_EQ(digest->kinds[0].second, static_cast<size_t>(many - 2));
  queue_->OnDelivered();
  queue_->OnMarked();
  EXPECT_TRUE(queue_->is_idle());
  Add(many + 1);
  EXPECT_EQ(Take(), std::to_string(many + 1)) << "and then all is as before";
}

}  // namespace
}  // namespace aimaster::notify
