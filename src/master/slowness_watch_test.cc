// What a master makes of finished collectives: who is slow, once it has been so for long enough.
#include "master/slowness_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace aimaster {
namespace {

using namespace std::chrono_literals;

// A job of one rank on each node, all in one communicator; ten collectives a second.
class Training {
 public:
  explicit Training(uint32_t ranks = 3) : late(ranks), waited(ranks) {
    for (uint32_t i = 0; i < ranks; ++i) {
      job.instances.push_back({.name = "worker", .first_rank = Rank{i}, .node = NodeIndex{i}, .live = true});
    }
    watch = std::make_unique<SlownessWatch>();
  }

  // What is said of the windows that ended in so many seconds.
  std::vector<std::string> Seconds(int count) {
    std::vector<std::string> said;
    for (int second = 0; second < count; ++second) {
      now = now + 1s;
      for (uint32_t rank = 0; rank < late.size(); ++rank) {
        if (!is_silent || rank != 0) watch->Take(now, NodeIndex{rank}, Told(rank), job);
      }
      sequence += 10;
      const auto verdicts = watch->CloseWindow(now, job);
      if (!verdicts) continue;
      std::string text;
      for (const c4d::Verdict& verdict : *verdicts) {
        text += std::string(c4d::Name(verdict.kind)) + " of";
        for (const Rank rank : verdict.ranks) text += " " + std::to_string(Value(rank));
      }
      said.push_back(text);
    }
    return said;
  }

  v1::Communication Told(uint32_t rank) const {
    v1::Communication told;
    v1::Finished& finished = *told.add_finished();
    finished.mutable_id()->set_instance(rank);
    finished.set_rank(rank);
    finished.set_waited_ns(waited[rank].count());
    v1::FinishedGroup& group = *finished.add_groups();
    group.set_id(7);
    group.set_name("MPI_COMM_WORLD");
    group.set_size(static_cast<uint32_t>(late.size()));
    group.set_one_in(1);
    const Duration last = *std::ranges::max_element(late);
    for (uint64_t i = 1; i <= 10; ++i) {
      group.add_sequence(sequence + i);
      group.add_function(static_cast<uint32_t>(c4d::Function::kAllReduce));
      group.add_size_bytes(1 << 20);
      group.add_duration_ns((transfer + last - late[rank]).count());
    }
    return told;
  }

  Monotonic now{1000s};
  JobState job;
  std::unique_ptr<SlownessWatch> watch;
  std::vector<Duration> late, waited;  // of each rank, at each collective; in a second
  Duration transfer = 1ms;
  uint64_t sequence = 0;
  bool is_silent = false;  // the node of rank 0
};

using Said = std::vector<std::string>;

TEST(SlownessWatchTest, WhoIsLateIsNamedWithinThirtySecondsOfTheStart) {
  Training training;
  training.late[1] = 30ms;
  EXPECT_EQ(training.Seconds(31), (Said{"", "", "", "", "RankNonCommSlow of 1", "RankNonCommSlow of 1"}));
  EXPECT_EQ(training.watch->places().at(Rank{1}), InstanceIndex{1});
  EXPECT_TRUE(training.watch->is_warm());
}

TEST(SlownessWatchTest, WhoWaitsItselfIsNotNamed) {
  Training training;
  training.late[1] = 30ms;
  training.waited[1] = 300ms;
  for (const std::string& said : training.Seconds(60)) EXPECT_EQ(said, "");
}

TEST(SlownessWatchTest, AGroupOfWhichAllAreSlowIsNamed) {
  Training training;
  training.Seconds(16);
  training.transfer = 40ms;
  EXPECT_EQ(training.Seconds(20).back(), "RankCommSlow of 0 1 2");
}

TEST(SlownessWatchTest, TheWindowIsHalfThePeriod) {
  Training training;
  training.job.spec.fault_tolerance.c4d_common_envs["C4D_CONN_BW_CHECK_PERIOD"] = "4s";
  training.late[2] = 30ms;
  EXPECT_EQ(training.Seconds(11).size(), 5u);
}

TEST(SlownessWatchTest, OperationsThatNotAllTellSayNothing) {
  Training training;
  training.is_silent = true;
  training.late[1] = 30ms;
  for (const std::string& said : training.Seconds(60)) EXPECT_EQ(said, "");
}

TEST(SlownessWatchTest, WhatContradictsItselfOrComesFromAnotherAttemptIsPassedOver) {
  Training training;
  v1::Communication told = training.Told(0);
  told.mutable_finished(0)->mutable_id()->set_attempt(9);
  training.watch->Take(training.now, NodeIndex{0}, told, training.job);
  EXPECT_TRUE(training.watch->places().empty());
  told = training.Told(0);
  training.watch->Take(training.now, NodeIndex{1}, told, training.job);
  EXPECT_TRUE(training.watch->places().empty()) << "it runs on another node";
  told.mutable_finished(0)->mutable_groups(0)->add_sequence(1);
  told.mutable_finished(0)->mutable_groups(0)->add_function(99);
  training.watch->Take(training.now, NodeIndex{0}, told, training.job);
  told.mutable_finished(0)->set_rank(UINT32_MAX);
  told.mutable_finished(0)->mutable_id()->set_instance(77);
  training.watch->Take(training.now, NodeIndex{0}, told, training.job);
  EXPECT_EQ(training.watch->places().size(), 1u);
}

}  // namespace
}  // namespace aimaster
