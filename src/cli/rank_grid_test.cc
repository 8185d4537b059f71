#include "cli/rank_grid.h"

#include <gtest/gtest.h>

namespace aimaster::cli {
namespace {

std::vector<Rank> Ranks(uint32_t first, uint32_t last) {
  std::vector<Rank> ranks;
  for (uint32_t rank = first; rank <= last; ++rank) ranks.push_back(Rank{rank});
  return ranks;
}

TEST(RankGrid, ASignForEachAndTheStrongestCounts) {
  RankGrid grid(20);
  grid.Mark(Ranks(0, 9), RankSign::kWaits);
  grid.Mark(Ranks(9, 9), RankSign::kHangsInside);
  grid.Mark(Ranks(9, 9), RankSign::kWaits);
  EXPECT_EQ(grid.Draw({}),
            "Ranks: H hangs in communication, w waits for them, . nothing found\n"
            "       0  wwwwwwww wH...... ....\n");
}

TEST(RankGrid, RowsThatAreAllTheSameAreOneLine) {
  RankGrid grid(1'000);
  grid.Mark(Ranks(130, 130), RankSign::kHangsOutside);
  grid.Mark(Ranks(320, 999), RankSign::kWaits);
  EXPECT_EQ(grid.Draw({}),
            "Ranks: h hangs outside communication, w waits for them, . nothing found\n"
            "       0  to 127 all .\n"
            "     128  ..h..... ........ ........ ........ ........ ........ ........ ........\n"
            "     192  to 319 all .\n"
            "     320  to 999 all w\n");
}

TEST(RankGrid, ANarrowTerminalHasShorterRows) {
  RankGrid grid(40);
  grid.Mark(Ranks(39, 39), RankSign::kSlowInside);
  EXPECT_EQ(grid.Draw({.width = 60}),
            "Ranks: S slow in communication, . nothing found\n"
            "       0  ........ ........ ........ ........\n"
            "      32  .......S\n");
}

TEST(RankGrid, WhatASentenceTellsIsNotDrawn) {
  RankGrid few(4);
  few.Mark(Ranks(1, 1), RankSign::kHangsInside);
  EXPECT_EQ(few.Draw({}), "");
  EXPECT_EQ(RankGrid(64).Draw({}), "");
}

// Of an MPI program it is not known how many there are.
TEST(RankGrid, GrowsWithTheRanksThatAreNamed) {
  RankGrid grid(1);
  grid.Mark(Ranks(9, 9), RankSign::kHangsInside);
  EXPECT_NE(grid.Draw({}).find("       0  ........ .H\n"), std::string::npos);
  grid.Mark(Ranks(4'000'000'000, 4'000'000'000), RankSign::kWaits);  // what is no rank takes no memory
  EXPECT_EQ(grid.Draw({}).find('w'), std::string::npos);
}

TEST(RankGrid, ManyDifferentRowsEndSomewhere) {
  RankGrid grid(100'000);
  for (uint32_t rank = 0; rank < 100'000; rank += 64) grid.Mark(Ranks(rank, rank), RankSign::kHangsOutside);
  const std::string text = grid.Draw({});
  EXPECT_LT(text.size(), 10'000u);
  EXPECT_TRUE(text.ends_with("and more; --json names all\n"));
}

TEST(RankGrid, EveryKindOfVerdictHasItsSign) {
  EXPECT_EQ(SignOf("RankCommHang", false), RankSign::kHangsInside);
  EXPECT_EQ(SignOf("RankCommHang", true), RankSign::kOfGroup);
  EXPECT_EQ(SignOf("RankNonCommHang", false), RankSign::kHangsOutside);
  EXPECT_EQ(SignOf("RankCommSlow", true), RankSign::kSlowInside);
  EXPECT_EQ(SignOf("RankNonCommSlow", false), RankSign::kSlowOutside);
  EXPECT_EQ(SignOf("CollectiveMismatch", false), RankSign::kWrongCall);
  EXPECT_EQ(SignOf("CyclicWait", false), RankSign::kWrongCall);
  EXPECT_EQ(SignOf("NoProbeData", false), RankSign::kNotSeen);
  EXPECT_EQ(SignOf("", false), RankSign::kNothing);
}

}  // namespace
}  // namespace aimaster::cli
