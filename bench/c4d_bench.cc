// Looks for the rank at fault in a large training that hangs: tensor, data and pipeline parallel groups, of which one
// rank's program stands still, or its device, until all others wait. Time and memory are those of the analysis alone.
//
// Times are of the processor: there is one thread that waits for nothing, and on a busy machine a clock on the wall
// says little about it.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <string>

#include "c4d/hangs.h"
#include "c4d/simulated_job.h"

namespace {
size_t g_now = 0, g_peak = 0;
}  // namespace

// Everything that is allocated is counted.
void* operator new(size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  g_now += malloc_usable_size(memory);
  if (g_now > g_peak) g_peak = g_now;
  return memory;
}
namespace {
void Release(void* memory) {
  if (memory != nullptr) g_now -= malloc_usable_size(memory);
  std::free(memory);
}
}  // namespace
void operator delete(void* memory) noexcept { Release(memory); }
void operator delete(void* memory, size_t) noexcept { Release(memory); }

namespace {

using namespace aimaster;
using namespace aimaster::c4d;
using namespace std::chrono_literals;

void Measure(const SimulatedLayout& layout, SimulatedFault fault, const char* what) {
  const uint32_t culprit = layout.ranks() / 2 + 3;
  SimulatedJob simulated(layout);
  simulated.Break(culprit, fault, simulated.program_length(culprit) / 2);
  const Observation job = simulated.Run(30s);

  constexpr int kRuns = 5;
  double best = 1e9;
  size_t memory = 0;
  std::vector<Verdict> verdicts;
  for (int run = 0; run < kRuns; ++run) {
    verdicts.clear();
    verdicts.shrink_to_fit();
    const size_t before = g_peak = g_now;
    const std::clock_t began = std::clock();
    verdicts = FindHangs(job, {});
    best = std::min(best, 1000.0 * static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
    memory = g_peak - before;
  }
  std::printf("%6u ranks, %6zu states, %7zu operations, %-24s %6.1f ms, %5.1f MB:", layout.ranks(), job.states.size(),
              job.operations.size(), what, best, static_cast<double>(memory) / (1 << 20));
  for (const Verdict& verdict : verdicts) {
    std::printf(" %s of rank %u%s, %zu wait", std::string(Name(verdict.kind)).c_str(), Value(verdict.ranks.front()),
                verdict.is_group ? " and its group" : "", verdict.waiting.size());
  }
  std::printf(" (it is rank %u)\n", culprit);
}

}  // namespace

int main() {
  for (const SimulatedLayout& layout : {SimulatedLayout{.tensor = 8, .data = 128, .pipeline = 16, .steps = 2},
                                        SimulatedLayout{.tensor = 8, .data = 782, .pipeline = 16, .steps = 2}}) {
    Measure(layout, SimulatedFault::kHost, "a program stands still");
    Measure(layout, SimulatedFault::kCompletions, "a device is lost");
    Measure(layout, SimulatedFault::kDevice, "a device stands still");
  }
  return 0;
}
