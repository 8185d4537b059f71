#include "sim/collectives/scenario.h"

#include <algorithm>
#include <chrono>

#include "sim/random.h"

namespace aimaster::sim::collectives {
namespace {

using namespace std::chrono_literals;
using c4d::Function;

constexpr int kDraws = 200;  // of a layout of the wanted size

Dimensions DrawDimensions(Random& random) {
  const uint64_t dice = random.Below(100);
  const uint32_t most = dice < 60 ? 64 : dice < 92 ? 256 : dice < 99 ? 1024 : 4096;
  const uint32_t least = most == 64 ? 8 : most / 4 + 1;
  Dimensions drawn{.tensor = 2, .data = 4};
  for (int i = 0; i < kDraws; ++i) {
    const Dimensions d{.tensor = random.Pick({1u, 1u, 2u, 4u, 8u}),
                       .data = random.Pick({1u, 2u, 3u, 4u, 6u, 8u, 16u, 32u, 64u}),
                       .pipeline = random.Pick({1u, 1u, 2u, 3u, 4u, 8u})};
    if (d.ranks() < least || d.ranks() > most) continue;
    drawn = d;
    break;
  }
  if (drawn.data >= 4 && drawn.data % 2 == 0 && random.Chance(0.4)) {
    drawn.instances = drawn.data % 4 == 0 && drawn.data >= 8 && random.Chance(0.3) ? 4 : 2;
  }
  if (drawn.data % 2 == 0 && random.Chance(0.25)) {
    drawn.experts = drawn.data % 4 == 0 && random.Chance(0.5) ? 4 : 2;
  }
  return drawn;
}

Workload DrawWorkload(Random& random, const Scenario& scenario) {
  Workload drawn{.seed = random.Next()};
  drawn.microbatches = random.Between(1, 8);
  drawn.buckets = random.Between(1, 3);
  drawn.imbalance = random.Pick({1.0, 1.1, 1.5});
  // Where `started` is not seen, a step of more than the timeout looks like a hang to anybody: it is left out.
  const bool long_steps = scenario.sight.started && random.Chance(0.2);
  const Duration step = long_steps ? random.Time(5s, 25s) : random.Time(200ms, 4s);
  drawn.compute = step / (3 * (drawn.microbatches + scenario.dimensions.pipeline));
  drawn.think = drawn.compute / random.Pick({2, 8, 20});
  drawn.compile = random.Time(1s, 40s);
  drawn.drain_every = random.Between(1, 3);
  drawn.evaluate_every = random.Pick({0u, 2u, 3u});
  drawn.checkpoint_every = random.Pick({0u, 2u, 3u});
  drawn.checkpoint = random.Pick<Duration>({4s, 30s, 120s});
  drawn.all_write = random.Chance(0.5);
  drawn.pause_chance = random.Pick({0.0, 0.02});
  return drawn;
}

Sight DrawSight(Random& random, uint32_t ranks, bool has_ages) {
  Sight drawn;
  drawn.started = random.Chance(0.6);
  drawn.ages = has_ages || random.Chance(0.7);
  drawn.outside = drawn.ages && random.Chance(0.6);
  drawn.progress = random.Chance(0.4);
  drawn.kept = random.Pick({0u, 0u, 1u, 2u, 8u});
  drawn.is_hidden.resize(ranks);
  if (random.Chance(0.6)) return drawn;
  uint32_t budget = ranks / 4;
  if (random.Chance(0.5)) {  // some here and there, or whole nodes
    const double chance = random.Pick({0.05, 0.2});
    for (uint32_t rank = 0; rank < ranks && budget > 0; ++rank) {
      if (!random.Chance(chance)) continue;
      drawn.is_hidden[rank] = true;
      --budget;
    }
  } else {
    const auto first = static_cast<uint32_t>(random.Below(ranks));
    for (uint32_t i = 0; i < std::min(budget, 8u); ++i) drawn.is_hidden[(first + i) % ranks] = true;
  }
  return drawn;
}

bool IsCollective(const Instruction& instruction) {
  return instruction.kind == Instruction::Kind::kCalls && !c4d::IsPointToPoint(instruction.call[0].function);
}

size_t InBoth(const Layout& layout, uint32_t one, uint32_t other) {
  return static_cast<size_t>(
      std::ranges::count_if(layout.groups()[one].members, [&](uint32_t rank) { return layout.IsMember(rank, other); }));
}

Mode ModeFor(FaultKind kind, Random& random) {
  const Mode drawn = random.Pick({Mode::kStreams, Mode::kStreams, Mode::kOneStream, Mode::kSynchronous});
  const bool needs_device = kind == FaultKind::kDeviceBefore || kind == FaultKind::kHostAhead;
  if (needs_device && drawn == Mode::kSynchronous) return Mode::kStreams;
  if (kind == FaultKind::kOppositeOrder && drawn == Mode::kStreams) return Mode::kOneStream;
  return drawn;
}

Difference DrawDifference(Random& random, const Call& call) {
  if (call.function == Function::kBarrier || call.count == c4d::kUnknown) return Difference::kFunction;
  if (call.peer != kNone && random.Chance(0.4)) return Difference::kRoot;
  const Difference drawn = random.Pick({Difference::kFunction, Difference::kCount, Difference::kType});
  // Of an AllGather members may give as much as they have.
  return drawn == Difference::kCount && call.function == Function::kAllGather ? Difference::kType : drawn;
}

// False: there is no place in this job where that can happen to the rank.
bool FindPlace(Fault& fault, Random& random, const Scenario& scenario, const Layout& layout) {
  const std::vector<Instruction> program = StepOf(layout, scenario.workload, fault.rank, fault.step);
  const std::vector<uint32_t> places = PlacesFor(fault.kind, layout, program);
  if (places.empty()) return false;
  fault.index = places[random.Below(places.size())];
  const Call& call = program[fault.index].call[0];
  fault.difference = DrawDifference(random, call);
  fault.others_complete =
      fault.kind == FaultKind::kDeviceInside && !c4d::IsPointToPoint(call.function) && random.Chance(0.3);
  fault.shows_behind = random.Chance(0.7);
  return true;
}

bool CanBeTwo(FaultKind kind) {
  switch (kind) {
    case FaultKind::kHostBefore:
    case FaultKind::kHostAhead:
    case FaultKind::kDeviceInside:
    case FaultKind::kDeviceBefore:
    case FaultKind::kStopped:
      return true;
    case FaultKind::kSkipped:
    case FaultKind::kMismatch:
    case FaultKind::kOppositeOrder:
    case FaultKind::kSlowRank:
    case FaultKind::kSlowLink:
      return false;
  }
  return false;
}

void DrawFaults(Random& random, Scenario& scenario, const Layout& layout, FaultKind kind) {
  const uint64_t last_step = layout.ranks() > 1024 ? 1 : 3;
  Fault fault{
      .kind = kind, .rank = static_cast<uint32_t>(random.Below(layout.ranks())), .step = random.Below(last_step + 1)};
  if (kind == FaultKind::kSlowRank || kind == FaultKind::kSlowLink) {
    if (kind == FaultKind::kSlowRank) {
      scenario.workload.slow_rank = fault.rank;
      scenario.workload.slowness = 1.3;
    } else {
      scenario.slow_link = fault.rank;
    }
    scenario.faults.push_back(fault);
    return;
  }
  scenario.expects_hang = true;
  if (!FindPlace(fault, random, scenario, layout)) {  // every job has a collective that can be left out
    fault.kind = FaultKind::kSkipped;
    FindPlace(fault, random, scenario, layout);
  }
  scenario.faults.push_back(fault);
  if (!CanBeTwo(fault.kind) || !random.Chance(0.25)) return;
  Fault second = fault;
  second.rank = static_cast<uint32_t>((fault.rank + 1 + random.Below(layout.ranks() - 1)) % layout.ranks());
  if (random.Chance(0.3)) second.kind = random.Pick({FaultKind::kHostBefore, FaultKind::kStopped});
  if (random.Chance(0.3) || !FindPlace(second, random, scenario, layout)) {
    second.step = random.Below(last_step + 1);
    if (!FindPlace(second, random, scenario, layout)) return;
  }
  scenario.faults.push_back(second);
}

// About how long they take, with what comes between them.
Duration TimeOfFirstSteps(const Scenario& scenario, uint32_t steps) {
  const Workload& workload = scenario.workload;
  const Duration step = 3 * workload.compute * (workload.microbatches + scenario.dimensions.pipeline);
  const uint32_t checkpoints = workload.checkpoint_every == 0 ? 0 : steps / workload.checkpoint_every;
  return 1s + workload.compile + steps * 3 * step / 2 + checkpoints * workload.checkpoint;
}

}  // namespace

std::vector<uint32_t> PlacesFor(FaultKind kind, const Layout& layout, const std::vector<Instruction>& program) {
  std::vector<uint32_t> places;
  uint32_t ahead = 0;  // operations since the host waited for its device
  for (uint32_t i = 0; i < program.size(); ++i) {
    const Instruction& here = program[i];
    if (here.kind == Instruction::Kind::kDrain) ahead = 0;
    if (here.kind != Instruction::Kind::kCalls) continue;
    bool fits = true;
    switch (kind) {
      case FaultKind::kHostBefore:
        fits = ahead == 0;
        break;
      case FaultKind::kHostAhead:
        fits = ahead >= 2;
        break;
      case FaultKind::kSkipped:
      case FaultKind::kMismatch:
        fits = IsCollective(here);
        break;
      case FaultKind::kOppositeOrder:
        fits = i + 1 < program.size() && IsCollective(here) && IsCollective(program[i + 1]) &&
               here.call[0].group != program[i + 1].call[0].group &&
               InBoth(layout, here.call[0].group, program[i + 1].call[0].group) >= 2;
        break;
      case FaultKind::kDeviceInside:
      case FaultKind::kDeviceBefore:
      case FaultKind::kStopped:
      case FaultKind::kSlowRank:
      case FaultKind::kSlowLink:
        break;
    }
    if (fits) places.push_back(i);
    ++ahead;
  }
  return places;
}

Scenario DrawScenario(uint64_t seed) {
  Random random(seed);
  Scenario drawn{.seed = seed};
  const bool is_healthy = seed % 2 == 0;
  const auto kind = static_cast<FaultKind>(seed / 2 % kFaultKinds);
  const bool hangs = !is_healthy && kind != FaultKind::kSlowRank && kind != FaultKind::kSlowLink;
  drawn.dimensions = DrawDimensions(random);
  drawn.sight = DrawSight(random, drawn.dimensions.ranks(), !hangs);
  drawn.workload = DrawWorkload(random, drawn);
  drawn.mode = is_healthy ? random.Pick({Mode::kStreams, Mode::kOneStream, Mode::kSynchronous}) : ModeFor(kind, random);
  drawn.queue_depth = random.Pick({8u, 32u, 128u, 512u});
  drawn.timing.timeout = random.Pick<Duration>({10s, 10s, 30s});
  // A circle is none before everybody has come to stand in it.
  const bool may_be_early = kind != FaultKind::kSkipped && kind != FaultKind::kOppositeOrder;
  drawn.is_early = random.Chance(0.25) && drawn.sight.ages && may_be_early;
  drawn.lateness = drawn.timing.timeout + random.Time(1s, 300s);
  drawn.collecting = random.Pick<Duration>({0s, 1s});
  if (!is_healthy) DrawFaults(random, drawn, Layout(drawn.dimensions), kind);
  if (!drawn.expects_hang) {
    const int count = drawn.dimensions.ranks() > 1024 ? 2 : 8;
    const Duration end = TimeOfFirstSteps(drawn, drawn.dimensions.ranks() > 256 ? 2 : 8);
    for (int i = 0; i < count; ++i) drawn.moments.push_back(random.Time(1s, end));
    std::ranges::sort(drawn.moments);
  }
  return drawn;
}

std::string Describe(const Scenario& scenario) {
  const Dimensions& d = scenario.dimensions;
  const Workload& w = scenario.workload;
  std::string text = std::to_string(d.ranks()) + " ranks: tensor " + std::to_string(d.tensor) + " x data " +
                     std::to_string(d.data) + " x pipeline " + std::to_string(d.pipeline);
  if (d.instances > 1) text += ", " + std::to_string(d.instances) + " instances of the optimizer";
  if (d.experts > 1) text += ", experts over " + std::to_string(d.experts);
  text += "; " + std::string(Name(scenario.mode)) + ", " + std::to_string(scenario.queue_depth) + " deep\n";
  text += std::to_string(w.microbatches) + " microbatches of " + FormatDuration(w.compute) + ", first step " +
          FormatDuration(w.compile) + ", checkpoint every " + std::to_string(w.checkpoint_every) + " steps for " +
          FormatDuration(w.checkpoint) + (w.all_write ? " by all" : " by rank 0") + "\n";
  const Sight& s = scenario.sight;
  text += "seen: " + std::string(s.started ? "started" : "NOT whether started") + (s.ages ? ", ages" : ", NO ages") +
          (s.outside ? ", time outside" : "") + (s.progress ? ", progress" : "") +
          (s.kept == 0 ? ", all operations" : ", the newest " + std::to_string(s.kept) + " operations");
  text += "; hidden ranks:";
  for (uint32_t rank = 0; rank < s.is_hidden.size(); ++rank) {
    if (s.is_hidden[rank]) text += " " + std::to_string(rank);
  }
  return text + "; timeout " + FormatDuration(scenario.timing.timeout) + "\n";
}

}  // namespace aimaster::sim::collectives
