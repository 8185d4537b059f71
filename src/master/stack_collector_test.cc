// The stacks of a job of four ranks on two nodes, put together.
#include "master/stack_collector.h"

#include <gtest/gtest.h>

#include "journal/stack_files.h"
#include "journal/temporary_directory.h"
#include "master/stack_files.h"
#include "stacks/document.h"
#include "stacks/groups.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;

class StackCollectorTest : public testing::Test {
 protected:
  StackCollectorTest() {
    job.spec.timing.stack_timeout = 10s;
    for (uint32_t i = 0; i < 4; ++i) {
      job.instances.push_back({.name = "w-" + std::to_string(i),
                               .first_rank = Rank{i},
                               .ranks = 1,
                               .node = NodeIndex{i / 2},
                               .live = true});
    }
    job.rank_ended.assign(4, false);
    for (uint32_t i = 0; i < 2; ++i) job.nodes[NodeIndex{i}].name = "node-" + std::to_string(i);
    collector.Begin(now, {7, "a test"}, job);
  }

  // What the agent of a node sends.
  static v1::StacksCaptured OfNode(uint32_t node, uint32_t capture = 7) {
    stacks::CaptureBuilder builder;
    for (uint32_t rank = 2 * node; rank < 2 * node + 2; ++rank) {
      const stacks::Thread thread{.name = "MainThread",
                                  .frames = {{.function = rank == 1 ? "load" : "step", .file = "train.py", .line = 7}}};
      builder.Add({.node = "node-" + std::to_string(node), .instance = "w-" + std::to_string(rank), .rank = rank},
                  std::vector{thread});
    }
    v1::StacksCaptured report;
    report.set_capture(capture);
    report.set_document(stacks::FormatDocument(builder.Take()));
    return report;
  }

  JobState job;
  Moment now{Monotonic{1h}, Wall{24h}};
  StackCollector collector;
};

TEST_F(StackCollectorTest, IsDoneWhenAllNodesHaveAnswered) {
  collector.Add(NodeIndex{1}, OfNode(1));
  EXPECT_FALSE(collector.TakeWhenDue(now.monotonic));
  collector.Add(NodeIndex{0}, OfNode(0));
  const auto capture = collector.TakeWhenDue(now.monotonic);
  ASSERT_TRUE(capture);
  EXPECT_EQ(capture->number, 7u);
  EXPECT_EQ(capture->reason, "a test");
  EXPECT_EQ(SummarizeStacks(*capture, "p", GetRanksOfInstances(job)),
            (StacksCaptured{7, 4, 4, "p", "rank 1 is alone at load (train.py:7)", {Rank{1}}, "load (train.py:7)"}));
  EXPECT_FALSE(collector.deadline()) << "it is over";
  EXPECT_FALSE(collector.TakeWhenDue(now.monotonic + 1h));
}

TEST_F(StackCollectorTest, WaitsNoLongerThanItsShareOfTheTime) {
  ASSERT_TRUE(collector.deadline());
  EXPECT_LT(*collector.deadline(), now.monotonic + 10s) << "what is left is for storing it";
  EXPECT_LT(Duration(StackTimeOfTools(job)), *collector.deadline() - now.monotonic);
  collector.Add(NodeIndex{0}, OfNode(0));
  const auto capture = collector.TakeWhenDue(*collector.deadline());
  ASSERT_TRUE(capture);
  const stacks::Grouping grouping = stacks::GroupStacks(*capture);
  EXPECT_EQ(grouping.asked.Text(), "0-3");
  EXPECT_EQ(grouping.answered.Text(), "0-1");
  const auto& missing = capture->processes[grouping.without_stacks.at(0)];
  EXPECT_NE(capture->Text(missing.trouble).find("did not answer within --stack-timeout"), std::string::npos);
}

TEST_F(StackCollectorTest, ALostNodeIsNotWaitedFor) {
  collector.Add(NodeIndex{0}, OfNode(0));
  collector.Lose(NodeIndex{1}, "its node was lost: power\n");
  const auto capture = collector.TakeWhenDue(now.monotonic);
  ASSERT_TRUE(capture);
  EXPECT_EQ(SummarizeStacks(*capture, "", {}).ranks_answered, 2u);
}

TEST_F(StackCollectorTest, WhatIsSaidTwiceOrAboutAnotherCaptureCountsOnceOrNot) {
  collector.Add(NodeIndex{0}, OfNode(0, 6));
  collector.Add(NodeIndex{0}, OfNode(0));
  collector.Add(NodeIndex{0}, OfNode(0));
  collector.Add(NodeIndex{9}, OfNode(0));
  EXPECT_FALSE(collector.TakeWhenDue(now.monotonic));
  collector.Add(NodeIndex{1}, OfNode(1));
  EXPECT_EQ(collector.TakeWhenDue(now.monotonic)->processes.size(), 4u);
}

