// Which place of a job that hangs a person is shown first.
#include "stacks/groups.h"

#include <gtest/gtest.h>

#include "stacks/stacks_test_support.h"

namespace aimaster::stacks {
namespace {

const Frame& Innermost(const Capture& capture, const Group& group) {
  static Frame frame;
  return frame = FramesOf(capture, group.stack).back();
}

TEST(GroupsTest, TheRankThatIsAloneComesFirst) {
  const Capture capture = OneOf(8, 5);
  const Grouping grouping = GroupStacks(capture);
  EXPECT_EQ(grouping.groups[0].ranks.Text(), "5");
  EXPECT_EQ(grouping.groups[1].ranks.Text(), "0-4,6-7");
  EXPECT_EQ(grouping.groups[1].waits, Waits::kPeers);
  EXPECT_EQ(OneLine(capture, grouping), "rank 5 is alone at load_batch (train.py:41); 7 of 8 ranks wait for others");
}

// "2: load_batch (train.py:41)"; empty where nobody stands out.
std::string OutlierOf(const Capture& capture) {
  const std::optional<Outlier> outlier = FindOutlier(capture, GroupStacks(capture));
  return outlier ? outlier->ranks.Text() + ": " + outlier->where : "";
}

Capture OfMainThreads(const std::vector<std::vector<Frame>>& stacks) {
  CaptureBuilder builder;
  for (uint32_t rank = 0; rank < stacks.size(); ++rank)
    builder.Add(OfRank(rank), std::vector{MainThread(stacks[rank])});
  return builder.Take();
}

TEST(GroupsTest, WhoDoesNotWaitHoldsTheOthersUp) {
  EXPECT_EQ(OutlierOf(OneOf(8, 5)), "5: load_batch (train.py:41)");
  EXPECT_EQ(OutlierOf(OfMainThreads({InLoad()})), "0: load_batch (train.py:41)") << "a job of one rank";
  EXPECT_EQ(OutlierOf(OfMainThreads({InLoad(), InLoad(), InAllReduce(), InAllReduce()})),
            "0-1: load_batch (train.py:41)");
}

TEST(GroupsTest, NobodyHoldsTheOthersUpWhereAllDoTheSame) {
  EXPECT_EQ(OutlierOf(OfMainThreads({4, InAllReduce()})), "");
  EXPECT_EQ(OutlierOf(OfMainThreads({4, InLoad()})), "");
  EXPECT_EQ(OutlierOf(OfMainThreads({InLoad(), InLoad(), InLoad(), InAllReduce()})), "") << "most may wait unseen";
  EXPECT_EQ(OutlierOf(Capture{}), "");
}

TEST(GroupsTest, OfTwoThatAreEachAloneNobodyIsTheCulprit) {
  std::vector<Frame> elsewhere = InLoad();
  elsewhere[1].line = 99;
  const Capture capture = OfMainThreads({InLoad(), elsewhere});
  EXPECT_EQ(OutlierOf(capture), "");
  EXPECT_EQ(OneLine(capture, GroupStacks(capture)),
            "2 ranks are in 2 places, and none stands out: rank 0 is at load_batch (train.py:41)");
}

TEST(GroupsTest, WhatCouldNotBeHadIsSaidInTheSameLine) {
  CaptureBuilder builder;
  Origin origin = OfRank(0);
  origin.trouble = "no frames of Python";
  builder.Add(origin, std::vector{MainThread({Native("PyObject_Vectorcall", "python3.11")})});
  const Capture capture = builder.Take();
  EXPECT_EQ(OneLine(capture, GroupStacks(capture)),
            "rank 0 is at PyObject_Vectorcall (python3.11); no frames of Python");
}

TEST(GroupsTest, OfThoseThatAllWaitAMinorityElsewhereStandsOut) {
  std::vector<Frame> barrier = InAllReduce();
  barrier[1].line = 77;
  EXPECT_EQ(OutlierOf(OfMainThreads({InAllReduce(), barrier, InAllReduce(), InAllReduce()})), "1: step (train.py:77)");
  EXPECT_EQ(OutlierOf(OfMainThreads({InAllReduce(), barrier})), "") << "one of the two, and nobody knows which";
}

TEST(GroupsTest, OfTwoRanksTheOneThatWaitsForTheOtherComesLast) {
  for (const uint32_t culprit : {0u, 1u}) {
    const Capture capture = OneOf(2, culprit);
    EXPECT_EQ(GroupStacks(capture).groups[0].ranks.Text(), std::to_string(culprit));
  }
}

TEST(GroupsTest, AThreadInTheBackgroundThatOneRankHasIsNoCulprit) {
  const Capture capture = OneOf(8, 5);
  const Grouping grouping = GroupStacks(capture);
  ASSERT_EQ(grouping.groups.size(), 4u);
  EXPECT_EQ(Innermost(capture, grouping.groups[2]).function, "poll") << "rank 0's store, rare as it is";
  EXPECT_TRUE(grouping.groups[2].in_background);
  EXPECT_FALSE(grouping.groups[2].folded) << "not every rank has it";
}

TEST(GroupsTest, IdleThreadsThatEveryRankHasAreFolded) {
  const Grouping grouping = GroupStacks(OneOf(8, 5));
  EXPECT_TRUE(grouping.groups[3].folded);
  EXPECT_EQ(grouping.groups[3].waits, Waits::kWork);
}

TEST(GroupsTest, ThePlaceOfAllMainThreadsIsNeverFolded) {
  CaptureBuilder builder;
  for (uint32_t rank = 0; rank < 4; ++rank) builder.Add(OfRank(rank), std::vector{MainThread(InAllReduce())});
  const Capture capture = builder.Take();
  const Grouping grouping = GroupStacks(capture);
  ASSERT_EQ(grouping.groups.size(), 1u);
  EXPECT_FALSE(grouping.groups[0].folded);
  EXPECT_EQ(OneLine(capture, grouping), "all 4 ranks are at step (train.py:60)");
}

TEST(GroupsTest, NothingOfASingleRankIsFolded) {
  CaptureBuilder builder;
  builder.Add(OfRank(0), std::vector{MainThread(InLoad()), Background(InPool())});
  for (const Group& group : GroupStacks(builder.Take()).groups) EXPECT_FALSE(group.folded);
}

TEST(GroupsTest, ARankThatASignalHasStoppedIsToldFromItsPeersInTheSamePlace) {
  CaptureBuilder builder;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    std::vector<Frame> frames = InAllReduce();
    if (rank == 1) frames.push_back({.function = "stopped by a signal", .language = Language::kKernel});
    builder.Add(OfRank(rank), std::vector{MainThread(std::move(frames))});
  }
  const Capture capture = builder.Take();
  const Grouping grouping = GroupStacks(capture);
  EXPECT_EQ(grouping.groups[0].ranks.Text(), "1");
  EXPECT_EQ(grouping.groups[0].waits, Waits::kKernel);
  EXPECT_EQ(OneLine(capture, grouping),
            "rank 1 does not run: stopped by a signal, in step (train.py:60); 2 of 3 ranks wait for others");
}

TEST(GroupsTest, ADataLoaderThatIsStuckComesBeforeItsRankThatWaitsForIt) {
  const std::string torch = "/usr/lib/python3/dist-packages/torch/utils/data/";
  const std::vector<Frame> waits_for_loader = {kModule, Python("_get_data", torch + "dataloader.py", 1284),
                                               Python("poll", "/usr/lib/python3.11/multiprocessing/connection.py", 257),
                                               Native("poll")};
  const std::vector<Frame> idle_loader = {Python("_worker_loop", torch + "_utils/worker.py", 275),
                                          Python("get", "/usr/lib/python3.11/multiprocessing/queues.py", 113),
                                          Native("poll")};
  const std::vector<Frame> stuck_loader = {Python("_worker_loop", torch + "_utils/worker.py", 302),
                                           Python("__getitem__", "/home/me/data.py", 12), Native("read")};
  CaptureBuilder builder;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    builder.Add(OfRank(rank), std::vector{MainThread(rank == 2 ? waits_for_loader : InAllReduce())});
    for (int worker = 0; worker < 2; ++worker) {
      Origin child = OfRank(rank);
      child.is_child = true;
      child.pid += 100 + static_cast<uint32_t>(worker);
      builder.Add(child, std::vector{MainThread(rank == 2 && worker == 1 ? stuck_loader : idle_loader)});
    }
  }
  const Capture capture = builder.Take();
  const Grouping grouping = GroupStacks(capture);
  EXPECT_EQ(OneLine(capture, grouping),
            "a process of rank 2 is alone at __getitem__ (data.py:12); 3 of 4 ranks wait for others");
  EXPECT_EQ(grouping.groups[1].waits, Waits::kLoader);
  const Group& idle = grouping.groups.back();
  EXPECT_EQ(idle.waits, Waits::kWork);
  EXPECT_TRUE(idle.folded) << "every rank has a data loader that nobody asks";
}

