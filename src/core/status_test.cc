#include "core/status.h"

#include <gtest/gtest.h>

namespace aimaster {
namespace {

TEST(StatusTest, NamesRoundTrip) {
  for (int i = 0; i < 9; ++i) EXPECT_EQ(ParseJobStatus(Name(JobStatus{i})), JobStatus{i});
  for (int i = 0; i < 7; ++i) EXPECT_EQ(ParseInstanceStatus(Name(InstanceStatus{i})), InstanceStatus{i});
  for (int i = 0; i < 7; ++i) EXPECT_EQ(ParseRole(Name(Role{i})), Role{i});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ParseFramework(Name(Framework{i})), Framework{i});
}

TEST(StatusTest, OnlyThreeStatusesAreTheEnd) {
  int ends = 0;
  for (int i = 0; i < 9; ++i) ends += IsEnd(JobStatus{i});
  EXPECT_EQ(ends, 3);
}

}  // namespace
}  // namespace aimaster
