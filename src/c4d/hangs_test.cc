// Who is named, of small jobs in which something hangs, and how surely.
#include "c4d/hangs.h"

#include <gtest/gtest.h>

#include "c4d/c4d_test_support.h"

namespace aimaster::c4d {
namespace {

Operation Collective(uint64_t sequence, Function function, Duration age, uint64_t count = kUnknown) {
  return {.sequence = sequence, .count = count, .age = age, .function = function};
}
Operation Rooted(uint64_t sequence, Function function, uint32_t root, Duration age) {
  return {.sequence = sequence, .age = age, .peer = Rank{root}, .function = function};
}
Operation Send(uint32_t to, Duration age) { return {.age = age, .peer = Rank{to}, .function = Function::kSend}; }
Operation Receive(uint32_t from, Duration age) {
  return {.age = age, .peer = Rank{from}, .function = Function::kReceive};
}

TEST(HangsTest, WhoDoesNotComeIsNamedWithWhatWasCounted) {
  JobBuilder job(4);
  job.Group("world", {0, 1, 2, 3}).In(0, 8, 14s).In(1, 8, 15s).Out(2, 7).In(3, 8, 14s);
  job.Process(2).outside = 16s;
  const std::vector<Verdict> verdicts = FindHangs(job.Job(), {});
  EXPECT_EQ(
      Describe(verdicts),
      "Warning RankNonCommHang\n"
      "  Number 8 in group world: ranks 0-1,3 have issued it, and have waited for 15.0 s; rank 2 has not.\n"
      "  Rank 2 has completed all of the 7 collectives that it has issued there, and has nothing outstanding in any "
      "group: it is outside of communication.\n"
      "  Rank 2 has not entered or left any operation for 16.0 s.\n"
      "  3 ranks wait for that, directly or through others: ranks 0-1,3.\n");
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].ranks, std::vector{Rank{2}});
  EXPECT_EQ(verdicts[0].waiting, (std::vector{Rank{0}, Rank{1}, Rank{3}}));
  EXPECT_EQ(verdicts[0].since, 15s);
  EXPECT_EQ(verdicts[0].sequence, 8u);
  EXPECT_EQ(verdicts[0].communicator, 0u);
}

// Of a job in which rank 1 is outside and the other two have waited for it for so long.
std::vector<Verdict> OneOutside(Duration age) {
  JobBuilder job(3);
  job.Group("world", {0, 1, 2}).In(0, 8, age).Out(1, 7).In(2, 8, age);
  return FindHangs(job.Job(), {});
}
// Of a job in which all have been in one collective for so long.
std::vector<Verdict> AllInside(Duration age) {
  JobBuilder job(3);
  job.Group("world", {0, 1, 2}).In(0, 8, age).In(1, 8, age + 1s).In(2, 8, age);
  return FindHangs(job.Job(), {});
}

TEST(HangsTest, NothingIsSaidBeforeItsTime) {
  EXPECT_EQ(Accused(OneOutside(10s)), "");
  EXPECT_EQ(Accused(OneOutside(10s + 1ms)), "RankNonCommHang 1");
  EXPECT_EQ(Accused(AllInside(10s)), "") << "the last came 10 s ago";
  EXPECT_EQ(Accused(AllInside(11s)), "RankCommHang of group 0,1,2");
}

TEST(HangsTest, AHangInCommunicationBecomesAnErrorAndOneOutsideNever) {
  EXPECT_EQ(OneOutside(1h)[0].level, Level::kWarning);
  EXPECT_EQ(AllInside(179s)[0].level, Level::kWarning);
  EXPECT_EQ(AllInside(180s)[0].level, Level::kWarning);
  EXPECT_EQ(AllInside(181s)[0].level, Level::kError);
  EXPECT_EQ(OneOutside(kNoAge)[0].level, Level::kWarning) << "for how long is not known";
  EXPECT_EQ(OneOutside(kNoAge)[0].since, std::nullopt);
}

