// aimaster-c4d-sim: trainings that hang in simulated ways, and how often the right rank is named.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "c4d/hangs.h"
#include "sim/collectives/seed_run.h"
#include "sim/collectives/slow_run.h"
#include "sim/collectives/tally.h"
#include "sim/seed_file.h"

namespace aimaster::sim::collectives {
namespace {

constexpr const char* kUsage = R"(usage: ./dev sim collectives [options]

  --seeds N         how many seeds (2000); odd ones have a fault, even ones are healthy
  --first-seed S    the first of them (1)
  --seed S          this one alone
  --trace           tell the story of --seed
  --slow            trainings that lose time instead, 150 of them; figures that nothing is demanded of
  --regressions F   seeds that failed before, run first, which all have to be right now
  --jobs J          threads (as many as there are cores)
)";

struct Options {
  std::optional<uint64_t> seeds;
  uint64_t first_seed = 1;
  std::optional<uint64_t> seed;
  bool trace = false;
  bool slow = false;
  std::string regressions;
  unsigned jobs = 1;
};

[[noreturn]] void Usage(const std::string& complaint) {
  std::fprintf(stderr, "./dev sim collectives: %s\n%s", complaint.c_str(), kUsage);
  std::exit(2);
}

uint64_t Number(const std::string& option, const char* text) {
  char* end = nullptr;
  const uint64_t number = std::strtoull(text, &end, 10);
  if (*text == '\0' || *end != '\0') Usage(option + " takes a number");
  return number;
}

Options Parse(char** argv) {
  Options options;
  options.jobs = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  for (++argv; *argv != nullptr; ++argv) {
    const std::string name = *argv;
    if (name == "--trace") {
      options.trace = true;
    } else if (name == "--slow") {
      options.slow = true;
    } else if (name == "--help" || name == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    } else if (argv[1] == nullptr) {
      Usage("'" + name + "' is not an option, or lacks its value");
    } else if (name == "--seeds") {
      options.seeds = Number(name, *++argv);
    } else if (name == "--first-seed") {
      options.first_seed = Number(name, *++argv);
    } else if (name == "--seed") {
      options.seed = Number(name, *++argv);
    } else if (name == "--jobs") {
      options.jobs = static_cast<unsigned>(std::clamp<uint64_t>(Number(name, *++argv), 1, 256));
    } else if (name == "--regressions") {
      options.regressions = *++argv;
    } else {
      Usage("'" + name + "' is not an option");
    }
  }
  if (options.trace && !options.seed) Usage("--trace tells the story of one --seed");
  return options;
}

std::vector<uint64_t> ReadRegressions(const std::string& path) {
  if (path.empty()) return {};
  const std::optional<std::vector<uint64_t>> seeds = ReadSeedFile(path);
  if (!seeds) Usage("cannot read " + path);
  return *seeds;
}

void Print(const SeedResult& result) {
  const std::string kind =
      result.scenario.faults.empty() ? "healthy" : std::string(Name(result.scenario.faults.front().kind));
  const auto seed = static_cast<unsigned long long>(result.scenario.seed);
  std::printf("seed %llu (%s):", seed, kind.c_str());
  if (!result.judgement.false_accusations.empty()) {
    std::printf(" FALSE %s", result.judgement.false_accusations.front().c_str());
  }
  if (!result.judgement.misses.empty()) std::printf(" MISSED %s", result.judgement.misses.front().c_str());
  std::printf("\n  ./dev sim collectives --seed %llu --trace\n", seed);
}

int Trace(uint64_t seed) {
  const SeedResult result = RunSeed(seed, c4d::FindHangs, true);
  std::fputs(result.story.c_str(), stdout);
  return result.judgement.is_right() ? 0 : 1;
}

int RunSeeds(const Options& options) {
  const auto began = std::chrono::steady_clock::now();
  std::vector<uint64_t> seeds;
  size_t kept = 0;
  if (options.seed) {
    seeds = {*options.seed};
  } else {
    seeds = ReadRegressions(options.regressions);
    kept = seeds.size();
    for (uint64_t i = 0; i < options.seeds.value_or(2000); ++i) seeds.push_back(options.first_seed + i);
  }
  std::mutex mutex;  // of the three below it
  Tally tally;
  uint64_t relapses = 0;
  std::vector<SeedResult> wrong;
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < seeds.size(); i = next++) {
      SeedResult result = RunSeed(seeds[i], c4d::FindHangs, false);
      const std::lock_guard lock(mutex);
      tally.Add(result);
      if (result.judgement.is_right()) continue;
      relapses += i < kept;
      wrong.push_back(std::move(result));
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned job = 0; job < options.jobs; ++job) threads.emplace_back(work);
  }
  std::ranges::sort(wrong, {}, [](const SeedResult& result) { return result.scenario.seed; });
  for (const SeedResult& result : wrong) Print(result);
  std::printf("%s%zu seeds, %zu wrong, %.1f s\n", tally.Table().c_str(), seeds.size(), wrong.size(),
              std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  if (relapses > 0) std::printf("%llu that failed before fail again\n", static_cast<unsigned long long>(relapses));
  return tally.is_good() && relapses == 0 ? 0 : 1;
}

int RunSlowSeeds(const Options& options) {
  struct Row {
    uint64_t seeds = 0, demanding = 0, named = 0, accused = 0;
  };
  std::array<Row, 3> rows;
  const uint64_t first = options.seed.value_or(options.first_seed);
  const uint64_t count = options.seed ? 1 : options.seeds.value_or(150);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const SlowResult result = RunSlowSeed(seed);
    Row& row = rows[static_cast<size_t>(result.slowness)];
    ++row.seeds;
    row.demanding += result.has_to_be_named;
    row.named += result.has_to_be_named && result.is_named;
    row.accused += !result.false_accusations.empty();
    const auto number = static_cast<unsigned long long>(seed);
    if (options.trace) {
      std::fputs(result.story.c_str(), stdout);
    } else if (!result.false_accusations.empty()) {
      std::printf("seed %llu: FALSE %s\n", number, result.false_accusations.front().c_str());
    } else if (result.has_to_be_named && !result.is_named) {
      std::printf("seed %llu: MISSED rank %u\n", number, result.rank);
    }
  }
  constexpr std::array kNames = {"healthy", "slow rank", "slow link"};
  std::printf("%-14s %7s %9s %7s %7s\n", "", "seeds", "to name", "named", "false");
  for (size_t i = 0; i < rows.size(); ++i) {
    std::printf("%-14s %7llu %9llu %7llu %7llu\n", kNames[i], static_cast<unsigned long long>(rows[i].seeds),
                static_cast<unsigned long long>(rows[i].demanding), static_cast<unsigned long long>(rows[i].named),
                static_cast<unsigned long long>(rows[i].accused));
  }
  return 0;
}

}  // namespace

int Main(char** argv) {
  const Options options = Parse(argv);
  if (options.slow) return RunSlowSeeds(options);
  return options.trace ? Trace(*options.seed) : RunSeeds(options);
}

}  // namespace aimaster::sim::collectives

int main(int, char** argv) { return aimaster::sim::collectives::Main(argv); }
