// What is told of finished collectives: the same sample by all members, and how long was waited in the rest.
#include "agent/finished_reader.h"

#include <gtest/gtest.h>

#include "c4d/record_harness.h"
#include "c4d/sample.h"

namespace aimaster::agent {
namespace {

using namespace std::chrono_literals;
using c4d::TestProcess;

constexpr AttemptKey kKey{3, 1};

class FinishedReaderTest : public testing::Test {
 protected:
  void Complete(int times) { process_.Complete(world_, c4d::kTestAllReduce, times); }
  // So long after the last look.
  v1::Communication Look(Duration since = 1s) {
    later_ += since;
    v1::Communication told;
    reader_.Read(kKey, process_.Read(later_), told);
    reader_.ForgetOthers();
    return told;
  }

  TestProcess process_;
  const uint32_t world_ = process_.JoinWorld(2, 4);
  FinishedReader reader_;
  Duration later_{};
};

TEST_F(FinishedReaderTest, FewAreToldAllAndOnce) {
  Complete(3);
  EXPECT_EQ(Look().finished_size(), 0) << "how old those are is not known";
  Complete(3);
  const v1::Communication told = Look();
  ASSERT_EQ(told.finished_size(), 1);
  EXPECT_EQ(told.finished(0).id().instance(), 3u);
  EXPECT_EQ(told.finished(0).rank(), 2u);
  ASSERT_EQ(told.finished(0).groups_size(), 1);
  const v1::FinishedGroup& group = told.finished(0).groups(0);
  EXPECT_EQ(group.size(), 4u);
  EXPECT_EQ(group.one_in(), 1u);
  EXPECT_EQ(std::vector(group.sequence().begin(), group.sequence().end()), (std::vector<uint64_t>{4, 5, 6}));
  EXPECT_EQ(group.function(0), static_cast<uint32_t>(c4d::Function::kAllReduce));
  EXPECT_EQ(Look().finished_size(), 0);
}

TEST_F(FinishedReaderTest, OfManyASampleIsToldThatContainsThatOfWhoTellsLess) {
  Look();
  Complete(200);
  const v1::FinishedGroup many = Look().finished(0).groups(0);
  EXPECT_EQ(many.one_in(), 8u);
  EXPECT_LT(many.sequence_size(), 60);
  for (const uint64_t sequence : many.sequence()) {
    EXPECT_TRUE(c4d::IsInSample(sequence, 8) && c4d::IsInSample(sequence, 4)) << sequence;
  }
  int taken = 0;
  for (uint64_t sequence = 1; sequence <= 64'000; ++sequence) taken += c4d::IsInSample(sequence, 64) ? 1 : 0;
  EXPECT_NEAR(taken, 1000, 150);
}

TEST_F(FinishedReaderTest, FromRankToRankOnlyWhatWasWaitedCounts) {
  Look();
  process_.Complete(world_, c4d::kTestReceive, 5, 1);
  const v1::Communication told = Look();
  ASSERT_EQ(told.finished_size(), 1);
  EXPECT_EQ(told.finished(0).groups_size(), 0);
  EXPECT_GT(told.finished(0).waited_ns(), 0);
  EXPECT_LT(told.finished(0).waited_ns(), Duration(1s).count());
}

TEST_F(FinishedReaderTest, WhatIsNotKnownCountsAsWaited) {
  Look();
  Complete(kRecordRingLength + 100);
  EXPECT_GE(Look().finished(0).waited_ns(), Duration(1s).count());
  Complete(kRecordRingLength);
  EXPECT_EQ(Look().finished(0).waited_ns(), 0);
}

TEST_F(FinishedReaderTest, WhatWasIssuedAndNotWaitedInIsNotCompared) {
  Look();
  RecorderEnd(process_.recorder(), process_.Begin(world_, c4d::kTestAllReduce, 0));
  const v1::Communication told = Look();
  ASSERT_EQ(told.finished_size(), 1);
  EXPECT_EQ(told.finished(0).groups_size(), 0);
}

}  // namespace
}  // namespace aimaster::agent