TEST(HangsTest, WhoMovesDoesNotHangWhateverWaitsForIt) {
  JobBuilder job(3);  // a receive for messages that may never come, beside a training that goes on
  job.Group("control", {0, 1}).Member(0, 0, 0, {Receive(1, 1h)}).Member(1, 0, 0);
  job.Group("world", {0, 1, 2}).In(0, 8, 10ms).Out(1, 7);
  job.Last().idle = 20ms;
  job.In(2, 8, 10ms);
  EXPECT_EQ(Accused(job.Job()), "");
}

TEST(HangsTest, WhereAllAreInItTheOneWhoseTransportIsBehindIsNamed) {
  JobBuilder job(4);
  job.Group("world", {0, 1, 2, 3});
  for (const uint32_t rank : {0, 1, 2, 3}) {
    job.In(rank, 8, 20s);
    job.Last().progress = rank == 2 ? 3 : 40;
  }
  EXPECT_EQ(Accused(job.Job()), "RankCommHang 2");
  job.Last().progress = kUnknown;
  EXPECT_EQ(Accused(job.Job()), "RankCommHang of group 0,1,2,3") << "rank 3 may be behind rank 2";
}

TEST(HangsTest, WhoseDeviceHasNotBegunIsStuckBefore) {
  JobBuilder job(3);
  job.Group("world", {0, 1, 2});
  for (const uint32_t rank : {0, 1, 2}) {
    job.In(rank, 8, 20s);
    job.LastOperation().start = rank == 1 ? Start::kNotStarted : Start::kStarted;
  }
  EXPECT_EQ(Accused(job.Job()), "RankNonCommHang 1");
  JobBuilder counted(3);  // the same, of a source that counts
  counted.Group("world", {0, 1, 2});
  for (const uint32_t rank : {0, 1, 2}) {
    counted.In(rank, 8, 20s);
    counted.Last().started = rank == 1 ? 7 : 8;
  }
  EXPECT_EQ(Accused(counted.Job()), "RankNonCommHang 1");
  for (MemberState& state : counted.Job().states) state.started = 8;
  EXPECT_EQ(Accused(counted.Job()), "RankCommHang of group 0,1,2");
}

TEST(HangsTest, WhoHasNotCompletedWhatOthersHaveIsNamed) {
  JobBuilder job(4);
  job.Group("world", {0, 1, 2, 3}).In(0, 9, 20s).In(1, 9, 20s).Member(2, 9, 7).In(3, 9, 20s);
  job.Job().states[2].idle = 30s;
  EXPECT_EQ(Accused(job.Job()), "RankCommHang 2");
}

TEST(HangsTest, WhoCallsSomethingElseIsNamedByTheMajority) {
  JobBuilder job(4);
  job.Group("world", {0, 1, 2, 3}).In(0, 8, 20s).In(1, 8, 20s, Function::kBarrier).In(2, 8, 20s).In(3, 8, 20s);
  const std::vector<Verdict> verdicts = FindHangs(job.Job(), {});
  EXPECT_EQ(Describe(verdicts),
            "Warning CollectiveMismatch\n"
            "  Number 8 in group world is not the same for all who issued it:\n"
            "  Ranks 0,2-3: AllReduce.\n"
            "  Rank 1: Barrier.\n"
            "  3 ranks wait for that, directly or through others: ranks 0,2-3.\n");
  EXPECT_EQ(Accused(verdicts), "CollectiveMismatch 1");
}

TEST(HangsTest, OfTwoWhoDifferNobodyKnowsWhoIsWrong) {
  JobBuilder job(2);
  job.Group("pair", {0, 1}).In(0, 8, 20s).In(1, 8, 20s, Function::kBarrier);
  EXPECT_EQ(Accused(job.Job()), "CollectiveMismatch of group 0,1");
}

// Of three ranks in the eighth collective, of which the last one's is another.
std::string Differing(const Operation& usual, const Operation& other) {
  JobBuilder job(3);
  job.Group("world", {0, 1, 2}).Member(0, 8, 7, {usual}).Member(1, 8, 7, {usual}).Member(2, 8, 7, {other});
  job.Job().texts = {"", "Float", "BFloat16", "a", "b"};
  return Accused(job.Job());
}

