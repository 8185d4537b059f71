#include "c4d/record_observation.h"

#include <gtest/gtest.h>

#include <deque>

#include "c4d/c4d_test_support.h"
#include "c4d/record_harness.h"

namespace aimaster::c4d {
namespace {

// A job whose ranks all are in one world. What they begin stays begun.
class World {
 public:
  explicit World(uint32_t size) : processes_(size), worlds_(size) {
    for (uint32_t rank = 0; rank < size; ++rank) worlds_[rank] = processes_[rank].JoinWorld(rank, size);
  }
  TestProcess& operator[](uint32_t rank) { return processes_[rank]; }
  uint32_t world(uint32_t rank) const { return worlds_[rank]; }

  void All(TestName name, int times = 1) {
    for (uint32_t rank = 0; rank < worlds_.size(); ++rank) processes_[rank].Complete(worlds_[rank], name, times);
  }
  // Waits in a call for something that has begun.
  void WaitFor(uint32_t rank, RecorderTicket ticket) {
    RecorderEnter(processes_[rank].recorder(), kTestWait);
    RecorderStart(processes_[rank].recorder(), ticket);
  }
  ObservedRecords Observe(Duration later = 14s) const {
    std::vector<RankRecord> records;
    for (uint32_t rank = 0; rank < worlds_.size(); ++rank) {
      records.push_back({.rank = Rank{rank}, .record = processes_[rank].Read(later)});
    }
    return ObserveRecords(records, static_cast<uint32_t>(worlds_.size()));
  }
  std::string Accused() const { return c4d::Accused(Observe().observation); }

 private:
  std::deque<TestProcess> processes_;
  std::vector<uint32_t> worlds_;
};

TEST(RecordObservation, AccusesWhoComputesWhileTheOthersWait) {
  World world(4);
  world.All(kTestAllReduce, 5);
  for (const uint32_t rank : {0u, 1u, 3u}) world[rank].Begin(world.world(rank), kTestAllReduce, kRecordBlocking);
  EXPECT_EQ(world.Accused(), "RankNonCommHang 2");
  const std::vector<Verdict> verdicts = FindHangs(world.Observe().observation, {});
  EXPECT_NE(Describe(verdicts).find("Number 6 in group MPI_COMM_WORLD"), std::string::npos) << Describe(verdicts);
  EXPECT_EQ(c4d::Accused(world.Observe(2s).observation), "");  // not yet
}

TEST(RecordObservation, AccusesWhoIsLeftInACollective) {
  World world(4);
  world.All(kTestAllReduce, 5);
  world[1].Begin(world.world(1), kTestAllReduce, kRecordBlocking);
  for (const uint32_t rank : {0u, 2u, 3u}) {
    world[rank].Complete(world.world(rank), kTestAllReduce);
    world[rank].Begin(world.world(rank), kTestAllReduce, kRecordBlocking);
  }
  EXPECT_EQ(world.Accused(), "RankCommHang 1");
}

TEST(RecordObservation, ASilentMessageAccusesWhoDoesNotSendIt) {
  World world(4);
  world.All(kTestAllReduce);
  world[0].Begin(world.world(0), kTestReceive, kRecordBlocking, 2);
  EXPECT_EQ(world.Accused(), "RankNonCommHang 2");
}

// Who has issued something and computes waits for nothing.
TEST(RecordObservation, WhatAProgramDoesNotAskForHoldsItUpInNothing) {
  World world(4);
  world.All(kTestAllReduce, 2);
  const RecorderTicket early = world[2].Begin(world.world(2), kTestReceive, 0, 0);
  world[2].Begin(world.world(2), kTestIbarrier, 0);
  for (const uint32_t rank : {0u, 1u, 3u}) {
    world.WaitFor(rank, world[rank].Begin(world.world(rank), kTestIbarrier, 0));
  }
  EXPECT_EQ(world.Accused(), "RankNonCommHang 2");
  // Once it asks for the message, it waits for who should send it; and that one waits for a barrier that has all.
  world.WaitFor(2, early);
  EXPECT_EQ(world.Accused().find("RankNonCommHang 2"), std::string::npos);
}

// All overlap a barrier with what they compute, and one has already seen its end: nobody hangs.
TEST(RecordObservation, AnEarlyBarrierIsNoHang) {
  World world(4);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const RecorderTicket ticket = world[rank].Begin(world.world(rank), kTestIbarrier, 0);
    if (rank == 0) RecorderEnd(world[rank].recorder(), ticket);
  }
  EXPECT_EQ(world.Accused(), "");
}

// A request that is never asked for, however old, blames nobody.
TEST(RecordObservation, AForgottenRequestBlamesNobody) {
  World world(4);
  for (uint32_t rank = 0; rank < 4; ++rank) world[rank].Begin(world.world(rank), kTestSend, 0, (rank + 1) % 4);
  world.All(kTestAllReduce, 3);
  EXPECT_EQ(world.Accused(), "");
  for (const uint32_t rank : {0u, 1u, 2u}) world[rank].Begin(world.world(rank), kTestAllReduce, kRecordBlocking);
  EXPECT_EQ(world.Accused(), "RankNonCommHang 3");
}

// Who is in a call that is not recorded is no culprit.
TEST(RecordObservation, ACallThatIsNotRecordedIsNoAbsence) {
  World world(4);
  world.All(kTestAllReduce, 3);
  for (const uint32_t rank : {0u, 1u, 3u}) world[rank].Begin(world.world(rank), kTestAllReduce, kRecordBlocking);
  world[2].Begin(RECORD_NONE, kTestFence, kRecordBlocking);
  EXPECT_EQ(world.Accused(), "");
}

TEST(RecordObservation, GroupsAreOneForAllTheirMembers) {
  World world(4);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const uint32_t members[] = {rank % 2, rank % 2 + 2};
    const uint32_t place =
        RecorderAddCommunicator(world[rank].recorder(), 77 + rank % 2, "halves", members, 2, rank / 2);
    if (rank != 3) world[rank].Begin(place, kTestAllReduce, kRecordBlocking);
  }
  const ObservedRecords observed = world.Observe();
  ASSERT_EQ(observed.observation.communicators.size(), 3u);
  EXPECT_EQ(observed.observation.communicators[1].name, "halves");
  EXPECT_EQ(observed.observation.communicators[2].name, "halves 4e");
  EXPECT_EQ(observed.observation.communicators[2].members, (std::vector{Rank{1}, Rank{3}}));
  EXPECT_EQ(observed.keys[2].id, 78u);
  EXPECT_EQ(c4d::Accused(observed.observation), "RankCommHang of group 0,2; RankNonCommHang 3");
}

