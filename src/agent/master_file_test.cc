#include "agent/master_file.h"

#include <gtest/gtest.h>

namespace aimaster::agent {
namespace {

TEST(MasterFileTest, SaysWhereTheMasterIsAndHowItIsKnown) {
  EXPECT_EQ(ParseMasterFile(R"({"host":"127.0.0.1","port":80})"), (MasterWhereabouts{"127.0.0.1", 80, ""}));
  const std::string fingerprint(64, 'a');
  EXPECT_EQ(ParseMasterFile(R"({"host":"10.0.0.1","port":80,"tls_fingerprint":")" + fingerprint + R"("})"),
            (MasterWhereabouts{"10.0.0.1", 80, fingerprint}));
}

TEST(MasterFileTest, WhatIsDamagedIsNoAddressAndNeverClearText) {
  for (const char* text :
       {"", "[]", "{}", R"({"host":"x"})", R"({"host":1,"port":80})", R"({"host":"x","port":-1})",
        R"({"host":"x","port":65536})", R"({"host":"x","port":"80"})", R"({"host":"x","port":80,"tls_fingerprint":1})",
        R"({"host":"x","port":80,"tls_fingerprint":null})", R"({"host":"x","port":80,"tls_fingerprint":"AB"})"}) {
    EXPECT_EQ(ParseMasterFile(text), std::nullopt) << text;
  }
}

TEST(MasterFileTest, ATokenIsOneLineOfVisibleCharacters) {
  EXPECT_EQ(ParseTokenFile("abc\n"), "abc");
  EXPECT_EQ(ParseTokenFile("abc"), "abc");
  EXPECT_EQ(ParseTokenFile(""), "");
  EXPECT_EQ(ParseTokenFile("a b"), "");
  EXPECT_EQ(ParseTokenFile("a\nb\n"), "");
}

}  // namespace
}  // namespace aimaster::agent
