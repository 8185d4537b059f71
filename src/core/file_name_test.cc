#include "core/file_name.h"

#include <gtest/gtest.h>

#include <string>

namespace aimaster {
namespace {

TEST(FileNameTest, ANameIsLettersDigitsAndAFewMarks) {
  for (const std::string& name : {std::string("node-0"), std::string("dlc1a2b3c4d5e6f7-worker-12"),
                                  std::string("a.b_C"), std::string(".hidden"), std::string(kFileNameMaxBytes, 'a')}) {
    EXPECT_TRUE(IsFileName(name)) << name;
  }
}

TEST(FileNameTest, WhatCouldLeadElsewhereIsNone) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("/"), std::string("../up"),
        std::string("a\0b", 3), std::string("a\n"), std::string("\x1b[2J"), std::string("a b"), std::string("\xc3\xa4"),
        std::string("a\\b"), std::string("~"), std::string("$HOME"), std::string(kFileNameMaxBytes + 1, 'a')}) {
    EXPECT_FALSE(IsFileName(name)) << name;
  }
}

}  // namespace
}  // namespace aimaster