// One member has finished the last operation of a group and freed it, the other is still in it.
TEST(RecordObservation, WhoFreesAGroupIsNotMissedInIt) {
  World world(2);
  const uint32_t members[] = {0, 1};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const uint32_t place = RecorderAddCommunicator(world[rank].recorder(), 5, "", members, 2, rank);
    if (rank == 1) {
      world[rank].Begin(place, kTestAllReduce, kRecordBlocking);
      continue;
    }
    world[rank].Complete(place, kTestAllReduce);
    RecorderRetireCommunicator(world[rank].recorder(), place);
  }
  EXPECT_EQ(world.Accused(), "RankCommHang 1");
  // And when it has made so many others since that the place was needed, nothing is said at all.
  for (int i = 0; i < 2 * kRecordCommunicators; ++i) {
    const uint32_t self = 0;
    RecorderRetireCommunicator(world[0].recorder(),
                               RecorderAddCommunicator(world[0].recorder(), 100 + i, "", &self, 1, 0));
  }
  EXPECT_EQ(world.Accused(), "");
}

TEST(RecordObservation, OfNobodysRecordNothingIsKnown) {
  World world(4);
  world.All(kTestAllReduce);
  std::vector<RankRecord> records;
  for (const uint32_t rank : {0u, 1u, 3u}) {
    world[rank].Begin(world.world(rank), kTestAllReduce, kRecordBlocking);
    records.push_back({.rank = Rank{rank}, .record = world[rank].Read(14s)});
  }
  const ObservedRecords observed = ObserveRecords(records, 4);
  EXPECT_FALSE(observed.observation.ranks[2].is_observed);
  const std::vector<Verdict> verdicts = FindHangs(observed.observation, {});
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].kind, VerdictKind::kNoProbeData);
  EXPECT_EQ(verdicts[0].ranks, std::vector{Rank{2}});
}

}  // namespace
}  // namespace aimaster::c4d
