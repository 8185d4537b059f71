// What a master makes of heartbeats: a hang is found in time, and none that is not there.
#include "master/hang_watch.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>

namespace aimaster {
namespace {

using namespace std::chrono_literals;

// A job that runs, the agents of its nodes, and the watch over it.
class Bench {
 public:
  explicit Bench(uint32_t nodes = 2) : watch(Epoch{1}) {
    FaultToleranceParameters& parameters = job.spec.fault_tolerance;
    parameters.enable_job_hang_detection = true;
    parameters.job_hang_interval = 10s;
    parameters.enable_job_exit_hang_detection = true;
    parameters.job_exit_hang_interval = 5s;
    for (uint32_t i = 0; i < nodes; ++i) {
      job.instances.push_back({.name = "worker", .first_rank = Rank{i}, .node = NodeIndex{i}, .live = true});
      job.nodes[NodeIndex{i}] = {.joined = true};
      printed.push_back(now);
      look.push_back(0);
    }
    Start();
  }

  // A round, or another start of it: all ranks are executed at this moment.
  void Start() {
    job.phase = Phase::kRunning;
    job.ranks_started = now;
    job.first_success.reset();
    job.tallies.started = static_cast<uint32_t>(job.instances.size());
    job.rounds.push_back({.round = job.round});
    job.rounds.back().stages.push_back({Stage::kReady, {now, {}}, std::nullopt});
    std::ranges::fill(printed, now);
  }
  void Pass(Duration duration) { now = now + duration; }

  // What the agent of a node says, with what it knows by now.
  v1::Heartbeat BeatOf(uint32_t node) const {
    v1::Heartbeat beat;
    beat.set_monotonic_ns((now + kUptime).since_origin.count());
    beat.set_silent_ns((now - printed[node]).count());
    beat.set_quietest_rank(node);
    beat.set_quietest_silent_ns((now - printed[node]).count());
    beat.set_look(look[node]);
    return beat;
  }
  void Beat(uint32_t node) { Beat(node, BeatOf(node)); }
  void Beat(uint32_t node, const v1::Heartbeat& beat) { watch.Heard(now, NodeIndex{node}, beat, job); }
  void BeatAll() {
    for (uint32_t i = 0; i < printed.size(); ++i) Beat(i);
  }
  static v1::HangSetting Setting(int64_t interval_ms, Monotonic at, uint32_t round = 0) {
    v1::HangSetting setting;
    setting.set_interval_ms(interval_ms);
    setting.set_set_at_ns(static_cast<uint64_t>((at + kUptime).since_origin.count()));
    setting.set_round(round);
    return setting;
  }

  HangWatch::Answer Look() { return watch.Look(now, job); }
  // Those that are asked answer at once.
  std::optional<HangFound> LookAndAsk() {
    const HangWatch::Answer answer = Look();
    for (const NodeIndex node : answer.ask) {
      look[Value(node)] = answer.number;
      Beat(Value(node));
    }
    return answer.found ? answer.found : Look().found;
  }
  // A heartbeat of each node every second, for so long; the finding that comes of it.
  std::optional<HangFound> Live(Duration time, std::vector<uint32_t> silent_nodes = {}) {
    const Monotonic end = now + time;
    while (now < end) {
      const Monotonic beat = std::min(now + 1s, end);
      for (auto next = watch.NextLook(job); next && *next < beat; next = watch.NextLook(job)) {
        now = std::max(now, *next);
        if (auto found = LookAndAsk()) return found;
        if (watch.NextLook(job) == next) break;
      }
      now = beat;
      for (uint32_t i = 0; i < printed.size(); ++i) {
        if (std::ranges::find(silent_nodes, i) == silent_nodes.end()) Beat(i);
      }
      watch.Watch(now, job);
      if (auto found = LookAndAsk()) return found;
    }
    return std::nullopt;
  }