TEST(GroupsTest, WhoHoldsTheInterpretersLockComesBeforeWhoWaitsForIt) {
  CaptureBuilder builder;
  builder.Add(OfRank(0), std::vector{MainThread(InAllReduce())});
  Thread holder{.id = 4, .name = "native", .holds_gil = true, .frames = {kModule, Native("crunch", "/home/me/ext.so")}};
  builder.Add(OfRank(1), std::vector{MainThread(InLoad()), holder});
  const Capture capture = builder.Take();
  EXPECT_EQ(Innermost(capture, GroupStacks(capture).groups[0]).function, "crunch");
}

TEST(GroupsTest, ARankWithoutAStackIsNamedAndCountsForNoOther) {
  CaptureBuilder builder;
  builder.Add(OfRank(0), std::vector{MainThread(InLoad())});
  Origin missing = OfRank(1);
  missing.trouble = "py-spy was refused";
  builder.Add(missing, {});
  const Grouping grouping = GroupStacks(builder.Take());
  EXPECT_EQ(grouping.without_stacks, std::vector<uint32_t>{1});
  EXPECT_EQ(grouping.asked.Text(), "0-1");
  EXPECT_EQ(grouping.answered.Text(), "0");
}

TEST(GroupsTest, ThePlaceOfAProgramInCIsItsOwnCodeAndNotTheLibrarys) {
  const std::vector<Frame> frames = {
      {.function = "main", .file = "barrier.c", .line = 20, .language = Language::kNative},
      Native("sleep"),
      Native("clock_nanosleep")};
  EXPECT_EQ(Describe(*PlaceOf(frames)), "main (barrier.c:20)");
  EXPECT_EQ(PlaceOf({}), nullptr);
}

TEST(GroupsTest, MpiAndNcclAreCollectivesToo) {
  EXPECT_EQ(WhatItWaitsFor(std::vector{Native("main", "a"), Native("PMPI_Barrier", "/usr/lib/libmpi.so")}),
            Waits::kPeers);
  EXPECT_EQ(WhatItWaitsFor(std::vector{Native("main", "a"), Native("ncclAllReduce", "libnccl.so")}), Waits::kPeers);
  EXPECT_EQ(WhatItWaitsFor(std::vector{Native("main", "a"), Native("wait4")}), Waits::kChild);
  EXPECT_EQ(WhatItWaitsFor({}), Waits::kNot);
}

}  // namespace
}  // namespace aimaster::stacks
