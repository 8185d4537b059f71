#include "core/c4d_environment.h"

#include <gtest/gtest.h>

namespace aimaster {
namespace {

using namespace std::chrono_literals;

TEST(C4dEnvironmentTest, BareNumbersAreSecondsUntilTheyLookLikeMicroseconds) {
  EXPECT_EQ(*ParseC4dTime("10"), 10s);
  EXPECT_EQ(*ParseC4dTime("999999"), 999999s);
  EXPECT_EQ(*ParseC4dTime("1000000"), 1s);
  EXPECT_EQ(*ParseC4dTime("10000000"), 10s);
}

TEST(C4dEnvironmentTest, UnitsAreTakenAtTheirWord) {
  EXPECT_EQ(*ParseC4dTime("500ms"), 500ms);
  EXPECT_EQ(*ParseC4dTime("2000000us"), 2s);
  EXPECT_EQ(*ParseC4dTime("3000000s"), 3000000s);
  EXPECT_EQ(*ParseC4dTime("10S"), 10s);
  EXPECT_EQ(*ParseC4dTime("3min"), 3min);
  EXPECT_EQ(*ParseC4dTime("1h"), 1h);
}

TEST(C4dEnvironmentTest, NothingElseIsATime) {
  for (const char* text : {"", "0", "0s", "-1", "+5", "s", "10 s", "10d", "1.5s", "nan", "99999999999999999999",
                           "9223372036854775807h", "1000000001s"}) {
    EXPECT_FALSE(ParseC4dTime(text)) << text;
  }
}

TEST(C4dEnvironmentTest, EveryDefaultIsAnAcceptedValue) {
  for (const C4dSetting& setting : C4dSettings()) {
    EXPECT_TRUE(setting.accepts(setting.default_text)) << setting.name;
    EXPECT_FALSE(setting.accepts("")) << setting.name;
    EXPECT_FALSE(setting.accepts("nonsense")) << setting.name;
    EXPECT_EQ(FindC4dSetting(setting.name), &setting);
  }
  EXPECT_EQ(FindC4dSetting("c4d_hang_times"), nullptr);
}

}  // namespace
}  // namespace aimaster
