#include "cli/last_words.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace aimaster::cli {
namespace {

using Lines = std::vector<std::string>;

TEST(LastWordsTest, ATracebackIsShownFromItsHeaderOn) {
  EXPECT_EQ(LastWordsOf(
                "epoch 1\nTraceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n\nKeyError: 'x'"),
            (Lines{"Traceback (most recent call last):", "  File \"a.py\", line 3, in f", "    g()", "KeyError: 'x'"}));
}

TEST(LastWordsTest, OfSeveralTracebacksTheLastOne) {
  EXPECT_EQ(
      LastWordsOf("Traceback (most recent call last):\nOSError: a\nTraceback (most recent call last):\nKeyError: 'x'"),
      (Lines{"Traceback (most recent call last):", "KeyError: 'x'"}));
}

TEST(LastWordsTest, WithoutOneTheLastLinesAreShown) {
  EXPECT_EQ(LastWordsOf("a\nb\nc\n\nd"), (Lines{"b", "c", "d"}));
  EXPECT_EQ(LastWordsOf("d"), (Lines{"d"}));
  EXPECT_EQ(LastWordsOf(""), Lines{});
}

TEST(LastWordsTest, ALongTracebackLosesItsMiddle) {
  std::string text = "Traceback (most recent call last):\n";
  for (int i = 0; i < 40; ++i) text += "  frame " + std::to_string(i) + "\n";
  const Lines words = LastWordsOf(text + "KeyError: 'x'");
  ASSERT_EQ(words.size(), kLastWordsMax);
  EXPECT_EQ(words[0], "Traceback (most recent call last):");
  EXPECT_EQ(words[2], "  frame 1");
  EXPECT_EQ(words[3], "  …");
  EXPECT_EQ(words[4], "  frame 31");
  EXPECT_EQ(words.back(), "KeyError: 'x'");
}

TEST(LastWordsTest, ProgressBarsAndControlCharactersDoNotGetThrough) {
  EXPECT_EQ(LastWordsOf(" 1%\r 2%\rboom \x1b[2J"), (Lines{"boom  [2J"}));
}

TEST(LastWordsTest, TheyAreReadUpToTheTellingLine) {
  const std::string path = testing::TempDir() + "/last_words";
  std::ofstream(path) << std::string(100'000, '.') << "\nTraceback (most recent call last):\nKeyError: 'x'\nafter\n";
  EXPECT_EQ(ReadLastWords(path, 100'001 + 35), (Lines{"Traceback (most recent call last):", "KeyError: 'x'"}));
  EXPECT_EQ(ReadLastWords(path, 1'000'000), Lines{});
  std::remove(path.c_str());
  EXPECT_EQ(ReadLastWords(path, 0), Lines{});
}

}  // namespace
}  // namespace aimaster::cli