TEST(HangsTest, SizesTypesAndRootsMustAgreeWhereTheyHaveTo) {
  const Operation reduce = Collective(8, Function::kAllReduce, 20s, 100);
  EXPECT_EQ(Differing(reduce, Collective(8, Function::kAllReduce, 20s, 101)), "CollectiveMismatch 2");
  EXPECT_EQ(Differing(reduce, Collective(8, Function::kAllReduce, 20s)), "RankCommHang of group 0,1,2")
      << "not told is no difference";
  Operation floats = reduce, halves = reduce;
  floats.type = 1;
  halves.type = 2;
  EXPECT_EQ(Differing(floats, halves), "CollectiveMismatch 2");
  EXPECT_EQ(Differing(Rooted(8, Function::kBroadcast, 0, 20s), Rooted(8, Function::kBroadcast, 1, 20s)),
            "CollectiveMismatch 2");
  EXPECT_EQ(Differing(Collective(8, Function::kAllToAll, 20s, 100), Collective(8, Function::kAllToAll, 20s, 7)),
            "RankCommHang of group 0,1,2");
  Operation a = Collective(8, Function::kOtherCollective, 20s), b = a;
  a.name = 3;
  b.name = 4;
  EXPECT_EQ(Differing(a, b), "CollectiveMismatch 2");
}

TEST(HangsTest, WhereSomebodyIsMissingSizesAreNotToBlame) {
  JobBuilder job(4);
  job.Group("world", {0, 1, 2, 3})
      .Member(0, 8, 7, {Collective(8, Function::kAllReduce, 20s, 100)})
      .Member(1, 8, 7, {Collective(8, Function::kAllReduce, 20s, 101)})
      .Out(2, 7)
      .Member(3, 8, 7, {Collective(8, Function::kAllReduce, 20s, 100)});
  EXPECT_EQ(Accused(job.Job()), "RankNonCommHang 2");
}

TEST(HangsTest, WhileTheRootHasNotComeNobodyElseMatters) {
  JobBuilder job(4);
  job.Group("world", {0, 1, 2, 3})
      .Out(0, 7)
      .Out(1, 7)
      .Member(2, 8, 7, {Rooted(8, Function::kBroadcast, 0, 20s)})
      .Member(3, 8, 7, {Rooted(8, Function::kBroadcast, 0, 20s)});
  EXPECT_EQ(Accused(job.Job()), "RankNonCommHang 0");
}

TEST(HangsTest, WhoDoesNotReceiveHoldsUpWhoSends) {
  JobBuilder job(2);
  job.Group("pipe", {0, 1}).Member(0, 0, 0, {Send(1, 20s)}).Out(1, 0);
  const std::vector<Verdict> verdicts = FindHangs(job.Job(), {});
  EXPECT_EQ(Describe(verdicts),
            "Warning RankNonCommHang\n"
            "  Send in group pipe: rank 0 issued it 20.0 s ago, and rank 1 has not issued its part.\n"
            "  Rank 1 has nothing outstanding in any group: it is outside of communication.\n"
            "  1 rank waits for that, directly or through others: rank 0.\n");
}

TEST(HangsTest, WhoMayHaveReceivedSinceAndGoneIsNotNamed) {
  JobBuilder job(3);  // what rank 0 sends last has come, its device has lost that, and rank 1 is done
  job.Group("pipe", {0, 1, 2}).Member(0, 0, 0, {Send(1, 20s)}).Out(1, 0);
  job.Last().idle = 19s;
  job.Out(2, 0);
  EXPECT_EQ(Accused(job.Job()), "");
  job.Job().states[1].idle = 21s;
  EXPECT_EQ(Accused(job.Job()), "RankNonCommHang 1") << "it has done nothing since";
  job.Job().states[1].idle = 19s;
  job.Job().states.pop_back();
  job.Member(2, 0, 0, {Receive(1, 20s)});
  EXPECT_EQ(Accused(job.Job()), "RankNonCommHang 1") << "two do not lose it at once";
}

