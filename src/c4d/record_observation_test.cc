#include "c4d/record_observation.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>

#include "c4d/c4d_test_support.h"
#include "c4d/record_harness.h"

namespace aimaster::c4d {
namespace {

// A job whose ranks all are in one world. What they begin stays begun.
class World {
 public:
  explicit World(uint32_t size, ::RecordSource source = kRecordMpi) : worlds_(size) {
    for (uint32_t rank = 0; rank < size; ++rank) worlds_[rank] = processes_.emplace_back(source).JoinWorld(rank, size);
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

// Gloo works on while the program computes: what a rank has issued there, the others have from it.
TEST(RecordObservation, WhatIsIssuedWithTorchIsOutstandingWhoeverAsksForIt) {
  World world(4, kRecordTorch);
  world.All(kTestAllReduce, 2);
  world[1].Begin(world.world(1), kTestAllReduce, 0);
  for (const uint32_t rank : {0u, 3u}) world.WaitFor(rank, world[rank].Begin(world.world(rank), kTestAllReduce, 0));
  EXPECT_EQ(world.Accused(), "RankNonCommHang 2");
}

// To make a group takes all, and whoever is in it has not stayed away.
TEST(RecordObservation, WhoMakesAGroupIsNotAbsent) {
  World world(4, kRecordTorch);
  world.All(kTestAllReduce, 2);
  world[1].Begin(RECORD_NONE, kTestFence, kRecordBlocking);
  for (const uint32_t rank : {0u, 2u, 3u}) {
    world.WaitFor(rank, world[rank].Begin(world.world(rank), kTestAllReduce, 0));
  }
  EXPECT_EQ(world.Accused(), "");
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

// A job whose ranks know of a communicator what NCCL tells them: their own rank in it.
class DeviceJob {
 public:
  explicit DeviceJob(uint32_t size) {
    for (uint32_t rank = 0; rank < size; ++rank) processes_.emplace_back(kRecordNccl);
  }
  TestProcess& operator[](uint32_t rank) { return processes_[rank]; }

  // Its members in the order of their ranks in it; `size` 0: it is not told.
  void Join(uint64_t id, const std::vector<uint32_t>& members, uint32_t size) {
    for (uint32_t i = 0; i < members.size(); ++i) {
      Recorder* recorder = processes_[members[i]].recorder();
      places_[{id, members[i]}] = RecorderAddCommunicator(recorder, id, "", nullptr, size, i);
    }
  }
  void Join(uint64_t id, const std::vector<uint32_t>& members) {
    Join(id, members, static_cast<uint32_t>(members.size()));
  }
  void Begin(uint64_t id, uint32_t rank, bool is_started) {
    const RecorderTicket ticket = processes_[rank].Begin(places_.at({id, rank}), kTestAllReduce, 0);
    if (is_started) RecorderStart(processes_[rank].recorder(), ticket);
  }
  void Send(uint64_t id, uint32_t rank, uint32_t peer, TestName name = kTestSend) {
    RecorderStart(processes_[rank].recorder(), processes_[rank].Begin(places_.at({id, rank}), name, 0, peer));
  }
  void Lose(uint32_t rank) { lost_.insert(rank); }

  Observation Observe() const {
    std::vector<RankRecord> records;
    for (uint32_t rank = 0; rank < processes_.size(); ++rank) {
      if (!lost_.contains(rank)) records.push_back({.rank = Rank{rank}, .record = processes_[rank].Read(14s)});
    }
    return ObserveRecords(records, static_cast<uint32_t>(processes_.size())).observation;
  }
  std::string Accused() const { return c4d::Accused(Observe()); }

 private:
  std::deque<TestProcess> processes_;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> places_;
  std::set<uint32_t> lost_;
};

TEST(RecordObservation, MembersAreThoseWhoSaySo) {
  DeviceJob job(4);
  job.Join(77, {3, 1, 2});
  job.Begin(77, 1, true);
  job.Begin(77, 2, false);
  job.Begin(77, 3, true);
  const Observation observed = job.Observe();
  ASSERT_EQ(observed.communicators.size(), 1u);
  EXPECT_EQ(observed.communicators[0].members, (std::vector{Rank{1}, Rank{2}, Rank{3}}));
  EXPECT_EQ(c4d::Accused(observed), "RankNonCommHang 2");
}

TEST(RecordObservation, PeersAreFoundByTheirRankInTheCommunicator) {
  DeviceJob job(4);
  job.Join(77, {3, 1, 2});
  job.Send(77, 1, 0, kTestReceive);
  EXPECT_EQ(job.Accused(), "RankNonCommHang 3");
}

TEST(RecordObservation, WhoHasNoRecordIsAMemberAllTheSame) {
  DeviceJob job(4);
  job.Join(77, {0, 1, 2, 3});
  for (const uint32_t rank : {0u, 1u, 3u}) job.Begin(77, rank, true);
  job.Lose(2);
  const std::vector<Verdict> verdicts = FindHangs(job.Observe(), {});
  ASSERT_EQ(verdicts.size(), 1u) << Describe(verdicts);
  EXPECT_EQ(verdicts[0].kind, VerdictKind::kNoProbeData);
  EXPECT_EQ(verdicts[0].ranks, std::vector{Rank{2}});
}

// Where several are missing, those that fit between the others.
TEST(RecordObservation, WhoHasNoRecordIsFoundBetweenTheOthers) {
  DeviceJob job(8);
  job.Join(70, {0, 2, 4, 6});
  job.Join(71, {1, 3, 5, 7});
  for (const uint32_t rank : {0u, 4u, 6u}) job.Begin(70, rank, true);
  for (const uint32_t rank : {2u, 3u}) job.Lose(rank);
  const Observation observed = job.Observe();
  ASSERT_EQ(observed.communicators.size(), 2u);
  EXPECT_EQ(observed.communicators[0].members, (std::vector{Rank{0}, Rank{2}, Rank{4}, Rank{6}}));
  EXPECT_EQ(observed.communicators[1].members, (std::vector{Rank{1}, Rank{3}, Rank{5}, Rank{7}}));
  EXPECT_EQ(c4d::Accused(observed), "");
}

TEST(RecordObservation, AGroupWhoseMembersCanNotBeToldAccusesNobody) {
  DeviceJob job(8);
  job.Join(70, {0, 2, 3, 7});
  job.Join(71, {0, 1, 6});
  for (const uint32_t rank : {0u, 7u}) job.Begin(70, rank, true);
  for (const uint32_t rank : {2u, 3u, 6u}) job.Lose(rank);
  // Rank 0 waits where nobody looks, so it is not missed in the other group.
  job.Begin(71, 1, true);
  EXPECT_EQ(job.Accused(), "");
}

// A rank that has a record and has not come to the communicator yet is not put into it by guess.
TEST(RecordObservation, WhoHasARecordIsNoMemberByGuess) {
  DeviceJob job(6);
  job.Join(77, {0, 1, 2});
  for (const uint32_t rank : {0u, 2u}) job.Begin(77, rank, true);
  job.Lose(1);
  job.Join(78, {3, 4, 5}, 4);
  for (const uint32_t rank : {3u, 4u, 5u}) job.Begin(78, rank, true);
  const Observation observed = job.Observe();
  EXPECT_EQ(observed.communicators[0].members, (std::vector{Rank{0}, Rank{1}, Rank{2}}));
  EXPECT_EQ(c4d::Accused(observed), "");
}

TEST(RecordObservation, TwoWhoClaimTheSamePlaceAccuseNobody) {
  DeviceJob job(4);
  job.Join(77, {0, 1});
  job.Join(77, {2, 1});
  job.Begin(77, 0, true);
  EXPECT_EQ(job.Accused(), "");
}

TEST(RecordObservation, WithoutAnIdGroupsAreNotTakenForOne) {
  DeviceJob job(4);
  job.Join(0, {0, 1, 2, 3});
  for (const uint32_t rank : {0u, 1u, 3u}) job.Begin(0, rank, true);
  EXPECT_EQ(job.Accused(), "");
  // And who waits in such a one is not missed elsewhere.
  job.Join(77, {0, 1, 2, 3});
  job.Begin(77, 3, true);
  EXPECT_EQ(job.Accused(), "RankNonCommHang 2");
}

TEST(RecordObservation, ASizeThatIsNotToldIsThatOfThoseWhoCame) {
  DeviceJob job(4);
  job.Join(77, {2, 0, 1}, 0);
  for (const uint32_t rank : {0u, 2u}) job.Begin(77, rank, true);
  const Observation observed = job.Observe();
  ASSERT_EQ(observed.communicators.size(), 1u);
  EXPECT_EQ(observed.communicators[0].members, (std::vector{Rank{0}, Rank{1}, Rank{2}}));
  EXPECT_EQ(c4d::Accused(observed), "RankNonCommHang 1");
}

// More messages than a record lists: the other side of one may be among those.
TEST(RecordObservation, MessagesThatAreNotListedMayBeTheOtherSide) {
  DeviceJob job(2);
  job.Join(77, {0, 1});
  const RecorderOperation unlisted{
      .peer = 0, .flags = kRecordPointToPoint, .name = kTestSend, .function = kRecordSend, .is_unlisted = true};
  RecorderBegin(job[1].recorder(), &unlisted);
  job.Send(77, 0, 1, kTestReceive);
  EXPECT_EQ(job.Accused(), "");
}

TEST(RecordObservation, TwoWorldsOfOneNameAreNotCompared) {
  TestProcess parent, child;
  const uint32_t large = parent.JoinWorld(0, 4), small = child.JoinWorld(1, 2);
  parent.Complete(large, kTestAllReduce, 5);
  parent.Begin(large, kTestAllReduce, kRecordBlocking);
  child.Complete(small, kTestAllReduce, 2);
  const std::vector<RankRecord> records{{.rank = Rank{0}, .record = parent.Read(14s)},
                                        {.rank = Rank{1}, .record = child.Read(14s)}};
  for (const Verdict& verdict : FindHangs(ObserveRecords(records, 4).observation, {})) {
    EXPECT_EQ(verdict.kind, VerdictKind::kNoProbeData);
  }
}

}  // namespace
}  // namespace aimaster::c4d
