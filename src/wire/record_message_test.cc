#include "wire/record_message.h"

#include <gtest/gtest.h>

#include "c4d/record_harness.h"
#include "c4d/record_observation.h"

namespace aimaster {
namespace {

using namespace c4d;

v1::ProcessRecord OverTheWire(const v1::ProcessRecord& message) {
  v1::ProcessRecord received;
  EXPECT_TRUE(received.ParseFromString(message.SerializeAsString()));
  return received;
}

// What a verdict sees of a job whose rank 0 has this record.
std::string SeenOf(const Record& record) {
  const RankRecord rank{.rank = Rank{0}, .record = record};
  const ObservedRecords seen = ObserveRecords(std::span(&rank, 1), 4);
  const Observation& observation = seen.observation;
  std::string text;
  for (const Communicator& communicator : observation.communicators) {
    text += communicator.name + " of " + std::to_string(communicator.members.size()) + "\n";
  }
  for (const MemberState& state : observation.states) {
    text += std::to_string(state.issued) + " " + std::to_string(state.completed) + " " +
            std::to_string(state.idle.count()) + " " + std::to_string(state.operation_count) + "\n";
  }
  for (const Operation& operation : observation.operations) {
    text += std::to_string(operation.sequence) + " " + std::string(observation.Text(operation.name)) + " " +
            std::to_string(operation.count) + " " + std::string(observation.Text(operation.type)) + " " +
            std::string(Name(operation.function)) + " " + std::to_string(operation.age.count()) + " " +
            std::to_string(Value(operation.peer)) + "\n";
  }
  return text + std::to_string(observation.ranks[0].outside.count());
}

TEST(RecordMessage, AVerdictSeesTheSameInWhatIsSent) {
  TestProcess process;
  const uint32_t world = process.JoinWorld(0, 4);
  process.Complete(world, kTestAllReduce, 5);
  process.Begin(world, kTestAllReduce, kRecordBlocking);
  process.Begin(world, kTestReceive, 0, 3);
  RecorderEnter(process.recorder(), kTestFence);
  const Record record = process.Read(std::chrono::seconds(14));
  const v1::ProcessRecord message = OverTheWire(ToMessage(record));
  const auto received = FromMessage(message);
  ASSERT_TRUE(received);
  EXPECT_EQ(SeenOf(*received), SeenOf(record));
  EXPECT_EQ(received->world_rank, Rank{0});
  EXPECT_EQ(received->world_size, 4);
  EXPECT_NE(SeenOf(record).find("MPI_Allreduce"), std::string::npos) << SeenOf(record);
  EXPECT_LT(message.ByteSizeLong(), 500u) << "of half a megabyte";
}

// Each of these would lead a reader out of a table, or into a list without an end.
TEST(RecordMessage, WhatContradictsItselfIsRefused) {
  TestProcess process;
  const uint32_t world = process.JoinWorld(0, 4);
  process.Begin(world, kTestAllReduce, kRecordBlocking);
  RecorderEnter(process.recorder(), kTestWait);
  const v1::ProcessRecord good = ToMessage(process.Read());
  ASSERT_TRUE(FromMessage(good));
  const auto refuses = [&](auto spoil) {
    v1::ProcessRecord bad = good;
    spoil(bad);
    return !FromMessage(bad);
  };
  EXPECT_TRUE(refuses([](auto& bad) { bad.set_source(3); }));
  EXPECT_TRUE(refuses([](auto& bad) { bad.mutable_operations(0)->set_communicator(1); }));
  EXPECT_TRUE(refuses([](auto& bad) { bad.mutable_operations(0)->set_name(77); }));
  EXPECT_TRUE(refuses([](auto& bad) { bad.mutable_operations(0)->set_function(13); }));
  EXPECT_TRUE(refuses([](auto& bad) { bad.mutable_threads(0)->set_inside(77); }));
  EXPECT_TRUE(refuses([](auto& bad) { bad.mutable_communicators(0)->set_size(5); }));
  EXPECT_TRUE(refuses([](auto& bad) { bad.mutable_communicators(0)->set_rank(4); }));
  EXPECT_TRUE(refuses([](auto& bad) { bad.mutable_communicators(0)->set_size(0); }));
  EXPECT_TRUE(refuses([](auto& bad) { bad.set_world_rank(UINT32_MAX); }));
  EXPECT_TRUE(refuses([](auto& bad) { bad.mutable_communicators(0)->set_completed(9); }));
  EXPECT_TRUE(refuses([](auto& bad) { bad.mutable_communicators(0)->set_members(2, 1 << 30); }));
  EXPECT_TRUE(refuses([](auto& bad) { bad.mutable_communicators(0)->set_members(0, -1); }));
  EXPECT_TRUE(refuses([](auto& bad) { bad.mutable_communicators(0)->add_members(1); }));
}

}  // namespace
}  // namespace aimaster