TEST(HangsTest, WhatIsCalledAndNotBegunIsNoWait) {
  JobBuilder job(3);  // rank 1 computes for a long time, and the others have called what comes next long ago
  job.Group("world", {0, 1, 2}).In(0, 8, 60s).In(1, 8, 60s).In(2, 8, 60s);
  for (Operation& operation : job.Job().operations) operation.start = Start::kNotStarted;
  EXPECT_EQ(Accused(job.Job()), "");
  job.Job().operations[0].start = Start::kStarted;
  job.Job().states[0].idle = 5s;
  EXPECT_EQ(Accused(job.Job()), "") << "its device has begun 5 s ago, at the earliest that is known";
  job.Job().states[0].idle = 11s;
  EXPECT_EQ(Accused(job.Job()), "RankNonCommHang 1,2");
}

TEST(HangsTest, NobodyTrailsForLongerThanOthersHaveCompletedIt) {
  JobBuilder job(4);  // the states of ranks 0 and 1 were read a moment before a long barrier ended
  job.Group("world", {0, 1, 2, 3}).In(0, 8, 90s).Out(1, 8).Out(2, 8).Out(3, 8);
  for (MemberState& state : job.Job().states) state.idle = 200ms;
  job.Job().states[0].idle = 90s;
  EXPECT_EQ(Accused(job.Job()), "");
  job.Job().states[1].idle = 15s;
  EXPECT_EQ(Accused(job.Job()), "RankCommHang 0");
}

TEST(HangsTest, AlongAPipelineOfDevicesThePairThatHasBegunIsNamed) {
  JobBuilder job(4);  // 2 waits for a send of 1, which is in its transfer with 0
  const auto start = [](Operation operation, Start started) {
    operation.start = started;
    return operation;
  };
  job.Group("pipe", {0, 1, 2, 3})
      .Member(0, 0, 0, {start(Send(1, 20s), Start::kStarted)})
      .Member(1, 0, 0, {start(Receive(0, 30s), Start::kStarted), start(Send(2, 30s), Start::kNotStarted)})
      .Member(2, 0, 0, {start(Receive(1, 25s), Start::kStarted)})
      .Out(3, 0);
  EXPECT_EQ(Accused(job.Job()), "RankCommHang of group 0,1");
}

TEST(HangsTest, AlongAPipelineTheLastOfTheChainIsNamed) {
  JobBuilder job(4);
  job.Group("pipe", {0, 1, 2, 3})
      .Member(0, 0, 0, {Receive(1, 20s)})
      .Member(1, 0, 0, {Receive(2, 21s)})
      .Member(2, 0, 0, {Receive(3, 22s)})
      .Out(3, 0);
  EXPECT_EQ(Accused(job.Job()), "RankNonCommHang 3");
}

TEST(HangsTest, ATransferThatDoesNotEndHasTwoSides) {
  JobBuilder job(3);
  job.Group("pipe", {0, 1, 2})
      .Member(0, 0, 0, {Send(1, 20s)})
      .Member(1, 0, 0, {Receive(0, 30s)})
      .Member(2, 0, 0, {Receive(1, 19s)});
  EXPECT_EQ(Accused(job.Job()), "RankCommHang of group 0,1");
}

TEST(HangsTest, GroupsEnteredInAnotherOrderWaitForEachOther) {
  JobBuilder job(3);
  job.Group("a", {0, 1}).In(0, 3, 20s).Out(1, 2);
  job.Group("b", {1, 2}).In(1, 5, 20s).Out(2, 4);
  job.Group("c", {0, 2}).Out(0, 6).In(2, 7, 20s);
  const std::vector<Verdict> verdicts = FindHangs(job.Job(), {});
  EXPECT_EQ(Describe(verdicts),
            "Warning CyclicWait\n"
            "  Ranks 0-2 wait for each other in a circle, and for nobody outside of it.\n"
            "  Rank 0 waits in AllReduce 3 in group a.\n"
            "  Rank 1 waits in AllReduce 5 in group b.\n"
            "  Rank 2 waits in AllReduce 7 in group c.\n");
}

TEST(HangsTest, OfTwoQueuesInAnotherOrderNeitherGetsOn) {
  JobBuilder job(2);  // all have issued everything; each device is at what comes second for the other
  job.Group("a", {0, 1}).In(0, 3, 21s).In(1, 3, 20s);
  job.Group("b", {0, 1}).In(0, 5, 20s).In(1, 5, 21s);
  EXPECT_EQ(Accused(job.Job()), "CyclicWait of group 0,1");
}

