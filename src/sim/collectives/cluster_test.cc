// That the simulated training does what is said of it: otherwise it is no truth for anything.
#include "sim/collectives/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "sim/collectives/observer.h"
#include "sim/collectives/scenario.h"
#include "sim/collectives/truth.h"

namespace aimaster::sim::collectives {
namespace {

using namespace std::chrono_literals;

constexpr std::array kModes = {Mode::kStreams, Mode::kOneStream, Mode::kSynchronous};
const Dimensions kBox{.tensor = 2, .data = 4, .pipeline = 2, .instances = 2, .experts = 2};

Workload Short() { return {.seed = 7, .compute = 20ms, .think = 2ms, .compile = 1s}; }

// A job of 16 ranks with one fault in its second step.
class Job {
 public:
  Job(Mode mode, FaultKind kind, uint32_t rank, uint32_t place = 0, bool others_complete = false)
      : layout_(kBox), workload_(Short()) {
    const std::vector<Instruction> program = StepOf(layout_, workload_, rank, 1);
    const std::vector<uint32_t> places = PlacesFor(kind, layout_, program);
    Fault fault{.kind = kind, .rank = rank, .step = 1, .others_complete = others_complete};
    fault.index = places.at(place);
    called_ = program[fault.index].call[0];
    cluster_.emplace(layout_, workload_, mode, 64, std::vector<Fault>{fault});
    cluster_->RunUntilStill(600s);
  }

  Cluster& cluster() { return *cluster_; }
  const Fault& fault() const { return cluster_->faults().front(); }
  const Call& called() const { return called_; }
  const Outstanding* OutstandingOf(uint32_t rank) const {
    for (const Outstanding& o : cluster_->MemberOf(rank, fault().group).outstanding) {
      if (o.sequence == fault().sequence) return &o;
    }
    return nullptr;
  }
  std::vector<uint32_t> Roots() {
    cluster_->RunUntil(cluster_->now() + 20s);
    const Truth truth = LookAt(*cluster_, Sight{.is_hidden = std::vector<bool>(layout_.ranks())});
    std::vector<uint32_t> roots;
    for (uint32_t rank = 0; rank < layout_.ranks(); ++rank) {
      if (truth.ranks[rank].is_root()) roots.push_back(rank);
    }
    return roots;
  }

