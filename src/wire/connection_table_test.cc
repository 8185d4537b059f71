#include "wire/connection_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace aimaster {
namespace {

struct Visitor final : Guest {
  explicit Visitor(ConnectionTable& table) : place(table.Admit(this)) {}
  void Evict() override { place.reset(); }
  bool inside() const { return place != nullptr; }

  std::unique_ptr<Place> place;
};

TEST(ConnectionTableTest, TheOldestStrangerGivesWayToANewOne) {
  auto table = std::make_shared<ConnectionTable>(10, 2);
  Visitor first(*table), second(*table), third(*table);
  EXPECT_FALSE(first.inside());
  EXPECT_TRUE(second.inside());
  EXPECT_TRUE(third.inside());
  EXPECT_EQ(table->size(), 2u);
}

TEST(ConnectionTableTest, WhoHasShownTheTokenNeverGivesWay) {
  auto table = std::make_shared<ConnectionTable>(10, 2);
  Visitor agent(*table);
  agent.place->MarkTrusted();
  Visitor first(*table), second(*table), third(*table);
  EXPECT_TRUE(agent.inside());
  EXPECT_FALSE(first.inside());
  EXPECT_EQ(table->strangers(), 2u);
}

TEST(ConnectionTableTest, WhenAllPlacesAreTakenByTrustedOnesANewcomerIsTurnedAway) {
  auto table = std::make_shared<ConnectionTable>(2, 2);
  Visitor first(*table);
  first.place->MarkTrusted();
  {
    Visitor stranger(*table);
    Visitor second(*table);
    EXPECT_FALSE(stranger.inside());
    second.place->MarkTrusted();
    Visitor third(*table);
    EXPECT_FALSE(third.inside());
    EXPECT_FALSE(table->EvictOldestStranger());
  }
  Visitor fourth(*table);  // places come back
  EXPECT_TRUE(fourth.inside());
}

TEST(ConnectionTableTest, EvictingAllLeavesNobody) {
  auto table = std::make_shared<ConnectionTable>(10, 10);
  Visitor first(*table), second(*table);
  second.place->MarkTrusted();
  table->EvictAll();
  EXPECT_FALSE(first.inside() || second.inside());
  EXPECT_EQ(table->size(), 0u);
}

}  // namespace
}  // namespace aimaster
