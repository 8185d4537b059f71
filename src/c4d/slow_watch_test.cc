// Who is slow, of trainings whose ranks compute and meet in collectives: each knows only how long it was in one.
#include "c4d/slow_watch.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "c4d/c4d_test_support.h"

namespace aimaster::c4d {
namespace {

constexpr Duration kWindow = 10s;

// Replicas of a model, each on a tensor parallel group or on the stages of a pipeline. Every rank has a clock of its
// own.
class Training {
 public:
  Training(uint32_t width, uint32_t replicas, bool is_pipeline = false)
      : width_(width), replicas_(replicas), is_pipeline_(is_pipeline), now_(width * replicas) {
    const auto add = [&](const std::string& name, const std::vector<uint32_t>& members) {
      Communicator& group = groups_.emplace_back();
      group.name = name;
      for (const uint32_t member : members) group.members.push_back(Rank{member});
    };
    for (uint32_t replica = 0; replica < replicas; ++replica) {
      std::vector<uint32_t> members;
      for (uint32_t i = 0; i < width; ++i) members.push_back(replica * width + i);
      add("model " + std::to_string(replica), members);
    }
    for (uint32_t i = 0; i < width; ++i) {
      std::vector<uint32_t> members;
      for (uint32_t replica = 0; replica < replicas; ++replica) members.push_back(replica * width + i);
      add("data " + std::to_string(i), members);
    }
    transfer_.assign(groups_.size(), 1ms);
    hidden_.assign(now_.size(), false);
    sequence_.assign(groups_.size(), 0);
  }

  std::function<Duration(uint32_t rank)> compute = [](uint32_t) { return 10ms; };  // of one layer
  uint32_t buckets = 0;  // that are reduced as well, one after the other, with nothing to compute in between
  void set_transfer(uint32_t group, Duration duration) { transfer_[group] = duration; }
  void Hide(uint32_t rank) { hidden_[rank] = true; }
  void Wait(uint32_t rank, Duration duration) { now_[rank] += duration; }
  uint32_t model(uint32_t replica) const { return replica; }
  uint32_t data(uint32_t i) const { return replicas_ + i; }

  void Step() {
    for (uint32_t layer = 0; layer < (is_pipeline_ ? 1 : 4); ++layer) {
      for (uint32_t replica = 0; replica < replicas_; ++replica) {
        if (is_pipeline_) {
          PassAlong(replica);
        } else {
          for (uint32_t i = 0; i < width_; ++i) now_[replica * width_ + i] += compute(replica * width_ + i);
          Meet(model(replica), Function::kAllReduce, 1 << 20);
        }
      }
    }
    for (uint32_t i = 0; i < width_; ++i) Meet(data(i), Function::kReduceScatter, 1 << 24);
    for (uint32_t bucket = 0; bucket < buckets; ++bucket) {
      for (uint32_t i = 0; i < width_; ++i) Meet(data(i), Function::kAllReduce, 1 << 10);
    }
  }

  // Steps until the window is over, then what is said of it.
  std::string Window() {
    end_ += kWindow;
    while (*std::ranges::max_element(now_) < end_) Step();
    verdicts_ = watch_.CloseWindow(kWindow, groups_);
    return Accused(verdicts_);
  }
  std::string Windows(int count) {
    std::string last;
    for (int i = 0; i < count; ++i) last = Window();
    return last;
  }
  const std::vector<Verdict>& verdicts() const { return verdicts_; }

 private:
  void Meet(uint32_t group, Function function, uint64_t bytes) {
    Duration end{};
    for (const Rank rank : groups_[group].members) end = std::max(end, now_[Value(rank)]);
    end += transfer_[group];
    ++sequence_[group];
    for (const Rank rank : groups_[group].members) {
      // No transfer takes the same time twice, nor ends for all at once.
      const Duration jitter = std::chrono::microseconds(random_() % 20);
      Tell(group, rank, function, bytes, end + jitter - now_[Value(rank)]);
      now_[Value(rank)] = end + jitter;
    }
  }

