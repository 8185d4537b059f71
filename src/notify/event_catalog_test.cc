#include "notify/event_catalog.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
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

TEST(EventCatalogTest, WhatC4dFindsIsListed) {
  EXPECT_EQ(TypesFor("aimaster.c4d.*"), Types{"aimaster.c4d.*"});
  EXPECT_EQ(TypesFor("Rank Comm Hang"), Types{"aimaster.c4d.rank-comm-hang"});
  EXPECT_TRUE(TypesFor("aimaster.c4d.rank-hang").empty());
  EXPECT_EQ(SeverityOf("aimaster.c4d.rank-non-comm-hang"), EventSeverity::kWarning);
  EXPECT_EQ(SeverityOf("aimaster.c4d.over"), EventSeverity::kInfo);
}

TEST(EventCatalogTest, AnEventOfAnotherVersionHasATitleToo) {
  EXPECT_EQ(TitleOf("aimaster.node.given_back"), "Node Given Back");
  EXPECT_EQ(SeverityOf("aimaster.node.given_back"), EventSeverity::kInfo);
  EXPECT_EQ(SeverityOf("aimaster.node.failed"), EventSeverity::kError);
}

TEST(EventCatalogTest, WhatIsToldOfHangsIsListed) {
  EXPECT_EQ(TypesFor("aimaster.hang*"), Types{"aimaster.hang*"});
  EXPECT_EQ(TypesFor("hang found"), Types{"aimaster.hang.found"});
  EXPECT_TRUE(TypesFor("aimaster.hang.fuond").empty());
  EXPECT_TRUE(TypesFor("aimaster.hangs.*").empty());
  EXPECT_EQ(SeverityOf("aimaster.hang.found"), EventSeverity::kWarning);
  EXPECT_EQ(SeverityOf("aimaster.hang.exit-found"), EventSeverity::kWarning);
  for (const char* type : {"aimaster.hang.advancing", "aimaster.hang.stacks", "aimaster.hang.advice"}) {
    EXPECT_EQ(SeverityOf(type), EventSeverity::kInfo) << "a person may ask for stacks";
  }
}

TEST(EventCatalogTest, WhatTheEngineTellsIsListed) {
  const char* source = std::getenv("AIMASTER_SOURCE");
  ASSERT_TRUE(source) << "run under ctest, or set AIMASTER_SOURCE to the source tree";
  const std::regex type("\"(aimaster\\.[a-z]+\\.[a-z_-]+)\"");
  size_t found = 0;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(source) / "src" / "engine")) {
    std::ifstream stream(file.path());
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    for (std::sregex_iterator match(text.begin(), text.end(), type), end; match != end; ++match, ++found) {
      EXPECT_EQ(TypesFor((*match)[1].str()), Types{(*match)[1].str()}) << file.path();
    }
  }
  EXPECT_GT(found, 20u);
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
