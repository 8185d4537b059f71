#include "detect/line_text.h"

#include <gtest/gtest.h>

namespace aimaster {
namespace {

std::string Clean(std::string_view line) {
  std::string buffer;
  return std::string(CleanLine(line, buffer));
}

TEST(CleanLineTest, LeavesAnOrdinaryLineWhereItIs) {
  const std::string_view line = "  File \"train.py\", line 3";
  std::string buffer;
  EXPECT_EQ(CleanLine(line, buffer).data(), line.data());
}

TEST(CleanLineTest, TakesColoursAndTitlesOut) {
  EXPECT_EQ(Clean("\x1b[1;31mValueError\x1b[0m: bad"), "ValueError: bad");
  EXPECT_EQ(Clean("\x1b]0;a title\aValueError"), "ValueError");
  EXPECT_EQ(Clean("\x1b]8;;http://x\x1b\\link"), "link");
  EXPECT_EQ(Clean("cut off \x1b[3"), "cut off");
}

TEST(CleanLineTest, MakesBrokenBytesShowable) {
  EXPECT_EQ(Clean("caf\xc3\xa9"), "café");
  EXPECT_EQ(Clean("caf\xe9!"), "caf\xEF\xBF\xBD!");
  EXPECT_EQ(Clean("\xc0\xaf"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "overlong";
  EXPECT_EQ(Clean("\xed\xa0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "a surrogate";
  EXPECT_EQ(Clean("a\x01\x7f"
                  "b"),
            "a  b");
  EXPECT_EQ(Clean("loss 1.5 \t "), "loss 1.5");
}

TEST(StripRankPrefixesTest, KnowsTheLabelsOfLaunchers) {
  EXPECT_EQ(StripRankPrefixes("[rank3]: ValueError: x"), "ValueError: x");
  EXPECT_EQ(StripRankPrefixes("[rank13]:[E218 04:54] late"), "[E218 04:54] late");
  EXPECT_EQ(StripRankPrefixes("[default3]:Traceback"), "Traceback");
  EXPECT_EQ(StripRankPrefixes("[1,3]<stderr>:boom"), "boom");
  EXPECT_EQ(StripRankPrefixes("worker-0: boom"), "boom");
  EXPECT_EQ(StripRankPrefixes("(TrainWorker pid=77) boom"), "boom");
  EXPECT_EQ(StripRankPrefixes(" 7: [rank80]: boom"), "boom");
}

TEST(StripRankPrefixesTest, KeepsIndentationAndWhatOnlyLooksLikeALabel) {
  EXPECT_EQ(StripRankPrefixes("[rank0]:   File \"a.py\""), "  File \"a.py\"");
  EXPECT_EQ(StripRankPrefixes("worker-0:15325:16199 [2] NCCL INFO"), "worker-0:15325:16199 [2] NCCL INFO");
  EXPECT_EQ(StripRankPrefixes("KeyError: 'x'"), "KeyError: 'x'");
  EXPECT_EQ(StripRankPrefixes("[ranking]: first"), "[ranking]: first");
  EXPECT_EQ(StripRankPrefixes("[12:30]: noon"), "[12:30]: noon");
}

TEST(OneLineTest, JoinsAndCutsBetweenCharacters) {
  EXPECT_EQ(OneLine("a\n\tb   c\r\n", 100), "a b c");
  EXPECT_EQ(OneLine("ééééé", 8), "éé…");
  EXPECT_EQ(OneLine("", 8), "");
  EXPECT_EQ(OneLine(std::string(100'000, 'x'), 4096).size(), 4096u);
}

}  // namespace
}  // namespace aimaster
