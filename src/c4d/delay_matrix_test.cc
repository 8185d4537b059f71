// Which side of a connection is slow.
#include "c4d/delay_matrix.h"

#include <gtest/gtest.h>

#include <functional>

#include "c4d/c4d_test_support.h"

namespace aimaster::c4d {
namespace {

// Eight ranks that all talk to each other.
std::string SlowOf(const std::function<double(uint32_t from, uint32_t to)>& factor) {
  DelayMatrix matrix;
  for (uint32_t from = 0; from < 8; ++from) {
    for (uint32_t to = 0; to < 8; ++to) {
      for (const uint64_t bytes : {1ull << 10, 1ull << 20}) {
        const auto usual = static_cast<double>(bytes + 1000 * ((from + to) % 3));
        for (int i = 0; i < 5 && from != to; ++i) {
          matrix.Add(Rank{from}, Rank{to}, bytes, Duration(static_cast<int64_t>(usual * factor(from, to))));
        }
      }
    }
  }
  return Accused(matrix.CloseWindow());
}

TEST(DelayMatrixTest, WhereAllIsAlikeNothingIsSlow) {
  EXPECT_EQ(SlowOf([](uint32_t, uint32_t) { return 1.0; }), "") << "nor are large messages";
}
TEST(DelayMatrixTest, OneHotCellIsAConnection) {
  EXPECT_EQ(SlowOf([](uint32_t from, uint32_t to) { return from == 2 && to == 5 ? 4.0 : 1.0; }),
            "RankCommSlow of group 2,5");
}
TEST(DelayMatrixTest, AHotRowIsTheSender) {
  EXPECT_EQ(SlowOf([](uint32_t from, uint32_t) { return from == 2 ? 4.0 : 1.0; }), "RankCommSlow 2");
}
TEST(DelayMatrixTest, AHotColumnIsTheReceiver) {
  EXPECT_EQ(SlowOf([](uint32_t, uint32_t to) { return to == 5 ? 4.0 : 1.0; }), "RankCommSlow 5");
}
TEST(DelayMatrixTest, WhatDoesNotFitIsCounted) {
  DelayMatrix matrix({.cells_max = 10});
  for (uint32_t to = 0; to < 100; ++to) matrix.Add(Rank{0}, Rank{to}, 8, 1ms);
  EXPECT_EQ(matrix.dropped(), 90u);
}

}  // namespace
}  // namespace aimaster::c4d