 private:
  Layout layout_;
  Workload workload_;
  Call called_;
  std::optional<Cluster> cluster_;
};

TEST(LayoutTest, EveryRankIsInOneGroupOfEachPartAndKnowsItsPlaceInIt) {
  const Layout layout(kBox);
  for (uint32_t rank = 0; rank < layout.ranks(); ++rank) {
    EXPECT_EQ(layout.RankAt(layout.PlaceOf(rank)), rank);
    for (size_t part = 0; part < kParts; ++part) {
      const uint32_t group = layout.GroupOf(rank, static_cast<Part>(part));
      ASSERT_NE(group, kNone) << Name(static_cast<Part>(part));
      EXPECT_EQ(layout.groups()[group].members[layout.PositionOf(rank, group)], rank);
    }
  }
}

TEST(ClusterTest, AHealthyJobMakesProgressInEveryModeAndNeverStandsStill) {
  for (const Mode mode : kModes) {
    const Layout layout(kBox);
    const Workload workload = Short();
    Cluster cluster(layout, workload, mode, 16, {});
    cluster.RunUntil(60s);
    EXPECT_FALSE(cluster.is_still()) << Name(mode);
    for (uint32_t rank = 0; rank < layout.ranks(); ++rank) EXPECT_GT(cluster.StepAt(rank), 20u) << Name(mode);
  }
}

TEST(ClusterTest, AJobOfEveryShapeThatASeedDrawsMakesProgress) {
  for (uint64_t seed = 2; seed < 120; seed += 2) {
    const Scenario scenario = DrawScenario(seed);
    if (scenario.dimensions.ranks() > 128) continue;
    const Layout layout(scenario.dimensions);
    Cluster cluster(layout, scenario.workload, scenario.mode, scenario.queue_depth, {});
    cluster.RunUntil(600s);
    EXPECT_FALSE(cluster.is_still()) << "seed " << seed;
    for (uint32_t rank = 0; rank < layout.ranks(); ++rank) EXPECT_GE(cluster.StepAt(rank), 2u) << "seed " << seed;
  }
}

TEST(ClusterTest, ACollectiveIsCompleteOnlyWhenAllHaveCome) {
  for (const Mode mode : kModes) {
    const Layout layout(kBox);
    const Workload workload = Short();
    Cluster cluster(layout, workload, mode, 64, {});
    for (int i = 1; i < 2000; ++i) {
      cluster.RunUntil(i * 5ms);
      for (uint32_t group = 0; group < layout.groups().size(); ++group) {
        uint64_t least_started = UINT64_MAX, most_completed = 0;
        for (const uint32_t rank : layout.groups()[group].members) {
          const Member& member = cluster.MemberOf(rank, group);
          ASSERT_GE(member.issued, member.started);
          ASSERT_GE(member.started, member.completed);
          least_started = std::min(least_started, member.started);
          most_completed = std::max(most_completed, member.completed);
        }
        ASSERT_LE(most_completed, least_started) << Name(mode);
      }
    }
  }
}

TEST(ClusterTest, HostsRunAheadOfTheirDevicesUnlessTheyStayInside) {
  for (const Mode mode : kModes) {
    const Layout layout(kBox);
    const Workload workload = Short();
    Cluster cluster(layout, workload, mode, 64, {});
    size_t most = 0;
    for (int i = 1; i < 400; ++i) {
      cluster.RunUntil(i * 5ms);
      size_t outstanding = 0;
      for (size_t part = 0; part < kParts; ++part) {
        outstanding += cluster.MemberOf(0, layout.GroupOf(0, static_cast<Part>(part))).outstanding.size();
      }
      most = std::max(most, outstanding);
    }
    if (mode == Mode::kSynchronous) {
      EXPECT_LE(most, 2u) << "a send and a receive together";
    } else {
      EXPECT_GT(most, 8u);
    }
    EXPECT_LE(most, 128u) << "no more than the queue holds";
  }
}

TEST(ClusterTest, TheSameScenarioGivesTheSameHistory) {
  const auto events = [] {
    Job job(Mode::kStreams, FaultKind::kStopped, 3);
    return std::pair(job.cluster().events(), job.fault().fired);
  };
  EXPECT_EQ(events(), events());
}

TEST(FaultTest, AHostThatStopsHasNothingOutstandingAndAllWaitForItAlone) {
  for (const Mode mode : kModes) {
    Job job(mode, FaultKind::kHostBefore, 5);
    ASSERT_TRUE(job.fault().fired);
    EXPECT_TRUE(job.cluster().is_still());
    for (size_t part = 0; part < kParts; ++part) {
      const uint32_t group = job.cluster().layout().GroupOf(5, static_cast<Part>(part));
      EXPECT_TRUE(job.cluster().MemberOf(5, group).outstanding.empty());
    }
    EXPECT_EQ(job.Roots(), std::vector{5u}) << Name(mode);
  }
}

TEST(FaultTest, WhatAHostCalledBeforeItStoppedGetsDone) {
  Job job(Mode::kStreams, FaultKind::kHostAhead, 5, 4);
  const uint32_t group = job.fault().group;
  EXPECT_TRUE(job.cluster().MemberOf(5, group).outstanding.empty());
  EXPECT_EQ(job.cluster().MemberOf(5, group).issued, job.cluster().MemberOf(5, group).completed);
  EXPECT_EQ(job.Roots(), std::vector{5u});
}

TEST(FaultTest, ADeviceStuckInsideHasBegunAndNobodyGetsOut) {
  for (const Mode mode : kModes) {
    Job job(mode, FaultKind::kDeviceInside, 6, 3);
    const Outstanding* own = job.OutstandingOf(6);
    ASSERT_NE(own, nullptr);
    EXPECT_TRUE(own->is_started);
    const Meeting* meeting = job.cluster().FindMeeting(6, *own);
    ASSERT_NE(meeting, nullptr);
    EXPECT_EQ(meeting->arrived, job.cluster().SizeOf(*own)) << "all have come";
    for (const uint32_t root : job.Roots()) EXPECT_EQ(root, 6u) << "nobody else keeps others";
  }
}

TEST(FaultTest, WhereTheOthersGotTheirsTheStuckOneIsMissedInTheNext) {
  for (uint32_t place = 0;; ++place) {
    Job job(Mode::kStreams, FaultKind::kDeviceInside, 6, place, true);
    if (c4d::IsPointToPoint(job.called().function)) continue;
    const uint32_t group = job.fault().group;
    for (const uint32_t rank : job.cluster().layout().groups()[group].members) {
      const uint64_t completed = job.cluster().MemberOf(rank, group).completed;
      EXPECT_EQ(completed, job.fault().sequence - (rank == 6 ? 1 : 0));
    }
    EXPECT_EQ(job.Roots(), std::vector{6u});
    break;
  }
}

TEST(FaultTest, ADeviceStuckBeforeHasNotBegunWhatItsHostCalled) {
  for (const Mode mode : {Mode::kStreams, Mode::kOneStream}) {
    Job job(mode, FaultKind::kDeviceBefore, 6, 3);
    const Outstanding* own = job.OutstandingOf(6);
    ASSERT_NE(own, nullptr);
    EXPECT_FALSE(own->is_started);
    EXPECT_EQ(job.Roots(), std::vector{6u});
  }
}

TEST(FaultTest, AStoppedProcessNeitherCallsNorTransfersAnyMore) {
  for (const Mode mode : kModes) {
    Job job(mode, FaultKind::kStopped, 6, 3);
    EXPECT_EQ(job.cluster().HostOf(6), HostState::kStopped);
    const Outstanding* own = job.OutstandingOf(6);
    ASSERT_NE(own, nullptr);
    EXPECT_TRUE(own->is_started);
    EXPECT_TRUE(job.cluster().is_still());
  }
}

TEST(FaultTest, WhoLeavesOneOutLagsBehindAndStopsTheJobWithoutBeingMissing) {
  for (const Mode mode : kModes) {
    Job job(mode, FaultKind::kSkipped, 6, 1);
    ASSERT_TRUE(job.fault().fired);
    EXPECT_TRUE(job.cluster().is_still());
    EXPECT_NE(job.cluster().HostOf(6), HostState::kStopped);
    EXPECT_TRUE(job.Roots().empty()) << "it waits as all do";
  }
}

TEST(FaultTest, OneThatCallsAnotherOperationIsMetByOthersThatDoNotAgree) {
  for (const Mode mode : kModes) {
    Job job(mode, FaultKind::kMismatch, 6, 1);
    const Outstanding* own = job.OutstandingOf(6);
    ASSERT_NE(own, nullptr);
    const Meeting* meeting = job.cluster().FindMeeting(6, *own);
    ASSERT_NE(meeting, nullptr);
    EXPECT_TRUE(meeting->differs);
    for (const uint32_t rank : job.cluster().layout().groups()[job.fault().group].members) {
      if (rank == 6) continue;
      EXPECT_NE(job.OutstandingOf(rank)->call.function, own->call.function);
    }
  }
}

TEST(FaultTest, TwoGroupsEnteredTheOtherWayRoundWaitForEachOther) {
  for (const Mode mode : {Mode::kOneStream, Mode::kSynchronous}) {
    Job job(mode, FaultKind::kOppositeOrder, 6);
    ASSERT_TRUE(job.fault().fired);
    EXPECT_TRUE(job.cluster().is_still());
    EXPECT_TRUE(job.Roots().empty());
  }
}

TEST(FaultTest, EverySeedWithAFaultThatHangsEndsStandingStill) {
  std::set<FaultKind> seen;
  for (uint64_t seed = 1; seed < 200; seed += 2) {
    const Scenario scenario = DrawScenario(seed);
    if (!scenario.expects_hang || scenario.dimensions.ranks() > 64) continue;
    const Layout layout(scenario.dimensions);
    Cluster cluster(layout, scenario.workload, scenario.mode, scenario.queue_depth, scenario.faults);
    cluster.RunUntilStill(3600s);
    EXPECT_TRUE(cluster.is_still()) << "seed " << seed;
    seen.insert(scenario.faults.front().kind);
  }
  EXPECT_EQ(seen.size(), 8u) << "all kinds but the two that are slow";
}

TEST(ObserverTest, WhatIsHiddenIsNotSeen) {
  const Layout layout(kBox);
  const Workload workload = Short();
  Cluster cluster(layout, workload, Mode::kStreams, 64, {});
  cluster.RunUntil(3s);
  Sight sight{.started = false, .ages = false, .outside = false, .progress = false, .kept = 1};
  sight.is_hidden.resize(layout.ranks());
  sight.is_hidden[3] = true;
  const c4d::Observation observation = ObserveAll(cluster, sight);
  EXPECT_FALSE(observation.ranks[3].is_observed);
  EXPECT_TRUE(observation.ranks[4].is_observed);
  for (const c4d::MemberState& state : observation.states) {
    EXPECT_NE(state.rank, Rank{3});
    EXPECT_EQ(state.started, c4d::kUnknown);
    EXPECT_EQ(state.idle, c4d::kNoAge);
    EXPECT_LE(state.operation_count, 1u);
  }
}

TEST(ObserverTest, OutstandingOperationsAreThoseThatTheCountersTellOf) {
  const Layout layout(kBox);
  const Workload workload = Short();
  Cluster cluster(layout, workload, Mode::kStreams, 64, {});
  Sight sight;
  sight.is_hidden.resize(layout.ranks());
  for (int i = 1; i < 50; ++i) {
    cluster.RunUntil(i * 100ms);
    const c4d::Observation observation = ObserveAll(cluster, sight);
    for (const c4d::MemberState& state : observation.states) {
      if (state.carries_point_to_point) continue;
      ASSERT_EQ(state.operation_count, state.issued - state.completed);
      for (uint32_t j = 0; j < state.operation_count; ++j) {
        ASSERT_EQ(observation.operations[state.first_operation + j].sequence, state.completed + 1 + j);
      }
    }
  }
}

}  // namespace
}  // namespace aimaster::sim::collectives
