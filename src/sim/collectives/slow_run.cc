#include "sim/collectives/slow_run.h"

#include <algorithm>
#include <chrono>

#include "c4d/slow_watch.h"
#include "sim/collectives/scenario.h"
#include "sim/random.h"

namespace aimaster::sim::collectives {
namespace {

using namespace std::chrono_literals;

constexpr Duration kWindow = 5s;
constexpr uint32_t kWindows = 24;
constexpr uint32_t kLinkSlowFrom = 8;       // a link that was slow always is no slower than usual
constexpr uint64_t kEventsMax = 3'000'000;  // of one seed
constexpr uint32_t kRanksMax = 256;
constexpr Duration kStepMax = 500ms;  // of those that have enough operations in a window without a tensor group
constexpr std::array<uint64_t, kTypes.size()> kBytes = {2, 4, 4};

bool HasToBeNamed(const Scenario& scenario, Slowness slowness) {
  const Dimensions& d = scenario.dimensions;
  const Workload& w = scenario.workload;
  const Duration step = 3 * w.compute * (w.microbatches + d.pipeline);
  const bool has_enough = step <= kStepMax && w.checkpoint_every == 0 && w.evaluate_every == 0;
  if (slowness == Slowness::kRank) return w.imbalance == 1 && has_enough && (d.tensor > 1 || d.data > 1);
  return slowness == Slowness::kLink && has_enough && d.tensor > 1;
}

void MakeSteady(Scenario& scenario, Random& random) {
  Workload& w = scenario.workload;
  w.evaluate_every = w.checkpoint_every = 0;
  w.imbalance = 1;
  w.compile = random.Time(1s, 5s);
  w.compute = random.Time(100ms, kStepMax) / (3 * (w.microbatches + scenario.dimensions.pipeline));
  w.think = w.compute / 8;
}

}  // namespace

SlowResult RunSlowSeed(uint64_t seed) {
  Scenario scenario = DrawScenario(2 * seed);  // a healthy one
  for (uint64_t next = 1; scenario.dimensions.ranks() > kRanksMax; ++next)
    scenario = DrawScenario(2 * (seed + next * 1'000'003));
  Random random(seed);
  const Layout layout(scenario.dimensions);
  SlowResult result{.seed = seed,
                    .slowness = static_cast<Slowness>(seed % 3),
                    .rank = static_cast<uint32_t>(random.Below(layout.ranks()))};
  if (random.Chance(0.7)) MakeSteady(scenario, random);
  if (result.slowness == Slowness::kRank) {
    scenario.workload.slow_rank = result.rank;
    scenario.workload.slowness = 1.3;
  }
  result.has_to_be_named = HasToBeNamed(scenario, result.slowness);
  result.story = Describe(scenario);

  std::vector<c4d::Communicator> communicators;
  for (uint32_t group = 0; group < layout.groups().size(); ++group) {
    communicators.push_back(
        {.name = layout.NameOf(group), .description = std::string(Name(layout.groups()[group].part))});
    for (const uint32_t rank : layout.groups()[group].members) communicators.back().members.push_back(Rank{rank});
  }
  c4d::SlowWatch watch;
  Cluster cluster(layout, scenario.workload, scenario.mode, scenario.queue_depth, {});
  cluster.Watch([&](uint32_t rank, const Outstanding& operation, Duration duration) {
    const uint64_t count = operation.call.count == c4d::kUnknown ? 4096 : operation.call.count;
    watch.Add({.communicator = operation.call.group,
               .sequence = operation.sequence,
               .rank = Rank{rank},
               .members = static_cast<uint32_t>(layout.groups()[operation.call.group].members.size()),
               .function = operation.call.function,
               .bytes = count * kBytes[operation.call.type],
               .duration = duration});
  });
  for (uint32_t window = 0; window < kWindows && cluster.events() < kEventsMax; ++window) {
    if (window == kLinkSlowFrom && result.slowness == Slowness::kLink) cluster.SlowDownLink(result.rank);
    cluster.RunUntil(cluster.now() + kWindow);
    for (const c4d::Verdict& verdict : watch.CloseWindow(kWindow, communicators)) {
      const bool names = std::ranges::binary_search(verdict.ranks, Rank{result.rank});
      const bool outside = verdict.kind == c4d::VerdictKind::kRankNonCommSlow;
      std::string text = "window " + std::to_string(window) + ": " + std::string(c4d::Name(verdict.kind)) + " of";
      for (size_t i = 0; i < std::min<size_t>(verdict.ranks.size(), 8); ++i) {
        text += " " + std::to_string(Value(verdict.ranks[i]));
      }
      if (!verdict.evidence.empty()) text += ": " + verdict.evidence.front();
      const bool is_right = names && (outside ? result.slowness == Slowness::kRank && verdict.ranks.size() == 1
                                              : result.slowness == Slowness::kLink);
      result.is_named |= is_right;
      result.story += text + "\n";
      if (!is_right) result.false_accusations.push_back(text);
    }
  }
  return result;
}

}  // namespace aimaster::sim::collectives
