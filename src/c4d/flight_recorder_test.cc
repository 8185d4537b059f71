#include "c4d/flight_recorder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "c4d/dump_test_support.h"

namespace aimaster::c4d {
namespace {

using nlohmann::json;

FlightRecorderDump ReadDump(std::string_view bytes) {
  Result<FlightRecorderDump> dump = ReadFlightRecorderDump(bytes);
  EXPECT_TRUE(dump.has_value()) << dump.error().message;
  return dump ? *std::move(dump) : FlightRecorderDump();
}

std::string Refusal(std::string_view bytes) {
  const Result<FlightRecorderDump> dump = ReadFlightRecorderDump(bytes);
  return dump ? "" : dump.error().message;
}

bool Same(const DumpGroup& a, const DumpGroup& b) {
  return a.name == b.name && a.description == b.description && a.members == b.members;
}
bool Same(const DumpStatus& a, const DumpStatus& b) {
  return a.group_id == b.group_id && a.enqueued == b.enqueued && a.completed == b.completed;
}
bool Same(const DumpEntry& a, const DumpEntry& b) {
  return a.record == b.record && a.group == b.group && a.name == b.name && a.count == b.count && a.type == b.type &&
         a.collective_sequence == b.collective_sequence && a.created_ns == b.created_ns && a.is_done == b.is_done;
}

// Everything in `part` is in `whole`.
template <typename T>
bool IsWithin(const std::vector<T>& part, const std::vector<T>& whole) {
  return std::ranges::all_of(
      part, [&](const T& one) { return std::ranges::any_of(whole, [&](const T& other) { return Same(one, other); }); });
}

TEST(FlightRecorder, ARealDumpSaysWhatItSays) {
  const FlightRecorderDump dump = ReadDump(ReadIncident("incident-a")["_dump_0"]);
  EXPECT_EQ(dump.version, "2.9");
  EXPECT_TRUE(dump.has_groups && dump.has_statuses && dump.has_entries && dump.is_whole);
  EXPECT_EQ(dump.groups.size(), 13);
  EXPECT_EQ(dump.statuses.size(), 13);
  ASSERT_EQ(dump.entries.size(), 20);
  const DumpEntry& send = dump.entries[0];
  EXPECT_EQ(send.group, "43");
  EXPECT_EQ(send.description, "PIPELINE_MODEL_PARALLEL_GROUP");
  EXPECT_EQ(send.function, Function::kSend);
  EXPECT_EQ(send.point_to_point_sequence, 11981);
  EXPECT_EQ(send.own_position, 0);
  EXPECT_EQ(send.peer_position, 3);
  const DumpEntry& gather = dump.entries[2];
  EXPECT_EQ(gather.function, Function::kAllGather);
  EXPECT_EQ(gather.name, "nccl:_all_gather_base");
  EXPECT_EQ(gather.collective_sequence, 39407);
  EXPECT_EQ(gather.count, 4096 * 5120);
  EXPECT_EQ(gather.type, "BFloat16");
  EXPECT_EQ(gather.created_ns, 1758610505939751824);
  EXPECT_FALSE(gather.is_started || gather.is_done);
  EXPECT_FALSE(dump.tells_starts);
}

TEST(FlightRecorder, OfADumpThatIsCutWhateverIsCalledWholeIsWhole) {
  for (const std::string file : {"_dump_0", "_dump_10"}) {
    const std::string bytes = ReadIncident("incident-b")[file];
    const FlightRecorderDump whole = ReadDump(bytes);
    for (size_t size = 1; size < bytes.size(); ++size) {
      const auto cut = ReadFlightRecorderDump(std::string_view(bytes).substr(0, size));
      if (!cut) continue;
      ASSERT_FALSE(cut->is_whole);
      ASSERT_TRUE(IsWithin(cut->groups, whole.groups) && IsWithin(cut->statuses, whole.statuses) &&
                  IsWithin(cut->entries, whole.entries))
          << file << " cut at " << size;
      ASSERT_TRUE(!cut->has_groups || cut->groups.size() == whole.groups.size()) << file << " cut at " << size;
      ASSERT_TRUE(!cut->has_statuses || cut->statuses.size() == whole.statuses.size()) << file << " cut at " << size;
      ASSERT_TRUE(!cut->has_entries || cut->entries.size() == whole.entries.size()) << file << " cut at " << size;
    }
    const Result<FlightRecorderDump> nearly =
        ReadFlightRecorderDump(std::string_view(bytes).substr(0, bytes.size() - 1));
    ASSERT_TRUE(nearly.has_value());
    EXPECT_TRUE(nearly->has_groups && nearly->has_statuses);
  }
}

TEST(FlightRecorder, JsonThatIsCutIsNoDifferent) {
  const std::string text = DumpMaker()
                               .Group(0, "0", {0, 1}, 7, 5)
                               .Group(1, "1", {0}, 2, 2)
                               .Entry(0, "0", 6, "nccl:all_reduce")
                               .Entry(0, "0", 7, "nccl:all_reduce")
                               .Text();
  const FlightRecorderDump whole = ReadDump(text);
  EXPECT_TRUE(whole.has_groups && whole.has_statuses && whole.has_entries);
  EXPECT_EQ(whole.entries.size(), 2);
  for (size_t size = 1; size < text.size(); ++size) {
    const auto cut = ReadFlightRecorderDump(std::string_view(text).substr(0, size));
    if (!cut) continue;
    EXPECT_EQ(cut->trouble, "it is cut short") << size;
    EXPECT_TRUE(IsWithin(cut->groups, whole.groups) && IsWithin(cut->statuses, whole.statuses) &&
                IsWithin(cut->entries, whole.entries))
        << size;
    EXPECT_TRUE(!cut->has_statuses || cut->statuses.size() == 2) << size;
    EXPECT_TRUE(!cut->has_entries || cut->entries.size() == 2) << size;
  }
}

TEST(FlightRecorder, WhatIsNoDumpIsNamedForWhatItIs) {
  EXPECT_EQ(Refusal(""), "is empty");
  EXPECT_EQ(Refusal("Fault ranks: [12, 14]\n"), "is neither a pickle nor JSON");
  EXPECT_EQ(Refusal(R"({"rank": 3})"), "is no Flight Recorder dump");
  EXPECT_EQ(Refusal(R"({"rank": )"), "holds nothing that can be used: it is cut short");
  EXPECT_EQ(Refusal(R"({"version": "3.1", "entries": []})"), "is a dump of version '3.1'; 2.x can be read");
  EXPECT_EQ(Refusal(std::string("\x80\x02]q\x00.", 6)), "is no Flight Recorder dump");
  EXPECT_EQ(Refusal("\x80\x02"), "holds nothing that can be used: it is cut short");
}

TEST(FlightRecorder, VersionsThatSayLessOrMoreAreRead) {
  json old = {{"version", "2.1"},
              {"entries",
               {{{"record_id", 3},
                 {"pg_id", 0},
                 {"process_group", {"0", "default_pg"}},
                 {"seq_id", 9},
                 {"profiling_name", "nccl:recv 1<-0"},
                 {"state", "started"}}}}};
  const FlightRecorderDump dump = ReadDump(old.dump());
  EXPECT_TRUE(dump.has_entries && dump.is_whole && !dump.has_groups && !dump.has_statuses);
  ASSERT_EQ(dump.entries.size(), 1);
  EXPECT_EQ(dump.entries[0].collective_sequence, 9);
  EXPECT_TRUE(dump.entries[0].is_point_to_point && dump.entries[0].is_started);
  EXPECT_TRUE(dump.tells_starts);

  DumpMaker newer;
  newer.Group(0, "0", {0, 1}, 1, 0).Entry(0, "0", 1, "gloo:all_reduce", {{"colour", {{"deep", {1, {2}}}}}});
  newer.json()["comm_lib_version"] = "2.28";
  newer.json()["pg_config"]["0"]["ranks"] = {1, 0};
  EXPECT_EQ(ReadDump(newer.Text()).groups[0].members, (std::vector{Rank{0}, Rank{1}}));
}

TEST(FlightRecorder, WrongTypesAreNotThere) {
  json wrong = {
      {"version", 2}, {"pg_config", "none"}, {"pg_status", {{"x", 1}}}, {"entries", {1, "2", json::object()}}};
  const FlightRecorderDump dump = ReadDump(wrong.dump());
  EXPECT_FALSE(dump.has_entries);
  EXPECT_TRUE(dump.groups.empty() && dump.statuses.empty());
  EXPECT_EQ(dump.entries.size(), 1);
}

TEST(FlightRecorder, NumbersAndNamesAreJoinedByOrder) {
  DumpMaker maker;
  // In the order of numbers 10 comes after 9; in that of texts it does not.
  maker.Group(0, "0", {0, 1}, 1, 1).Group(9, "4", {0, 1}, 2, 2).Group(10, "31", {0, 1}, 3, 3);
  const auto joined = JoinGroups(ReadDump(maker.Text()));
  EXPECT_EQ(joined, (std::map<int64_t, std::string>{{0, "0"}, {9, "4"}, {10, "31"}}));
}

TEST(FlightRecorder, EntriesCorrectTheJoinAndWhatStaysOpenIsLeftOut) {
  DumpMaker maker;
  maker.Group(0, "0", {0, 1}, 1, 1).Group(2, "7", {0, 1}, 5, 4).Group(5, "9", {0, 1}, 3, 3);
  // One was made and never used: it has a name and no counters. By order all behind it would be shifted.
  maker.json()["pg_config"]["3"] = {{"name", "3"}, {"desc", ""}, {"ranks", "[0, 1]"}};
  EXPECT_TRUE(JoinGroups(ReadDump(maker.Text())).empty());
  maker.Entry(2, "7", 5, "nccl:all_reduce");
  const auto joined = JoinGroups(ReadDump(maker.Text()));
  EXPECT_EQ(joined, (std::map<int64_t, std::string>{{2, "7"}, {5, "9"}}))
      << "before 7 it is open which one number 0 is";
}

TEST(FlightRecorder, NamesThatAreNoNumbersAreJoinedByEntriesAlone) {
  DumpMaker maker;
  maker.Group(1, "mesh_dp", {0, 1}, 1, 1).Group(2, "a91c", {0, 1}, 2, 1).Entry(2, "a91c", 2, "nccl:all_reduce");
  EXPECT_EQ(JoinGroups(ReadDump(maker.Text())), (std::map<int64_t, std::string>{{2, "a91c"}}));
}

TEST(FlightRecorder, ABatchSpeaksForItsSends) {
  DumpMaker maker;
  maker.Group(0, "0", {0, 1}, 4, 3);
  const json of_batch = {{"is_p2p", true}, {"p2p_seq_id", 3}};
  json done = of_batch;
  done.update({{"state", "completed"}});
  maker.Entry(0, "0", 1, "nccl:send 0->1", of_batch).Entry(0, "0", 1, "nccl:recv 0<-1", of_batch);
  maker.Entry(0, "0", 1, "nccl:coalesced", done);
  const json open = {{"is_p2p", true}, {"p2p_seq_id", 4}};
  maker.Entry(0, "0", 1, "nccl:send 0->1", open).Entry(0, "0", 1, "nccl:coalesced", open);
  const FlightRecorderDump dump = ReadDump(maker.Text());
  std::vector<bool> is_done;
  for (const DumpEntry& entry : dump.entries) is_done.push_back(entry.is_done);
  EXPECT_EQ(is_done, (std::vector{true, true, true, false, true})) << "the send that is open stands for its batch";
}

TEST(FlightRecorder, OperationsAreKnownByManyNames) {
  const std::vector<std::pair<std::string_view, Function>> names = {
      {"nccl:_all_gather_base", Function::kAllGather},
      {"nccl:all_gather_into_tensor_coalesced", Function::kAllGather},
      {"nccl:_reduce_scatter_base", Function::kReduceScatter},
      {"nccl:all_reduce", Function::kAllReduce},
      {"nccl:allreduce_coalesced", Function::kAllReduce},
      {"nccl:all_reduce_barrier", Function::kBarrier},
      {"nccl:broadcast", Function::kBroadcast},
      {"nccl:_broadcast_oop", Function::kBroadcast},
      {"nccl:_reduce_oop", Function::kReduce},
      {"nccl:all_to_all", Function::kAllToAll},
      {"nccl:ALLTOALL_BASE", Function::kAllToAll},
      {"gloo:all_reduce", Function::kAllReduce},
      {"gloo:gather", Function::kGather},
      {"gloo:scatter", Function::kScatter},
      {"gloo:barrier", Function::kBarrier},
      {"nccl:send 3->0", Function::kSend},
      {"nccl:recv 0<-3", Function::kReceive},
      {"nccl:coalesced", Function::kOtherCollective},
      {"", Function::kOtherCollective},
  };
  for (const auto& [name, function] : names) EXPECT_EQ(FunctionOf(name), function) << name;
}

}  // namespace
}  // namespace aimaster::c4d
