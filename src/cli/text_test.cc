#include "cli/text.h"

#include <gtest/gtest.h>

#include <array>

#include "cli/table.h"
#include "core/nearest_name.h"

namespace aimaster::cli {
namespace {

TEST(Text, WhatARankPrintedCanNotRepaintTheTerminal) {
  EXPECT_EQ(OneLine("a\x1b[2Jb\r\nc"), "a [2Jb  c");
  EXPECT_EQ(OneLine("\xff\xfe ok"), "?? ok");
  EXPECT_EQ(OneLine("right \u202eto left"), "right  to left");
  EXPECT_EQ(OneLine("plain, größer, 显存不足"), "plain, größer, 显存不足");
}

TEST(Text, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("größe"), 5u);
  EXPECT_EQ(DisplayWidth("显存"), 4u);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1u);
}

TEST(Text, CuttingNeverExceedsTheWidthAndNeverSplitsACharacter) {
  EXPECT_EQ(CutToWidth("abcdef", 6), "abcdef");
  EXPECT_EQ(CutToWidth("abcdef", 4), "abc…");
  EXPECT_EQ(CutToWidth("显存不足", 5), "显存…");
  EXPECT_EQ(CutToWidth("显存不足", 4), "显…");
  EXPECT_EQ(CutToWidth("abc", 0), "");
}

TEST(Text, ParagraphsAreWrappedAndTablesKept) {
  EXPECT_EQ(Wrap("one two three", 8), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(Wrap("a\n\n  kept   as it is", 5), (std::vector<std::string>{"a", "", "  kept   as it is"}));
}

TEST(Table, ColumnsAreAsWideAsTheirContent) {
  const std::vector<Column> columns = {
      {.title = "NAME"}, {.title = "N", .align = Column::Align::kRight}, {.title = "END"}};
  EXPECT_EQ(FormatTable(columns, {{"a", "1", "x"}, {"longer", "22", ""}}, Terminal{}),
            "NAME     N  END\n"
            "a        1  x\n"
            "longer  22\n");
}

TEST(Table, OnATerminalTheColumnsThatMayBeCutGiveWay) {
  const std::vector<Column> columns = {{.title = "JOB"}, {.title = "MESSAGE", .may_be_cut = true}};
  const std::string table = FormatTable(columns, {{"dlc1", "a message that is much too long for this terminal"}},
                                        Terminal{.is_terminal = true, .width = 30});
  EXPECT_EQ(table,
            "JOB   MESSAGE\n"
            "dlc1  a message that is much …\n");
}

TEST(Table, WhereCuttingIsNotEnoughAColumnGoesBelowItsRow) {
  const std::vector<Column> columns = {
      {.title = "JOB"}, {.title = "MESSAGE", .may_be_cut = true, .may_go_below = true}, {.title = "LAST"}};
  const std::vector<std::vector<Cell>> rows = {{"dlc0123456789", "boom goes the job", "yes"}, {"dlc1", "", "no"}};
  EXPECT_EQ(FormatTable(columns, rows, Terminal{.is_terminal = true, .width = 24}),
            "JOB            LAST\n"
            "dlc0123456789  yes\n"
            "    boom goes the job\n"
            "dlc1           no\n");
}

TEST(Table, ThenColumnsAreLeftOutByTheirNumber) {
  const std::vector<Column> columns = {
      {.title = "KEPT"}, {.title = "SECOND", .left_out = 1}, {.title = "FIRST", .left_out = 2}};
  const std::vector<std::vector<Cell>> rows = {{"a", "b", "c"}};
  EXPECT_EQ(FormatTable(columns, rows, Terminal{.is_terminal = true, .width = 12}), "KEPT  SECOND\na     b\n");
  EXPECT_EQ(FormatTable(columns, rows, Terminal{.is_terminal = true, .width = 11}), "KEPT\na\n");
  EXPECT_EQ(FormatTable(columns, rows, Terminal{}), "KEPT  SECOND  FIRST\na     b       c\n") << "a pipe gets all";
}

TEST(Table, ColoursTakeNoRoom) {
  const Terminal terminal{.is_terminal = true, .colours = true, .width = 80};
  const std::string table = FormatTable({{.title = "A"}, {.title = "B"}}, {{Cell("x", Colour::kRed), "y"}}, terminal);
  EXPECT_EQ(table, "\x1b[1mA\x1b[0m  \x1b[1mB\x1b[0m\n\x1b[31mx\x1b[0m  y\n");
}

TEST(NearestName, FindsWhatWasMeantAndNothingFarther) {
  constexpr std::array<std::string_view, 3> kNames = {"run", "rounds", "records"};
  EXPECT_EQ(NearestName("rnu", kNames), "run");
  EXPECT_EQ(NearestName("recrods", kNames), "records");
  EXPECT_EQ(NearestName("xyz", kNames), std::nullopt);
  EXPECT_EQ(NearestName(std::string(1 << 20, 'r'), kNames), std::nullopt);
}

TEST(NearestName, CountsSwappedNeighboursOnce) {
  EXPECT_EQ(EditDistance("ab", "ba"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
}

}  // namespace
}  // namespace aimaster::cli
