#include "c4d/dump_collection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "c4d/dump_test_support.h"

namespace aimaster::c4d {
namespace {

using namespace std::chrono_literals;
using Files = std::map<std::string, std::string>;

DumpReading ReadFolder(const Files& files, Duration stood_for = 10s) {
  DumpCollection collection;
  for (const auto& [name, bytes] : files) collection.Add(name, bytes);
  return collection.Take(stood_for);
}

const MemberState* Find(const Observation& observation, std::string_view communicator, uint32_t rank) {
  for (const MemberState& state : observation.states) {
    if (observation.communicators[state.communicator].name == communicator && state.rank == Rank{rank}) return &state;
  }
  return nullptr;
}

std::string Notes(const DumpReading& reading) {
  std::string text;
  for (const DumpNote& note : reading.notes) text += note.file + " " + note.reason + "\n";
  return text;
}

// Two ranks; rank 0 waits in operation 8.
Files TwoRanks() {
  return {{"d_0", DumpMaker().Group(0, "0", {0, 1}, 8, 7).Entry(0, "0", 8, "nccl:all_reduce").Text()},
          {"d_1", DumpMaker().Group(0, "0", {0, 1}, 7, 7).Text()}};
}

void ExpectSound(const Observation& observation) {
  uint32_t operations = 0;
  for (size_t i = 0; i < observation.states.size(); ++i) {
    const MemberState& state = observation.states[i];
    ASSERT_LT(state.communicator, observation.communicators.size());
    const std::vector<Rank>& members = observation.communicators[state.communicator].members;
    EXPECT_TRUE(std::ranges::binary_search(members, state.rank));
    EXPECT_LE(state.completed, state.issued);
    EXPECT_EQ(state.first_operation, operations);
    operations += state.operation_count;
    if (i > 0) {
      const MemberState& before = observation.states[i - 1];
      EXPECT_LT(std::pair(before.communicator, before.rank), std::pair(state.communicator, state.rank));
    }
  }
  EXPECT_EQ(operations, observation.operations.size());
}

TEST(DumpCollection, ARealIncidentIsSeenByAllItsRanks) {
  const DumpReading reading = ReadFolder(ReadIncident("incident-b"));
  const Observation& observation = reading.observation;
  EXPECT_EQ(Notes(reading), "");
  EXPECT_EQ(reading.ranks_seen, 16);
  ASSERT_EQ(observation.ranks.size(), 16);
  EXPECT_TRUE(std::ranges::all_of(observation.ranks, &RankState::is_observed));
  ExpectSound(observation);
  const MemberState* culprit = Find(observation, "40", 10);
  const MemberState* victim = Find(observation, "40", 11);
  ASSERT_TRUE(culprit != nullptr && victim != nullptr);
  EXPECT_EQ(culprit->issued, 31442);
  EXPECT_EQ(culprit->completed, 31442);
  EXPECT_EQ(culprit->operation_count, 0);
  EXPECT_EQ(victim->issued, 31451);
  ASSERT_EQ(victim->operation_count, 9);
  const Operation& waits_in = observation.operations[victim->first_operation];
  EXPECT_EQ(waits_in.sequence, 31443);
  EXPECT_EQ(waits_in.function, Function::kReduceScatter);
  EXPECT_EQ(observation.Text(waits_in.type), "BFloat16");
  EXPECT_EQ(waits_in.start, Start::kUnknown);
  EXPECT_GT(waits_in.age, 10s);
  EXPECT_LT(waits_in.age, 10s + 100ms) << "everything was recorded within 20 ms";
  EXPECT_EQ(FormatRfc3339(*reading.last_record), "2025-09-23T06:45:38.269Z");
}

TEST(DumpCollection, APipelineSendsAndItsCountersAreNotThoseOfCollectives) {
  const DumpReading reading = ReadFolder(ReadIncident("incident-b"));
  const MemberState* state = Find(reading.observation, "43", 0);
  ASSERT_NE(state, nullptr);
  EXPECT_TRUE(state->carries_point_to_point);
  EXPECT_EQ(state->issued, 27);
  ASSERT_EQ(state->operation_count, 3);
  const Operation& receive = reading.observation.operations[state->first_operation];
  EXPECT_EQ(receive.function, Function::kReceive);
  EXPECT_EQ(receive.sequence, 12224);
  EXPECT_EQ(receive.peer, Rank{12}) << "position 3 of ranks 0, 4, 8, 12";
  EXPECT_EQ(Find(reading.observation, "49", 10), nullptr) << "its dump tells no collective of that group";
}

TEST(DumpCollection, WhatMembersSayOfARankWithoutADumpIsKnown) {
  Files files = ReadIncident("incident-a");
  for (const char* file : {"_dump_3", "_dump_15"}) files.erase(file);
  const DumpReading reading = ReadFolder(files);
  EXPECT_EQ(reading.ranks_seen, 14);
  ASSERT_EQ(reading.observation.ranks.size(), 16);
  EXPECT_FALSE(reading.observation.ranks[15].is_observed);
  ASSERT_FALSE(reading.observation.communicators.empty());
  EXPECT_EQ(reading.observation.communicators[0].members.size(), 16);
}

TEST(DumpCollection, ACutDumpObservesNobodyButWhatItSaysIsKept) {
  Files files = ReadIncident("incident-b");
  std::string& cut = files["_dump_11"];
  cut.resize(cut.size() - 300);
  const DumpReading reading = ReadFolder(files);
  EXPECT_EQ(reading.ranks_seen, 15);
  EXPECT_FALSE(reading.observation.ranks[11].is_observed);
  EXPECT_EQ(Notes(reading), "_dump_11 is cut short, so of rank 11 counts what it says, and not what it lacks\n");
  EXPECT_TRUE(reading.notes[0].is_used);
  const MemberState* waits = Find(reading.observation, "40", 11);
  ASSERT_NE(waits, nullptr);
  EXPECT_EQ(reading.observation.operations[waits->first_operation].sequence, 31443);
  ExpectSound(reading.observation);
}

TEST(DumpCollection, WhoHasIssuedNothingInAGroupIsKnownToHaveIssuedNothing) {
  Files files = {{"d_0", DumpMaker().Group(0, "0", {0, 1}, 1, 1).Group(1, "1", {0, 1}, 1, 0).Text()},
                 {"d_1", DumpMaker().Group(0, "0", {0, 1}, 1, 1).Text()}};
  const DumpReading reading = ReadFolder(files);
  const MemberState* none = Find(reading.observation, "1", 1);
  ASSERT_NE(none, nullptr);
  EXPECT_EQ(none->issued, 0);
}

TEST(DumpCollection, ACounterThatCannotBeJoinedIsNotGuessed) {
  DumpMaker torn;
  torn.Group(0, "0", {0, 1}, 7, 7).Group(1, "1", {0, 1}, 3, 3);
  torn.json()["pg_config"]["2"] = {{"name", "2"}, {"desc", "never used"}, {"ranks", "[0, 1]"}};
  Files files = TwoRanks();
  files["d_1"] = torn.Text();
  const DumpReading reading = ReadFolder(files);
  EXPECT_TRUE(reading.observation.ranks[1].is_observed);
  EXPECT_EQ(Find(reading.observation, "0", 1), nullptr);
}

TEST(DumpCollection, TheRankIsInTheNameOrElseInTheGroups) {
  const std::string of_3 =
      DumpMaker().Group(0, "0", {0, 1, 2, 3}, 1, 1).Group(1, "1", {1, 3}, 1, 1).Group(2, "2", {2, 3}, 1, 1).Text();
  for (const std::string name : {"nccl_trace_rank_3", "node1/rank3.json", "dump.3", "host-b", "_dump_0"}) {
    const DumpReading reading = ReadFolder({{name, of_3}});
    ASSERT_EQ(reading.observation.ranks.size(), 4) << name << Notes(reading);
    EXPECT_TRUE(reading.observation.ranks[3].is_observed) << name;
  }
  const std::string of_anyone = DumpMaker().Group(0, "0", {0, 1}, 1, 1).Text();
  EXPECT_EQ(Notes(ReadFolder({{"dump", of_anyone}})),
            "dump does not tell of which rank it is; let its name end in the rank\n");
  EXPECT_EQ(Notes(ReadFolder({{"dump_7", of_anyone}})),
            "dump_7 is not of rank 7, as its name says: that rank is not in its groups\n");
}

TEST(DumpCollection, OfTwoOfOneRankTheWholeAndTheNewerCounts) {
  Files files = TwoRanks();
  files["old_0"] =
      DumpMaker().Group(0, "0", {0, 1}, 5, 4).Entry(0, "0", 5, "nccl:all_reduce", {{"time_created_ns", 7}}).Text();
  files["copy_1"] = files["d_1"];
  files["torn_1"] = files["d_1"].substr(0, files["d_1"].size() - 1);
  const DumpReading reading = ReadFolder(files);
  EXPECT_EQ(Find(reading.observation, "0", 0)->issued, 8);
  EXPECT_EQ(reading.ranks_seen, 2);
  EXPECT_EQ(Notes(reading),
            "d_1 is the same as copy_1\nold_0 is another dump of rank 0, and d_0 is newer, or as new\n"
            "torn_1 is another dump of rank 1, and copy_1 is newer, or as new\n");
}

TEST(DumpCollection, ADumpOfAnotherJobIsLeftOut) {
  Files files = TwoRanks();
  files["e_1"] = DumpMaker().Group(0, "0", {0, 1, 2}, 3, 3).Text();
  const DumpReading reading = ReadFolder(files);
  EXPECT_EQ(Notes(reading),
            "e_1 is of another job: its world of 3 ranks is not that of most dumps, which has 2 ranks\n");
  EXPECT_EQ(reading.observation.ranks.size(), 2);
}

TEST(DumpCollection, OneWhoseRecorderWasOffSaysNothing) {
  Files files = TwoRanks();
  files["d_1"] = DumpMaker().Text();
  const DumpReading reading = ReadFolder(files);
  EXPECT_EQ(reading.ranks_seen, 1);
  EXPECT_NE(Notes(reading).find("d_1 recorded nothing; was the recorder on"), std::string::npos);
  EXPECT_FALSE(reading.observation.ranks[1].is_observed);
}

TEST(DumpCollection, AnOldVersionWithoutCountersIsUnderstoodByItsEntries) {
  Files files;
  for (const int rank : {0, 1}) {
    DumpMaker maker;
    maker.Entry(0, "0", 6, "nccl:all_reduce", {{"state", "completed"}});
    maker.Entry(0, "0", 7, "nccl:all_reduce", {{"state", rank == 0 ? "scheduled" : "completed"}});
    maker.json().erase("pg_config");
    maker.json().erase("pg_status");
    maker.json()["version"] = "2.1";
    files["d_" + std::to_string(rank)] = maker.Text();
  }
  const DumpReading reading = ReadFolder(files);
  EXPECT_EQ(reading.ranks_seen, 2) << Notes(reading);
  EXPECT_EQ(reading.observation.communicators.at(0).members.size(), 2);
  EXPECT_EQ(Find(reading.observation, "0", 0)->issued, 7);
  EXPECT_EQ(Find(reading.observation, "0", 0)->completed, 6);
  EXPECT_EQ(Find(reading.observation, "0", 0)->operation_count, 1);
  EXPECT_EQ(Find(reading.observation, "0", 1)->completed, 7);
}

TEST(DumpCollection, WhereStartsAreKeptAnOperationThatHasNotStartedIsToldFromOneOfWhichItIsNotKnown) {
  Files files = TwoRanks();
  files["d_0"] = DumpMaker()
                     .Group(0, "0", {0, 1}, 9, 7, 8)
                     .Entry(0, "0", 8, "nccl:all_reduce", {{"state", "started"}})
                     .Entry(0, "0", 9, "nccl:all_reduce")
                     .Text();
  const DumpReading reading = ReadFolder(files);
  const MemberState* state = Find(reading.observation, "0", 0);
  ASSERT_EQ(state->operation_count, 2);
  EXPECT_EQ(state->started, 8);
  EXPECT_EQ(reading.observation.operations[state->first_operation].start, Start::kStarted);
  EXPECT_EQ(reading.observation.operations[state->first_operation + 1].start, Start::kNotStarted);
  EXPECT_EQ(Find(reading.observation, "0", 1)->started, kUnknown);
}

TEST(DumpCollection, AgesAreALeastAndAWrongClockCountsForItselfAlone) {
  Files files;
  for (int rank = 0; rank < 5; ++rank) {
    DumpMaker maker;
    const int64_t clock = rank == 4 ? 86'400'000'000'000 : 0;  // a day ahead
    const int64_t begin = DumpMaker::kBegin + clock;
    maker.Group(0, "0", {0, 1, 2, 3, 4}, 2, 1);
    maker.Entry(0, "0", 2, "nccl:all_reduce", {{"time_created_ns", begin}});
    if (rank != 0) {  // the others go on in other groups
      maker.Group(1, "1", {1, 2, 3, 4}, 9, 8);
      maker.Entry(1, "1", 9, "nccl:all_reduce", {{"time_created_ns", begin + 60'000'000'000}});
    }
    files["d_" + std::to_string(rank)] = maker.Text();
  }
  const DumpReading reading = ReadFolder(files);
  const auto age = [&](uint32_t rank) {
    return reading.observation.operations[Find(reading.observation, "0", rank)->first_operation].age;
  };
  EXPECT_EQ(age(0), 70s + 1ns) << "the others recorded something a minute later, and stood then";
  EXPECT_EQ(age(1), 70s + 1ns);
  EXPECT_EQ(age(4), 70s + 1ns) << "by its own clock";
  EXPECT_EQ(reading.observation.operations[Find(reading.observation, "1", 1)->first_operation].age, 10s + 1ns);
  EXPECT_NE(Notes(reading).find("the clock of rank 4 is wrong"), std::string::npos) << Notes(reading);
}

TEST(DumpCollection, ARecorderThatForgotASendThatIsOpenSaysSo) {
  const nlohmann::json send = {{"is_p2p", true}, {"p2p_seq_id", 9}};
  Files files = TwoRanks();
  files["d_1"] = DumpMaker().Group(0, "0", {0, 1}, 9, 8).Entry(0, "0", 7, "nccl:send 1->0", send).Text();
  EXPECT_FALSE(ReadFolder(files).observation.ranks[1].has_lost_operations);
  files["d_1"] = DumpMaker().Group(0, "0", {0, 1}, 9, 6).Entry(0, "0", 7, "nccl:send 1->0", send).Text();
  EXPECT_TRUE(ReadFolder(files).observation.ranks[1].has_lost_operations);
}

TEST(DumpCollection, NothingComesOfNothing) {
  const DumpReading reading = ReadFolder({});
  EXPECT_TRUE(reading.observation.ranks.empty());
  EXPECT_EQ(reading.dumps_used, 0);
}

}  // namespace
}  // namespace aimaster::c4d
