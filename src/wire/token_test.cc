#include "wire/token.h"

#include <gtest/gtest.h>

#include <string>

#include "wire/limits.h"

namespace aimaster {
namespace {

TEST(TokenTest, ABearerHeaderHoldsAToken) {
  EXPECT_EQ(BearerToken("Bearer abc"), "abc");
  EXPECT_EQ(BearerToken("bearer   abc"), "abc");
  EXPECT_EQ(BearerToken("Basic abc"), std::nullopt);
  EXPECT_EQ(BearerToken("Bearer "), std::nullopt);
  EXPECT_EQ(BearerToken("Bearer    "), std::nullopt);
  EXPECT_EQ(BearerToken("Bearer a b"), std::nullopt);
  EXPECT_EQ(BearerToken(""), std::nullopt);
}

TEST(TokenTest, OnlyTheWholeTokenIsTheSame) {
  EXPECT_TRUE(SameToken("secret", "secret"));
  EXPECT_FALSE(SameToken("secre", "secret"));
  EXPECT_FALSE(SameToken("secretsecret", "secret"));  // the comparison goes round, the length does not
  EXPECT_FALSE(SameToken("Secret", "secret"));
  EXPECT_FALSE(SameToken("secreT", "secret"));
  EXPECT_FALSE(SameToken("", "secret"));
  EXPECT_FALSE(SameToken("", ""));
}

TEST(TokenTest, WhatCannotBeSentInAHeaderIsNoToken) {
  EXPECT_TRUE(IsToken("0123456789abcdef"));
  EXPECT_FALSE(IsToken(""));
  EXPECT_FALSE(IsToken("a\r\nHost: b"));
  EXPECT_FALSE(IsToken("a b"));
  EXPECT_FALSE(IsToken("naïve"));
  EXPECT_FALSE(IsToken(std::string(kTokenMax + 1, 'a')));
}

}  // namespace
}  // namespace aimaster
