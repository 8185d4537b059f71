#include "core/character_border.h"

#include <gtest/gtest.h>

namespace aimaster {
namespace {

TEST(CharacterBorderTest, NoCharacterIsCutInTwo) {
  const std::string_view text = "aä€";  // 1 + 2 + 3 bytes
  const size_t borders[] = {0, 1, 1, 3, 3, 3, 6, 6};
  for (size_t at = 0; at < std::size(borders); ++at) EXPECT_EQ(CharacterBorder(text, at), borders[at]) << at;
}

TEST(CharacterBorderTest, BytesThatAreNoTextHaveNoBorder) {
  EXPECT_EQ(CharacterBorder("\x80\x80\x80", 2), 0u);
  EXPECT_EQ(CharacterBorder("", 5), 0u);
}

}  // namespace
}  // namespace aimaster
