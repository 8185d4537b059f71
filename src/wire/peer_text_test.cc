#include "wire/peer_text.h"

#include <gtest/gtest.h>

#include <string>

#include "core/quote.h"
#include "wire/limits.h"

namespace aimaster {
namespace {

TEST(PeerTextTest, ASentenceStaysAsItIs) {
  const std::string sentence =
      "no such round: 7; this job has rounds 0 to 3 — 任务 — see 'aimaster rounds dlc1'. " + std::string(200, 'x');
  EXPECT_EQ(PeerText(sentence), sentence);
  EXPECT_EQ(PeerText("one line\r\n"), "one line");
}

TEST(PeerTextTest, WhatCouldConfuseATerminalOrAParserIsSpelledOut) {
  EXPECT_EQ(PeerText("a\x1b[2Jb"), "a\\x1b[2Jb");
  for (const std::string& text : {std::string("\xff\xfe"), std::string("\x80\x80\x80\x80\x80"),
                                  std::string("cut \xe4\xbb"), std::string("\0", 1)}) {
    EXPECT_TRUE(IsPrintable(PeerText(text))) << text;
  }
}

TEST(PeerTextTest, ALongTextIsCutBetweenCharacters) {
  std::string text;
  while (text.size() < 10 * kPeerTextMax) text += "任";
  const std::string cut = PeerText(text);
  EXPECT_TRUE(IsPrintable(cut));
  EXPECT_TRUE(cut.ends_with("…"));
  EXPECT_LT(cut.size(), kPeerTextMax + 10);
}

}  // namespace
}  // namespace aimaster
