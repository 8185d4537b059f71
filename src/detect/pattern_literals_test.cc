#include "detect/pattern_literals.h"

#include <gtest/gtest.h>

#include <string>

namespace aimaster {
namespace {

// The texts, one after the other: "CUDA out|HIP out", with an "i" in front where case is ignored.
std::string Words(std::string_view pattern) {
  const std::optional<Literals> literals = RequiredLiterals(pattern);
  if (!literals) return "none";
  std::string words = literals->ignore_case ? "i " : "";
  for (size_t i = 0; i < literals->texts.size(); ++i) words += (i > 0 ? "|" : "") + literals->texts[i];
  return words;
}

TEST(RequiredLiteralsTest, APlainTextIsItsRarestPart) {
  EXPECT_EQ(Words("ECC"), "ECC");
  EXPECT_EQ(Words("\\bECC error\\b").size(), kLiteralMaxBytes);
  EXPECT_EQ(Words("(?i)Xid"), "i xid");
}

TEST(RequiredLiteralsTest, EveryAlternativeNeedsOne) {
  EXPECT_EQ(Words("EIO|ESTALE"), "EIO|ESTALE");
  EXPECT_EQ(Words("\\b(EIO|E\\w+)\\b"), "none") << "an E alone stands everywhere";
  EXPECT_EQ(Words("EIO|\\d+"), "none");
  EXPECT_EQ(Words("xz(a|b|)y"), "xzay|xzby|xzy");
}

TEST(RequiredLiteralsTest, WhatMayBeLeftOutIsNotRelied) {
  EXPECT_EQ(Words("colou?r"), "color|colour");
  EXPECT_EQ(Words("(zz)*qqq"), "qqq");
  EXPECT_EQ(Words("(zz){0,3}qqq"), "qqq");
  EXPECT_EQ(Words("(zz)?qqq"), "qqq|zzqqq");
  EXPECT_EQ(Words("abb+c"), "abb");
  EXPECT_EQ(Words("z{3}q"), "zzzq");
  EXPECT_EQ(Words("z{3,}q"), "zzz");
  EXPECT_EQ(Words("z{3,4}?q"), "zzz");
}

TEST(RequiredLiteralsTest, ClassesAndEscapes) {
  EXPECT_EQ(Words("[Nn]aN"), "NaN|naN");
  EXPECT_EQ(Words("[a-z]QXX"), "QXX");
  EXPECT_EQ(Words("[^a]QXX"), "QXX");
  EXPECT_EQ(Words("[]x]QX"), "]QX|xQX");
  EXPECT_EQ(Words("\\[Q\\]"), "[Q]");
  EXPECT_EQ(Words("Q\\d\\.ZX"), ".ZX");
  EXPECT_EQ(Words("Q\\x41ZZZ"), "ZZZ");
  EXPECT_EQ(Words("[\\]Q]ZX"), "QZX|]ZX");
  EXPECT_EQ(Words("a{b"), "a{b") << "a brace that is no bound";
  EXPECT_EQ(Words("(?:QXX|ZXX)"), "QXX|ZXX");
  EXPECT_EQ(Words("(?i:QXX)"), "i qxx");
  EXPECT_EQ(Words("^$"), "none");
  EXPECT_EQ(Words("\xc3\xa9QXX"), "QXX");
}

TEST(RequiredLiteralsTest, SaysWhereItDoesNotUnderstand) {
  for (const char* pattern :
       {"\\Qa.b\\E", "(?x)a b c", "(?=abc)", "(?#abc)", "(abc", "abc)", "*abc", "a{,3}bc", "\\p{L}abc", "abc\\", "[abc",
        "[[:alpha:]]abc", "\\1abc", "(*UTF8)abc", "abc++", "\\N{U+41}abc"}) {
    EXPECT_EQ(Words(pattern), "none") << pattern;
  }
  EXPECT_EQ(Words(std::string(5000, '(')), "none");
}

TEST(RequiredLiteralsTest, FindsThePatternThatHasNone) {
  const std::vector<Pattern> patterns = {{PatternKind::kLine, 0, "ECC"},
                                         {PatternKind::kFrame, 0, "\\d"},
                                         {PatternKind::kLine, 0, "\\w+"},
                                         {PatternKind::kNeverRoot, 0, "^-+$"}};
  EXPECT_EQ(FindWithoutWords(patterns), &patterns[2]);
  EXPECT_EQ(FindWithoutWords(std::span(patterns).first(2)), nullptr) << "frames and never_root are looked at anyway";
}

}  // namespace
}  // namespace aimaster