  static constexpr Duration kUptime = 1234h;  // the nodes' clocks are other ones
  Monotonic now{1000s};
  JobState job;
  HangWatch watch;
  std::vector<Monotonic> printed;
  std::vector<uint64_t> look;
};

TEST(HangWatchTest, ASilenceIsFoundWhenTheIntervalIsOver) {
  Bench bench;
  bench.Live(3s);
  bench.printed = {bench.now + -400ms, bench.now + -2s};
  bench.Live(1s);
  const Monotonic due = bench.printed[0] + 10s;
  const std::optional<HangFound> found = bench.Live(60s);
  ASSERT_TRUE(found);
  EXPECT_EQ(bench.now, due) << "not a heartbeat later";
  EXPECT_EQ(found->kind, HangKind::kSilence);
  EXPECT_EQ(found->lasts, 10s);
  EXPECT_EQ(found->interval, 10s);
  EXPECT_EQ(found->set_by, std::nullopt);
  EXPECT_EQ(found->quietest, Rank{1});
  EXPECT_EQ(found->quietest_for, 11600ms);
}

TEST(HangWatchTest, ItIsFoundOnce) {
  Bench bench;
  ASSERT_TRUE(bench.Live(60s));
  EXPECT_FALSE(bench.Live(60s));
  EXPECT_EQ(bench.watch.NextLook(bench.job), std::nullopt);
}

TEST(HangWatchTest, WhoPrintsJustInTimeIsHeard) {
  Bench bench;
  for (int i = 0; i < 20; ++i) {
    ASSERT_FALSE(bench.Live(9900ms)) << i;
    bench.printed[1] = bench.now;
  }
}

TEST(HangWatchTest, WhatIsPrintedAfterTheLastHeartbeatCounts) {
  Bench bench;
  bench.Live(9500ms);
  bench.printed[1] = bench.now;  // of which no heartbeat has told yet
  bench.Pass(500ms);
  const HangWatch::Answer answer = bench.Look();
  EXPECT_FALSE(answer.found);
  EXPECT_EQ(answer.ask.size(), 2u);
  bench.look = {answer.number, answer.number};
  bench.BeatAll();
  EXPECT_FALSE(bench.Look().found);
  EXPECT_EQ(bench.watch.NextLook(bench.job), bench.printed[1] + 10s);
}

TEST(HangWatchTest, AHeartbeatThatWasOnItsWayIsNoAnswer) {
  Bench bench;
  bench.Live(9900ms);
  const v1::Heartbeat old[] = {bench.BeatOf(0), bench.BeatOf(1)};
  bench.Pass(100ms);
  bench.Look();
  for (uint32_t node : {0u, 1u}) bench.Beat(node, old[node]);
  EXPECT_FALSE(bench.Look().found);
}

TEST(HangWatchTest, WhoDoesNotAnswerIsAskedAgain) {
  Bench bench;
  bench.Live(9900ms);
  bench.Pass(100ms);
  const HangWatch::Answer first = bench.Look();
  bench.look[0] = first.number;
  bench.Beat(0);
  EXPECT_TRUE(bench.Look().ask.empty());
  EXPECT_EQ(bench.watch.NextLook(bench.job), bench.now + HangWatch::kAskAgain);
  bench.Pass(HangWatch::kAskAgain);
  const HangWatch::Answer again = bench.Look();
  EXPECT_EQ(again.ask, std::vector{NodeIndex{1}});
  EXPECT_EQ(again.number, first.number);
  bench.look[1] = again.number;
  bench.Beat(1);
  EXPECT_TRUE(bench.Look().found);
}

TEST(HangWatchTest, ANodeThatDoesNotReportIsNoSilence) {
  Bench bench;
  bench.Live(2s);
  EXPECT_FALSE(bench.Live(100s, {1}));
  const Monotonic silent_until = bench.now;
  const std::optional<HangFound> found = bench.Live(60s);
  ASSERT_TRUE(found) << "it is back, and silence goes on where it was";
  EXPECT_NEAR(static_cast<double>((bench.now - silent_until).count()), 8e9, 1.1e9) << "2 s of it had been heard";
}

TEST(HangWatchTest, ANodeThatLivesElsewhereIsNotWaitedFor) {
  Bench bench;
  bench.job.instances[1].live = false;  // its ranks have ended
  EXPECT_TRUE(bench.Live(60s, {1}));
}

TEST(HangWatchTest, AnAgentThatKnowsNothingOfAllThisIsNotSilent) {
  Bench bench;
  for (int i = 0; i < 60; ++i) {
    bench.Pass(1s);
    bench.Beat(0, v1::Heartbeat());
    bench.Beat(1, v1::Heartbeat());
    bench.watch.Watch(bench.now, bench.job);
    ASSERT_FALSE(bench.Look().found);
  }
}

TEST(HangWatchTest, AMasterThatTakesOverLearnsItFromTheNextHeartbeats) {
  Bench bench;
  bench.Live(6s);
  const Monotonic due = bench.printed[0] + 10s;
  bench.watch = HangWatch(Epoch{2});
  bench.Pass(1s);
  ASSERT_TRUE(bench.Live(20s));
  EXPECT_EQ(bench.now, due);
}

TEST(HangWatchTest, AMasterThatTakesOverDoesNotKnowWhatTheEndedHavePrinted) {
  Bench bench;
  bench.Live(8s);
  bench.job.instances[0].live = false;
  bench.job.tallies.ranks_ended = 1;
  bench.watch = HangWatch(Epoch{2});
  const Monotonic due = bench.now + 1s + 10s;  // from the first heartbeat that it hears
  const std::optional<HangFound> found = bench.Live(60s, {0});
  ASSERT_TRUE(found);
  EXPECT_EQ(bench.now, due);
}

// A node whose ranks have all ended is asked nothing, and its next heartbeat may be a second away.
TEST(HangWatchTest, WhoHasJustEndedHasJustLived) {
  Bench bench;
  bench.Live(9500ms);
  bench.job.instances[0].live = false;
  bench.job.tallies.ranks_ended = 1;
  const Monotonic ended = bench.now;
  const std::optional<HangFound> found = bench.Live(60s, {0});
  ASSERT_TRUE(found);
  EXPECT_GE(bench.now, ended + 10s);
  EXPECT_LE(bench.now, ended + 11s);
}

TEST(HangWatchTest, AnAnswerToAFormerMasterIsNone) {
  Bench bench;
  bench.Live(9s);
  bench.watch = HangWatch(Epoch{2});
  bench.look = {(uint64_t{1} << 32) + 1, (uint64_t{1} << 32) + 1};
  bench.BeatAll();
  bench.Pass(2s);
  bench.printed[1] = bench.now;
  EXPECT_FALSE(bench.LookAndAsk());
}

TEST(HangWatchTest, ARoundStartsAnew) {
  Bench bench;
  bench.Live(8s);
  bench.job.phase = Phase::kStopping;
  EXPECT_FALSE(bench.Live(60s)) << "while it restarts nothing is silent";
  bench.job.round = Round{1};
  bench.Start();
  EXPECT_FALSE(bench.Live(9s));
  EXPECT_TRUE(bench.Live(2s));
}

TEST(HangWatchTest, WhileRanksAreBeingStartedNothingIsSilent) {
  Bench bench;
  bench.job.tallies.started = 1;
  EXPECT_FALSE(bench.Live(60s));
  bench.job.tallies.started = 2;
  bench.job.rounds.back().stages.back().start.monotonic = bench.now;
  EXPECT_FALSE(bench.Live(9s));
  EXPECT_TRUE(bench.Live(2s));
}

TEST(HangWatchTest, WhatTheJobHasOffStaysOff) {
  Bench bench;
  bench.job.spec.fault_tolerance.enable_job_hang_detection = false;
  v1::Heartbeat beat = bench.BeatOf(0);
  *beat.mutable_hang_setting() = Bench::Setting(1000, bench.now);
  bench.Beat(0, beat);
  EXPECT_FALSE(bench.Live(60s));
  bench.job.spec.fault_tolerance.enable_job_hang_detection = true;
  bench.job.spec.fault_tolerance.execution_mode = ExecutionMode::kAsync;
  EXPECT_FALSE(bench.Live(60s));
}

class SettingBench : public Bench {
 public:
  void Set(uint32_t node, int64_t interval_ms, uint32_t round = 0) {
    v1::Heartbeat beat = BeatOf(node);
    *beat.mutable_hang_setting() = Setting(interval_ms, now, round);
    Beat(node, beat);
  }
};

TEST(HangWatchTest, TheLastSettingOfAllNodesCountsFromItsMoment) {
  SettingBench bench;
  bench.Live(5s);
  bench.Set(0, -1);
  EXPECT_FALSE(bench.Live(60s)) << "switched off for now";
  bench.Set(1, 20'000);
  EXPECT_FALSE(bench.Live(19s)) << "what was silent before does not count";
  const std::optional<HangFound> found = bench.Live(2s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->interval, 20s);
  EXPECT_EQ(found->set_by, NodeIndex{1});
}

TEST(HangWatchTest, WhoIsToldOfLaterWasNotSetLater) {
  SettingBench bench;
  const Monotonic early = bench.now;
  bench.Live(2s);
  bench.Set(1, -1);
  v1::Heartbeat late = bench.BeatOf(0);
  *late.mutable_hang_setting() = Bench::Setting(3000, early + 1s);
  bench.Beat(0, late);
  EXPECT_FALSE(bench.Live(60s)) << "node 1's was set a second later";
}

TEST(HangWatchTest, ZeroIsTheFlagAgain) {
  SettingBench bench;
  bench.Live(1s);
  bench.Set(0, -1);
  bench.Live(60s);
  bench.Set(0, 0);
  EXPECT_FALSE(bench.Live(9s));
  const std::optional<HangFound> found = bench.Live(2s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->interval, 10s);
  EXPECT_EQ(found->set_by, std::nullopt);
}

TEST(HangWatchTest, ASettingOfADeadRoundDoesNotPoisonTheNext) {
  SettingBench bench;
  bench.Live(1s);
  bench.Set(0, -1);  // open when its rank died
  bench.job.round = Round{1};
  bench.Pass(30s);
  bench.Start();
  bench.Set(0, -1, /*round=*/0);
  ASSERT_TRUE(bench.Live(20s)) << "the next round has the flag's interval";
}

TEST(HangWatchTest, NorDoesOneOfAnEarlierStartOfTheRound) {
  SettingBench bench;
  bench.Live(1s);
  const v1::HangSetting old = Bench::Setting(-1, bench.now);
  bench.Pass(30s);
  bench.Start();  // in place, with another port
  v1::Heartbeat beat = bench.BeatOf(0);
  *beat.mutable_hang_setting() = old;
  bench.Beat(0, beat);
  EXPECT_TRUE(bench.Live(20s));
}

void TellStep(Bench& bench, Duration ago) {
  v1::Heartbeat beat = bench.BeatOf(0);
  beat.mutable_progress()->set_step(7);
  beat.mutable_progress()->set_advanced_ns(
      static_cast<uint64_t>((bench.now + Bench::kUptime).since_origin.count() - ago.count()));
  bench.Beat(0, beat);
}

TEST(HangWatchTest, StepsAreTold) {
  Bench bench;
  bench.Live(8s);
  TellStep(bench, 1s);
  const std::optional<HangFound> found = bench.Live(60s);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_advancing);
  EXPECT_EQ(found->lasts, 10s) << "by the plain rule it is a hang";
}

TEST(HangWatchTest, WhereProgressIsRequiredItIsToldOnceAndFoundWhenStepsStandStill) {
  Bench bench;
  bench.job.spec.fault_tolerance.hang_requires = HangRequires::kLogAndProgress;
  bench.Live(8s);
  TellStep(bench, 0s);
  const Monotonic step = bench.now;
  std::optional<HangFound> found = bench.Live(60s);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_advancing);
  EXPECT_EQ(found->lasts, 10s);
  bench.job.told_advancing = bench.now;  // as the engine does
  bench.watch = HangWatch(Epoch{2});     // also a successor says it no second time
  bench.BeatAll();
  TellStep(bench, bench.now - step);
  found = bench.Live(60s);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->is_advancing);
  EXPECT_EQ(bench.now, step + 10s);
}

