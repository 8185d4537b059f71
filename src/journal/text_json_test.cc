#include "journal/text_json.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace aimaster {
namespace {

using nlohmann::json;

TEST(TextJson, TextIsText) {
  EXPECT_EQ(TextToJson("plain"), json("plain"));
  EXPECT_EQ(TextToJson("grün 火 🚀"), json("grün 火 🚀"));
}

TEST(TextJson, OtherBytesAreDigits) { EXPECT_EQ(TextToJson("a\xff"), json({{"hex", "61ff"}})); }

TEST(TextJson, TheEdgesOfUtf8) {
  for (const char* good : {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(good)) << json(TextToJson(good)).dump();
  }
  for (const char* bad : {"\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe1\x80", "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_FALSE(IsUtf8(bad)) << json(TextToJson(bad)).dump();
  }
}

TEST(TextJson, WhatIsNoTextIsSaid) {
  std::string text;
  EXPECT_EQ(TextFromJson(7, text), "a string is expected");
  EXPECT_EQ(TextFromJson(json::object(), text), "a string is expected");
  EXPECT_EQ(TextFromJson({{"hex", "6"}}, text), "half a byte");
  EXPECT_EQ(TextFromJson({{"hex", "6g"}}, text), "bytes are written with the digits 0-9 and a-f");
}

// The library that prints JSON must agree with us on what UTF-8 is, else a text would stop the report that holds it.
RC_GTEST_PROP(TextJson, AnyBytesComeBackAndCanBePrinted, (const std::string& bytes)) {
  const std::string printed = TextToJson(bytes).dump();
  std::string back;
  RC_ASSERT(TextFromJson(json::parse(printed), back).empty());
  RC_ASSERT(back == bytes);
}

}  // namespace
}  // namespace aimaster
