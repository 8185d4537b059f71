#include "core/quote.h"

#include <gtest/gtest.h>

namespace aimaster {
namespace {

TEST(QuoteTest, PlainTextStaysAsItIs) {
  EXPECT_EQ(Quoted("abc"), "'abc'");
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Printable("Zürich 你好 😀"), "Zürich 你好 😀");
}

TEST(QuoteTest, WhatATerminalOrJsonCouldChokeOnIsWrittenOut) {
  EXPECT_EQ(Printable("a\nb\x1b[31m"), "a\\x0ab\\x1b[31m");
  EXPECT_EQ(Printable("\xff"), "\\xff");
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(Printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");  // overlong
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(Printable("\xc2\x85"), "\\xc2\\x85");  // a line break of its own kind
  EXPECT_EQ(Printable("\xe4\xbd"), "\\xe4\\xbd");  // cut off
}

TEST(QuoteTest, LongTextIsCutBetweenCharacters) {
  const std::string exact(kQuotedMaxBytes, 'a');
  EXPECT_EQ(Printable(exact), exact);
  EXPECT_EQ(Printable(exact + "b"), exact + "…");
  EXPECT_EQ(Printable(exact.substr(1) + "你"), exact.substr(1) + "…");
}

TEST(QuoteTest, PrintableTellsWhatQuotingWouldChange) {
  EXPECT_TRUE(IsPrintable("你好"));
  EXPECT_TRUE(IsPrintable(""));
  EXPECT_FALSE(IsPrintable("a\tb"));
  EXPECT_FALSE(IsPrintable("\xff"));
}

}  // namespace
}  // namespace aimaster