TEST(HangWatchTest, AnExitHangIsFoundWhenAllHaveToldThatTheyStillRun) {
  Bench bench;
  bench.job.spec.fault_tolerance.job_hang_interval = 1000s;
  bench.Live(3s);
  bench.job.first_success = bench.now;
  bench.job.instances[0].live = false;
  const std::optional<HangFound> found = bench.Live(60s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, HangKind::kExit);
  EXPECT_EQ(found->lasts, 5s);
  EXPECT_EQ(bench.now, *bench.job.first_success + 5s);
}

TEST(HangWatchTest, WhoseEndHasNotBeenToldMayHaveEnded) {
  Bench bench;
  bench.job.spec.fault_tolerance.enable_job_hang_detection = false;
  bench.Live(3s);
  bench.job.first_success = bench.now;
  EXPECT_FALSE(bench.Live(60s, {1})) << "its node is not heard";
}

// Ranks that print when they like, heartbeats that take their time and get lost: no alarm where somebody printed within
// the interval, and none that comes more than a second after it, once messages are quick.
RC_GTEST_PROP(HangWatchPropertyTest, NoFalseAlarmAndNoneTooLate, ()) {
  const uint32_t nodes = *rc::gen::inRange<uint32_t>(1, 4);
  Bench bench(nodes);
  bench.job.spec.fault_tolerance.enable_job_exit_hang_detection = false;
  const Duration delay_max = std::chrono::milliseconds(*rc::gen::inRange(0, 300));
  const auto ms = [](Duration at_most) {
    return Duration(std::chrono::milliseconds(*rc::gen::inRange<int64_t>(0, at_most / 1ms + 1)));
  };
  struct Flight {
    Monotonic arrives;
    uint32_t node = 0;
    std::optional<v1::Heartbeat> beat;  // none: a question on its way to the node
    uint64_t number = 0;
  };
  std::deque<Flight> flights;
  const Monotonic falls_silent = bench.now + ms(25s);
  std::vector<Monotonic> next_beat(nodes, bench.now), next_print(nodes, bench.now);
  Monotonic last_print = bench.now;
  const auto ask = [&](const HangWatch::Answer& answer) {
    for (const NodeIndex node : answer.ask) {
      flights.push_back({bench.now + ms(delay_max), Value(node), std::nullopt, answer.number});
    }
    return answer.found;
  };
  std::optional<HangFound> found;
  const Monotonic end = falls_silent + 40s;
  for (; !found && bench.now < end; bench.Pass(50ms)) {
    for (uint32_t node = 0; node < nodes; ++node) {
      if (next_print[node] <= bench.now && bench.now < falls_silent) {
        bench.printed[node] = last_print = bench.now;
        next_print[node] = bench.now + 50ms + ms(9900ms);
      }
      if (next_beat[node] <= bench.now) {
        next_beat[node] = bench.now + 1s;
        flights.push_back({bench.now + ms(delay_max), node, bench.BeatOf(node), 0});
      }
    }
    for (size_t i = 0; i < flights.size();) {
      if (flights[i].arrives > bench.now) {
        ++i;
        continue;
      }
      const Flight flight = flights[i];
      flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(i));
      if (flight.beat) {
        bench.Beat(flight.node, *flight.beat);
        found = found ? found : ask(bench.Look());
      } else {
        bench.look[flight.node] = flight.number;
        flights.push_back({bench.now + ms(delay_max), flight.node, bench.BeatOf(flight.node), 0});
      }
    }
    const std::optional<Monotonic> next = bench.watch.NextLook(bench.job);
    if (!found && next && *next <= bench.now) found = ask(bench.Look());
  }
  RC_ASSERT(found.has_value());
  RC_ASSERT(bench.now - last_print >= 10s);
  RC_ASSERT(bench.now - last_print <= 10s + 1s);
}

}  // namespace
}  // namespace aimaster