TEST(HangsTest, WhoOfNothingIsKnownIsNobodysCulprit) {
  JobBuilder job(3);
  job.Group("world", {0, 1, 2}).In(0, 8, 20s).In(2, 8, 20s);
  job.Process(1).is_observed = false;
  const std::vector<Verdict> verdicts = FindHangs(job.Job(), {});
  EXPECT_EQ(
      Describe(verdicts),
      "Warning NoProbeData\n"
      "  Nothing is known of rank 1, as in AllReduce 8 in group world, and ranks 0,2 wait for nobody else: who hangs "
      "can't be told from here.\n");
}

TEST(HangsTest, WhoseProcessHasEndedIsToldByOthers) {
  JobBuilder job(3);
  job.Group("world", {0, 1, 2}).In(0, 8, 20s).Out(1, 7).In(2, 8, 20s);
  job.Process(1).is_alive = false;
  EXPECT_EQ(Accused(job.Job()), "");
  job.Job().states[1].issued = 8;
  EXPECT_EQ(Accused(job.Job()), "") << "it ended in the middle of it";
}

TEST(HangsTest, WhoHasNotBeenSeenInANewGroupHasYetToCome) {
  JobBuilder job(3);
  job.Group("world", {0, 1, 2}).Out(0, 7).Out(1, 7).Out(2, 7);
  job.Group("new", {0, 1, 2}).In(0, 1, 20s).In(2, 1, 20s);
  EXPECT_EQ(Accused(job.Job()), "RankNonCommHang 1");
  job.Job().states[3].completed = 5;  // they have been through five together: its part in them is lost
  job.Job().states[3].issued = 6;
  job.Job().states[4] = job.Job().states[3];
  job.Job().states[4].rank = Rank{2};
  EXPECT_EQ(Accused(job.Job()), "");
}

TEST(HangsTest, ReceivesPostedInAdvanceAreNoCircle) {
  JobBuilder job(3);
  job.Group("world", {0, 1, 2})
      .Member(0, 8, 7, {Receive(1, 60s), Collective(8, Function::kAllReduce, 20s)})
      .Member(1, 8, 7, {Receive(0, 60s), Collective(8, Function::kAllReduce, 20s)})
      .Out(2, 7);
  EXPECT_EQ(Accused(job.Job()), "RankNonCommHang 2");
}

TEST(HangsTest, AnOperationWhoseEndTheProgramHasNotAskedForIsNoHang) {
  JobBuilder job(4);  // ranks 0 and 1 have taken the end of a reduction, 2 has not yet asked, and all wait for 3
  job.Group("pair", {0, 1, 2}).Out(0, 5).Out(1, 5).In(2, 5, 30s);
  job.Group("world", {0, 1, 2, 3}).In(0, 8, 20s).In(1, 8, 20s).In(2, 8, 20s).Out(3, 7);
  EXPECT_EQ(Accused(job.Job()), "RankNonCommHang 3");
}

TEST(HangsTest, OneFailureOfManyDoesNotFillAPage) {
  constexpr uint32_t kPairs = 500;
  JobBuilder job(2 * kPairs);
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    job.Group(std::to_string(pair), {2 * pair, 2 * pair + 1}).In(2 * pair, 8, 20s).In(2 * pair + 1, 8, 20s);
  }
  const std::vector<Verdict> verdicts = FindHangs(job.Job(), {});
  EXPECT_LE(verdicts.size(), 61u);
  EXPECT_EQ(AllAccused(verdicts).size(), 2 * kPairs);
}

TEST(HangsTest, OfNothingNothingIsSaid) {
  EXPECT_EQ(Accused(Observation{}), "");
  EXPECT_EQ(Accused(JobBuilder(4).Job()), "");
}

TEST(HangTimingTest, AnErrorThatIsPutOffForEverIsNoneAtOnce) {
  EXPECT_EQ((HangTiming{.timeout = 10s, .times = 18}.error_after()), 3min);
  EXPECT_EQ((HangTiming{.timeout = 1'000'000'000s, .times = 1'000'000}.error_after()), Duration::max());
}

}  // namespace
}  // namespace aimaster::c4d
