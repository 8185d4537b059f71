// From files to verdicts: who is accused when dumps are as they are found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "c4d/dump_collection.h"
#include "c4d/dump_test_support.h"
#include "c4d/hangs.h"

namespace aimaster::c4d {
namespace {

using Files = std::map<std::string, std::string>;

struct Truth {
  std::string incident;
  VerdictKind kind;
  std::set<uint32_t> culprits;
};

void PrintTo(const Truth& truth, std::ostream* out) { *out << truth.incident; }

struct Accusation {
  std::set<uint32_t> ranks;
  std::set<VerdictKind> kinds;
  std::set<uint32_t> not_seen;
};

Accusation Accuse(const Files& files) {
  DumpCollection collection;
  for (const auto& [name, bytes] : files) collection.Add(name, bytes);
  const HangTiming timing;
  const DumpReading reading = collection.Take(timing.timeout);
  Accusation accusation;
  for (const Verdict& verdict : FindHangs(reading.observation, timing)) {
    accusation.kinds.insert(verdict.kind);
    if (verdict.is_group || verdict.kind == VerdictKind::kNoProbeData) continue;
    for (const Rank rank : verdict.ranks) accusation.ranks.insert(Value(rank));
  }
  for (uint32_t rank = 0; rank < reading.observation.ranks.size(); ++rank) {
    if (!reading.observation.ranks[rank].is_observed) accusation.not_seen.insert(rank);
  }
  return accusation;
}

class DumpAccusations : public testing::TestWithParam<Truth> {
 protected:
  // Nobody innocent, and nobody whose dump is not whole.
  void ExpectJust(const Files& files, const std::string& how) {
    const Accusation accusation = Accuse(files);
    for (const uint32_t rank : accusation.ranks) {
      EXPECT_TRUE(GetParam().culprits.contains(rank)) << how << ": rank " << rank;
      EXPECT_FALSE(accusation.not_seen.contains(rank)) << how << ": rank " << rank << " was not seen";
    }
  }

  const Files files_ = ReadIncident(GetParam().incident);
  const bool is_full_ = std::getenv("AIMASTER_TEST_FULL") != nullptr;
};

TEST_P(DumpAccusations, TheCulpritsAreNamedAndNobodyElse) {
  const Accusation accusation = Accuse(files_);
  EXPECT_EQ(accusation.ranks, GetParam().culprits);
  EXPECT_EQ(accusation.kinds, std::set{GetParam().kind});
  EXPECT_TRUE(accusation.not_seen.empty());
}

TEST_P(DumpAccusations, ADumpThatIsCutAnywhereAccusesNobodyInnocent) {
  std::mt19937 random(20250923);
  const int cuts = is_full_ ? 5'000 : 400;
  for (int i = 0; i < cuts; ++i) {
    Files files = files_;
    auto file = std::next(files.begin(), static_cast<ptrdiff_t>(random() % files.size()));
    file->second.resize(random() % file->second.size());
    ExpectJust(files, file->first + " cut at " + std::to_string(file->second.size()));
  }
}

TEST_P(DumpAccusations, AlsoWhereHalfOfThemAreCut) {
  std::mt19937 random(7);
  const int rounds = is_full_ ? 1'000 : 100;
  for (int i = 0; i < rounds; ++i) {
    Files files = files_;
    for (auto& [name, bytes] : files) {
      if (random() % 2 == 0) bytes.resize(random() % bytes.size());
    }
    ExpectJust(files, "round " + std::to_string(i));
  }
}

TEST_P(DumpAccusations, FourThatAreMissingMakeNobodyGuilty) {
  std::mt19937 random(16);
  const int rounds = is_full_ ? 1'000 : 100;
  for (int i = 0; i < rounds; ++i) {
    Files files = files_;
    std::string missing;
    while (files.size() > 12) {
      const auto file = std::next(files.begin(), static_cast<ptrdiff_t>(random() % files.size()));
      missing += " " + file->first;
      files.erase(file);
    }
    ExpectJust(files, "without" + missing);
  }
}

TEST_P(DumpAccusations, OnesWithAByteThatIsWrongDoNoHarmToTheProgram) {
  std::mt19937 random(99);
  for (int i = 0; i < (is_full_ ? 1'000 : 200); ++i) {
    Files files = files_;
    auto file = std::next(files.begin(), static_cast<ptrdiff_t>(random() % files.size()));
    file->second[random() % file->second.size()] = static_cast<char>(random());
    Accuse(files);
  }
}

INSTANTIATE_TEST_SUITE_P(Incidents, DumpAccusations,
                         testing::Values(Truth{"incident-a", VerdictKind::kRankCommHang, {12, 14}},
                                         Truth{"incident-b", VerdictKind::kRankNonCommHang, {10, 15}}));

}  // namespace
}  // namespace aimaster::c4d
