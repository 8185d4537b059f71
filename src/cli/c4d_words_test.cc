#include "cli/c4d_words.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

namespace aimaster::cli {
namespace {

using namespace std::chrono_literals;
using c4d::DumpReading;
using c4d::Level;
using c4d::Verdict;
using c4d::VerdictKind;

DumpReading OfRanks(size_t seen, size_t all) {
  DumpReading reading;
  reading.observation.ranks.resize(all);
  for (size_t i = 0; i < seen; ++i) reading.observation.ranks[i].is_observed = true;
  reading.ranks_seen = seen;
  reading.stood_for = 10s;
  reading.observation.communicators.push_back({"74", "EXPERT_GROUP", {Rank{0}, Rank{1}}});
  return reading;
}

Verdict Hang(std::vector<Rank> ranks, VerdictKind kind = VerdictKind::kRankCommHang) {
  return {.kind = kind, .level = Level::kError, .ranks = std::move(ranks)};
}

TEST(C4dWords, TheFirstLineNamesTheCulprits) {
  const DumpReading reading = OfRanks(16, 16);
  EXPECT_EQ(C4dHeadline(reading, {Hang({Rank{12}, Rank{14}})}),
            "Ranks 12 and 14 hang in the communication layer (RankCommHang)");
  EXPECT_EQ(C4dHeadline(reading, {Hang({Rank{14}}), Hang({Rank{12}})}),
            "Ranks 12 and 14 hang in the communication layer (RankCommHang)")
      << "in one sentence, also where each has a verdict of its own";
  EXPECT_EQ(C4dHeadline(reading, {Hang({Rank{3}}, VerdictKind::kRankNonCommHang)}),
            "Rank 3 hangs outside communication, and others wait for it (RankNonCommHang)");
  EXPECT_EQ(C4dHeadline(reading, {Hang({Rank{3}}), Hang({Rank{5}}, VerdictKind::kRankNonCommHang)}),
            "Rank 3 hangs in the communication layer (RankCommHang); rank 5 hangs outside communication, and others "
            "wait for it (RankNonCommHang)");
  Verdict group = Hang({Rank{0}, Rank{1}});
  group.is_group = true;
  EXPECT_EQ(C4dHeadline(reading, {group}),
            "One or more of ranks 0 and 1, which can't be told, hang in the communication layer (RankCommHang)");
}

TEST(C4dWords, WhereNobodyCanBeNamedItIsSaidWhy) {
  EXPECT_EQ(C4dHeadline(OfRanks(4, 4), {}), "No rank is found to hang in the dumps of all 4 ranks");
  EXPECT_EQ(C4dHeadline(OfRanks(3, 4), {}),
            "No rank can be named: none that has a whole dump is to blame, and of rank 3 there is none");
}

TEST(C4dWords, WhoIsNotKnownIsNamedWhereNobodyElseIs) {
  const Verdict unknown = Hang({Rank{3}}, VerdictKind::kNoProbeData);
  EXPECT_EQ(C4dHeadline(OfRanks(3, 4), {unknown}),
            "Who hangs can't be told, for nothing is known of rank 3 (NoProbeData)");
  EXPECT_EQ(C4dHeadline(OfRanks(3, 4), {Hang({Rank{1}}), unknown}),
            "Rank 1 hangs in the communication layer (RankCommHang)");
}

TEST(C4dWords, TheStoryGoesOnWithWhatItRestsOn) {
  DumpReading reading = OfRanks(2, 3);
  reading.notes = {{.file = "d\x1b[2J", .reason = "is empty"}, {.file = "d_1", .reason = "is cut", .is_used = true}};
  Verdict verdict = Hang({Rank{1}});
  verdict.communicator = 0;
  verdict.operation = "AllGather of 8 Float";
  verdict.sequence = 7;
  verdict.since = 200s;
  verdict.waiting = {Rank{0}};
  verdict.evidence = {"rank 0 has started it, rank 1 has not"};
  const std::string story = C4dStory(reading, {verdict}, Terminal{});
  EXPECT_EQ(
      story,
      "Rank 1 hangs in the communication layer (RankCommHang)\n\n"
      "Error: rank 1 hangs in the communication layer (RankCommHang)\n"
      "  group      EXPERT_GROUP (74), ranks 0 and 1\n"
      "  operation  AllGather of 8 Float, number 7\n"
      "  since      3 min 10 s or longer\n"
      "  waiting    rank 0\n"
      "  - rank 0 has started it, rank 1 has not\n\n"
      "Seen: 2 of 3 ranks; not rank 2. A dump does not say when it was made: times above suppose that the job had "
      "stood for 10.0 s by then; it may have been longer.\n\n"
      "Not used:\n  - d [2J is empty\n\n"
      "Used, but:\n  - d_1 is cut\n");
  const nlohmann::json object = C4dJson(reading, {verdict});
  EXPECT_EQ(object["verdicts"][0]["since"], 190.0);
  EXPECT_EQ(object["verdicts"][0]["communicator"], "74");
  EXPECT_TRUE(object["verdicts"][0]["node"].is_null());
  EXPECT_EQ(object["ranks_not_seen"], nlohmann::json({2}));
  EXPECT_EQ(object["files_left_out"].size(), 1);
}

}  // namespace
}  // namespace aimaster::cli
