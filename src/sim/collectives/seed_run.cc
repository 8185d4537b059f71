#include "sim/collectives/seed_run.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>

#include "sim/collectives/observer.h"
#include "sim/collectives/story.h"

namespace aimaster::sim::collectives {
namespace {

using namespace std::chrono_literals;

constexpr Duration kStillWithin = 3600s;  // of simulated time; a fault of a kind that stops all has stopped it by then
constexpr Duration kEarlyStep = 500ms;

Duration ProcessorTime() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

class SeedRun {
 public:
  SeedRun(uint64_t seed, const Analysis& analysis, bool told)
      : analysis_(analysis),
        told_(told),
        result_{.scenario = DrawScenario(seed)},
        layout_(scenario().dimensions),
        cluster_(layout_, scenario().workload, scenario().mode, scenario().queue_depth, scenario().faults,
                 scenario().slow_link) {
    if (told_) result_.story = Describe(scenario());
  }

  SeedResult Run() {
    if (scenario().expects_hang) {
      RunIntoHang();
    } else {
      for (const Duration moment : scenario().moments) {
        cluster_.RunUntil(moment);
        Truth before = LookAt(cluster_, scenario().sight);
        const c4d::Observation observation = ObserveOver(cluster_, scenario().sight, scenario().collecting);
        Analyse(observation, std::move(before));
      }
    }
    result_.events = cluster_.events();
    result_.scenario.faults = cluster_.faults();
    return std::move(result_);
  }

 private:
  const Scenario& scenario() const { return result_.scenario; }

  void RunIntoHang() {
    if (scenario().is_early) {
      RunUntilAnyFires();
      while (LookAt(cluster_, scenario().sight).longest_wait <= scenario().timing.timeout &&
             cluster_.now() < kStillWithin) {
        cluster_.RunUntil(cluster_.now() + kEarlyStep);
      }
      // The first wait that is so long may be a healthy one. Who is guilty is missed a little later.
      cluster_.RunUntil(cluster_.now() + kEarlyStep);
    } else {
      cluster_.RunUntilStill(kStillWithin);
      if (!cluster_.is_still()) result_.judgement.misses.push_back("the job goes on: the simulator's own failure");
      cluster_.RunUntil(cluster_.now() + scenario().lateness);
    }
    Analyse(ObserveAll(cluster_, scenario().sight), LookAt(cluster_, scenario().sight));
  }

  void RunUntilAnyFires() {
    const auto any_fired = [&] {
      return std::ranges::any_of(cluster_.faults(), [](const Fault& fault) { return fault.fired.has_value(); });
    };
    while (!any_fired() && cluster_.now() < kStillWithin) cluster_.RunUntil(cluster_.now() + kEarlyStep);
  }

  void Analyse(const c4d::Observation& observation, Truth before) {
    const Duration began = ProcessorTime();
    const std::vector<c4d::Verdict> verdicts = analysis_(observation, scenario().timing);
    result_.analysed += ProcessorTime() - began;
    ++result_.observations;
    const Circumstances circumstances{.scenario = scenario(),
                                      .cluster = cluster_,
                                      .observation = observation,
                                      .before = std::move(before),
                                      .after = LookAt(cluster_, scenario().sight)};
    const Judgement judgement = Judge(circumstances, verdicts);
    if (told_ && (scenario().expects_hang || !verdicts.empty())) {
      result_.story += "\n" + TellFaults(cluster_) + TellTruth(circumstances) + TellVerdicts(verdicts, observation) +
                       TellJudgement(judgement);
    }
    Add(judgement);
  }

  void Add(const Judgement& judgement) {
    const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(result_.judgement.false_accusations, judgement.false_accusations);
    append(result_.judgement.misses, judgement.misses);
    result_.judgement.required += judgement.required;
  }

  const Analysis& analysis_;
  const bool told_;
  SeedResult result_;
  const Layout layout_;
  Cluster cluster_;
};

}  // namespace

SeedResult RunSeed(uint64_t seed, const Analysis& analysis, bool told) { return SeedRun(seed, analysis, told).Run(); }

}  // namespace aimaster::sim::collectives