TEST_F(StackCollectorTest, RubbishFromOneNodeCostsThatNodeAlone) {
  v1::StacksCaptured rubbish;
  rubbish.set_capture(7);
  rubbish.set_document("{\"version\":1}");
  collector.Add(NodeIndex{1}, rubbish);
  collector.Add(NodeIndex{0}, OfNode(0));
  const auto capture = collector.TakeWhenDue(now.monotonic);
  ASSERT_TRUE(capture);
  EXPECT_EQ(SummarizeStacks(*capture, "", {}).ranks_answered, 2u);
  EXPECT_EQ(SummarizeStacks(*capture, "", {}).ranks_asked, 4u);
}

TEST_F(StackCollectorTest, RanksThatHaveEndedAreNotAskedFor) {
  job.rank_ended[3] = true;
  collector.Begin(now, {8, "again"}, job);
  EXPECT_EQ(SummarizeStacks(*collector.TakeWhenDue(*collector.deadline()), "", {}).ranks_asked, 3u);
}

// Each instance has a rank that is a launcher, with two of its own beneath it.
TEST_F(StackCollectorTest, WhoIsBeneathALauncherBelongsToTheRankThatStartedIt) {
  const auto culprits = [this](std::vector<std::pair<std::string, uint32_t>> alone) {
    stacks::CaptureBuilder builder;
    for (uint32_t rank = 0; rank < 8; ++rank) {
      const std::pair<std::string, uint32_t> self{"w-" + std::to_string(rank / 2), rank};
      const bool is_alone = std::ranges::find(alone, self) != alone.end();
      const stacks::Thread thread{.name = "MainThread", .frames = {{.function = is_alone ? "load" : "step"}}};
      builder.Add({.node = "n", .instance = self.first, .rank = rank}, std::vector{thread});
    }
    return SummarizeStacks(builder.Take(), "", GetRanksOfInstances(job)).culprits;
  };
  EXPECT_EQ(culprits({{"w-3", 7}}), std::vector{Rank{3}}) << "the job has no rank 7";
  EXPECT_EQ(culprits({{"w-1", 3}}), std::vector{Rank{1}}) << "the job's rank 3 is another one";
  EXPECT_EQ(culprits({{"w-1", 2}, {"w-1", 3}}), std::vector{Rank{1}});
  EXPECT_EQ(culprits({{"w-0", 0}, {"w-2", 5}}), (std::vector{Rank{0}, Rank{2}}));
  job.instances[1].ranks = 2;
  EXPECT_EQ(culprits({{"w-1", 3}}), std::vector<Rank>{}) << "whose of the two it is, nothing says";
}

// Where mpirun is started on each node, there are two ranks 0.
TEST_F(StackCollectorTest, OfTwoThatHaveTheSameNumberTheOneThatIsThereIsToBlame) {
  stacks::CaptureBuilder builder;
  for (uint32_t i = 0; i < 8; ++i) {
    const stacks::Thread thread{.name = "MainThread", .frames = {{.function = i == 4 ? "load" : "step"}}};
    builder.Add({.node = "n", .instance = "w-" + std::to_string(i / 2), .rank = i % 2 + 4 * (i / 4)},
                std::vector{thread});
  }
  builder.Add({.node = "n", .instance = "w-0", .rank = 4},
              std::vector{stacks::Thread{.name = "MainThread", .frames = {{.function = "step"}}}});
  EXPECT_EQ(SummarizeStacks(builder.Take(), "", GetRanksOfInstances(job)).culprits, std::vector{Rank{2}});
}

TEST_F(StackCollectorTest, TheLastFewCapturesAreKept) {
  const TemporaryDirectory directory;
  stacks::Capture capture;
  for (capture.number = 1; capture.number <= kStackFilesKept + 3; ++capture.number) {
    EXPECT_EQ(WriteStacks(directory.path(), capture, {}).path, StackFileName(capture.number));
  }
  EXPECT_FALSE(std::filesystem::exists(directory.path() / StackFileName(3)));
  EXPECT_TRUE(std::filesystem::exists(directory.path() / StackFileName(4)));
  EXPECT_TRUE(std::filesystem::exists(directory.path() / StackFileName(kStackFilesKept + 3)));
}

TEST_F(StackCollectorTest, WhatCanNotBeStoredIsTold) {
  stacks::Capture capture;
  capture.number = 1;
  const StacksCaptured told = WriteStacks("/proc/self/nowhere", capture, {});
  EXPECT_EQ(told.path, "");
  EXPECT_NE(told.summary.find("the stacks are lost"), std::string::npos) << told.summary;
}

}  // namespace
}  // namespace aimaster
