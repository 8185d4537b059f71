#include "notify/event_catalog.h"

#include <gtest/gtest.h>

#include <set>

namespace aimaster::notify {
namespace {

using Types = std::vector<std::string>;

TEST(EventCatalogTest, ARestartIsAutomaticFaultToleranceToPeople) {
  EXPECT_EQ(TypesFor("Automatic Fault Tolerance"),
            (Types{"aimaster.round.restarting", "aimaster.instance.restarting"}));
  EXPECT_EQ(TypesFor("automatic fault tolerance"), TypesFor("Automatic Fault Tolerance"));
  EXPECT_EQ(TitleOf("aimaster.round.restarting"), "Automatic Fault Tolerance");
}

TEST(EventCatalogTest, AGlobStandsForItself) {
  EXPECT_EQ(TypesFor("aimaster.round.*"), Types{"aimaster.round.*"});
  EXPECT_EQ(TypesFor("*"), Types{"*"});
  EXPECT_EQ(TypesFor("aimaster.*.failed"), Types{"aimaster.*.failed"});
  EXPECT_TRUE(GlobMatches("aimaster.round.*", "aimaster.round.start_retried"));
  EXPECT_FALSE(GlobMatches("aimaster.round.*", "aimaster.job.failed"));
}

TEST(EventCatalogTest, WhatNoEventIsCalledIsNothing) {
  for (const char* odd : {"aimaster.rond.*", "aimaster.job.faild", "Automatic Fault", "aimaster", "", "round.*"}) {
    EXPECT_TRUE(TypesFor(odd).empty()) << odd;
  }
}

TEST(EventCatalogTest, DetectorsMayMakeTypesThatNobodyHasListed) {
  EXPECT_EQ(TypesFor("aimaster.hang.log_silence"), Types{"aimaster.hang.log_silence"});
  EXPECT_EQ(TypesFor("aimaster.c4d.*"), Types{"aimaster.c4d.*"});
  EXPECT_EQ(TypesFor("aimaster.hang*"), Types{"aimaster.hang*"});
  EXPECT_TRUE(TypesFor("aimaster.hang.").empty());
  EXPECT_EQ(TitleOf("aimaster.hang.log_silence"), "Hang Log Silence");
  EXPECT_EQ(SeverityOf("aimaster.hang.log_silence"), EventSeverity::kWarning);
  EXPECT_EQ(SeverityOf("aimaster.c4d.error"), EventSeverity::kError);
  EXPECT_EQ(SeverityOf("aimaster.c4d.info"), EventSeverity::kInfo);
}

TEST(EventCatalogTest, EveryKindIsThereOnceAndComplete) {
  std::set<std::string_view> types;
  for (const EventKind& kind : EventKinds()) {
    EXPECT_TRUE(types.insert(kind.type).second) << kind.type;
    EXPECT_TRUE(kind.type.starts_with("aimaster.")) << kind.type;
    EXPECT_FALSE(kind.title.empty() || kind.help.empty()) << kind.type;
    EXPECT_EQ(SeverityOf(kind.type), kind.severity);
  }
  for (const EventSeverity severity : {EventSeverity::kInfo, EventSeverity::kWarning, EventSeverity::kError}) {
    EXPECT_EQ(ParseEventSeverity(Name(severity)), severity);
  }
  EXPECT_EQ(ParseEventSeverity("fatal"), std::nullopt);
}

}  // namespace
}  // namespace aimaster::notify