  void PassAlong(uint32_t replica) {
    for (uint32_t batch = 0; batch < 4; ++batch) {
      for (uint32_t stage = 0; stage < width_; ++stage) {
        const uint32_t rank = replica * width_ + stage;
        if (stage > 0) {
          const Duration sent = sent_[rank - 1] + 100us;
          const Duration end = std::max(now_[rank] + 100us, sent);
          Tell(model(replica), Rank{rank}, Function::kReceive, 1 << 18, end - now_[rank]);
          now_[rank] = end;
        }
        now_[rank] += compute(rank);
        sent_[rank] = now_[rank];
      }
    }
  }

  void Tell(uint32_t group, Rank rank, Function function, uint64_t bytes, Duration duration) {
    if (hidden_[Value(rank)]) return;
    watch_.Add({.communicator = group,
                .sequence = sequence_[group],
                .rank = rank,
                .members = static_cast<uint32_t>(groups_[group].members.size()),
                .function = function,
                .bytes = bytes,
                .duration = duration});
  }

  uint32_t width_, replicas_;
  bool is_pipeline_;
  std::vector<Communicator> groups_;
  std::vector<Duration> now_, transfer_;
  std::map<uint32_t, Duration> sent_;
  std::vector<uint64_t> sequence_;
  std::vector<bool> hidden_;
  Duration end_{};
  std::mt19937 random_{1};
  SlowWatch watch_;
  std::vector<Verdict> verdicts_;
};

// As with DistributedDataParallel: who came late to the first bucket comes to the others with everybody else.
TEST(SlowWatchTest, WhoIsLateToTheFirstBucketOfEachStepIsNamed) {
  Training training(1, 16);
  training.buckets = 6;
  training.compute = [](uint32_t rank) { return rank == 9 ? 26ms : 20ms; };
  EXPECT_EQ(training.Windows(7), "RankNonCommSlow 9");
}

// A replica with more to do: each of its ranks is late in its data parallel group, and no one of them is the reason.
TEST(SlowWatchTest, AGroupThatIsLateTogetherIsNoStraggler) {
  Training training(4, 3);
  training.compute = [](uint32_t rank) { return rank / 4 == 1 ? 13ms : 10ms; };
  EXPECT_EQ(training.Windows(10), "");
}

TEST(SlowWatchTest, OfAHealthyTrainingNothingIsSaid) {
  Training training(4, 4);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(training.Window(), "");
}

TEST(SlowWatchTest, TheOneForWhomAllOthersWaitIsNamedWithinThreeWindows) {
  Training training(4, 4);
  training.Windows(4);
  training.compute = [](uint32_t rank) { return rank == 6 ? 15ms : 10ms; };
  EXPECT_EQ(training.Window(), "");
  EXPECT_EQ(training.Window(), "") << "twice is not often";
  EXPECT_EQ(training.Window(), "RankNonCommSlow 6") << "and not its tensor group, which is late everywhere";
  EXPECT_EQ(training.verdicts()[0].level, Level::kInfo);
  EXPECT_NE(training.verdicts()[0].evidence[0].find("Rank 6 came last, and alone, to "), std::string::npos);
  training.compute = [](uint32_t) { return 10ms; };
  EXPECT_EQ(training.Window(), "");
}

TEST(SlowWatchTest, WhoIsSlowFromTheStartIsNamedToo) {
  Training training(4, 4);
  training.compute = [](uint32_t rank) { return rank == 6 ? 15ms : 10ms; };
  EXPECT_EQ(training.Windows(6), "RankNonCommSlow 6");
}

TEST(SlowWatchTest, AStageThatIsSlowMakesTheLaterOnesLate) {
  Training training(4, 4, true);
  training.Windows(4);
  training.compute = [](uint32_t rank) { return rank == 5 ? 15ms : 10ms; };
  EXPECT_EQ(training.Windows(5), "RankNonCommSlow 5");
}

TEST(SlowWatchTest, SequencesOfDifferentLengthsAreNobodysFault) {
  Training training(4, 4);
  std::mt19937 random(3);
  training.compute = [&](uint32_t) { return Duration(5ms) + std::chrono::microseconds(random() % 20'000); };
  for (int i = 0; i < 20; ++i) EXPECT_EQ(training.Window(), "") << i;
}

TEST(SlowWatchTest, ACheckpointIsOneLateOperation) {
  Training training(4, 4);
  for (int i = 0; i < 20; ++i) {
    training.Wait(0, 4s);
    EXPECT_EQ(training.Window(), "") << i;
  }
}

TEST(SlowWatchTest, AnEvaluationOfMinutesIsAWindowWithoutOperations) {
  Training training(4, 4);
  training.Windows(5);
  training.Wait(0, 60s);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(training.Window(), "") << i;
}

TEST(SlowWatchTest, TheFirstStepsSaySomethingOfNobody) {
  Training training(4, 4);
  training.compute = [](uint32_t rank) { return rank == 2 ? 900ms : 200ms; };  // it compiles
  EXPECT_EQ(training.Window(), "");
  training.compute = [](uint32_t) { return 10ms; };
  for (int i = 0; i < 10; ++i) EXPECT_EQ(training.Window(), "");
}

TEST(SlowWatchTest, AGroupWhoseOperationsTakeLongForAllIsSlowInCommunication) {
  Training training(4, 4);
  training.Windows(4);
  training.set_transfer(training.model(2), 5ms);
  EXPECT_EQ(training.Windows(3), "RankCommSlow of group 8,9,10,11");
  EXPECT_EQ(training.verdicts()[0].level, Level::kInfo);
}

TEST(SlowWatchTest, WhoIsInAllSlowGroupsIsWhatTheyShare) {
  Training training(4, 4);
  training.Windows(4);
  training.set_transfer(training.model(2), 2500us);
  training.set_transfer(training.data(1), 40ms);
  EXPECT_EQ(training.Windows(3), "RankCommSlow 9");
}

TEST(SlowWatchTest, WhereAMemberIsNotSeenNothingIsConcluded) {
  Training training(4, 1);
  training.Hide(3);
  training.Windows(4);
  training.compute = [](uint32_t rank) { return rank == 3 ? 20ms : 10ms; };
  EXPECT_EQ(training.Windows(5), "");
}

RC_GTEST_PROP(SlowWatchPropertyTest, OnlyTheOneThatIsSlowIsNamed, ()) {
  const bool is_pipeline = *rc::gen::arbitrary<bool>();
  const uint32_t width = *rc::gen::inRange(2u, 5u), replicas = *rc::gen::inRange(2u, 5u);
  Training training(width, replicas, is_pipeline);
  const uint32_t slow = *rc::gen::inRange(0u, width * replicas);
  const int percent = *rc::gen::inRange(100, 300);
  std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
  training.compute = [&](uint32_t rank) {
    return Duration(10ms) * (rank == slow ? percent : 100) / 100 + std::chrono::microseconds(random() % 500);
  };
  for (int i = 0; i < 8; ++i) {
    const std::string said = training.Window();
    RC_ASSERT(said.empty() || said == "RankNonCommSlow " + std::to_string(slow));
    RC_ASSERT(said.empty() || percent > 100);
    if (i == 7 && percent > 150 && !is_pipeline) RC_ASSERT(!said.empty());
  }
}

TEST(SlowWatchTest, AMillionGroupsTakeNoMoreThanTheBound) {
  SlowWatch watch({.kinds_max = 1000, .pending_max = 2000});
  for (uint32_t group = 0; group < 1'000'000; ++group) {
    watch.Add({.communicator = group, .sequence = 1, .rank = Rank{0}, .members = 2, .bytes = 8, .duration = 1ms});
  }
  EXPECT_EQ(watch.kinds(), 1000u);
  EXPECT_LE(watch.pending(), 2000u);
  EXPECT_EQ(watch.dropped(), 999'000u);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(watch.CloseWindow(kWindow, {}).empty());
  EXPECT_EQ(watch.kinds(), 0u) << "who is gone gives the place free";
  EXPECT_EQ(watch.pending(), 0u);
}

}  // namespace
}  // namespace aimaster::c4d
