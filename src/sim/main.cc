// aimaster-sim: runs seeds, and says what it takes to see a failure again: one line.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/campaign.h"
#include "sim/seed_file.h"
#include "sim/seed_run.h"

namespace aimaster::sim {
namespace {

constexpr const char* kUsage = R"(usage: ./dev sim [options]

  --seeds N         how many seeds (2000)
  --first-seed S    the first of them (1)
  --seed S          this one alone
  --trace           tell the story of --seed
  --break NAME      run a broken product; the checker that has to find that must, within --seeds (1000)
  --breaks          the same with every way to break it
  --regressions F   seeds that failed before, run first: a number and a word about it per line
  --jobs J          processes (as many as there are cores)
  --json            the result as one line of JSON
)";

struct Options {
  uint64_t seeds = 0;  // 0: as usual
  uint64_t first_seed = 1;
  std::optional<uint64_t> seed;
  bool trace = false;
  std::vector<Break> breaks;
  std::string regressions;
  unsigned jobs = 1;
  bool json = false;
};

[[noreturn]] void Usage(const std::string& complaint) {
  std::fprintf(stderr, "./dev sim: %s\n%s\nways to break it (--break), each with the checker that has to find it:\n",
               complaint.c_str(), kUsage);
  for (const BreakInfo& info : AllBreaks()) {
    std::fprintf(stderr, "  %-18s %-15s %s\n", std::string(info.name).c_str(), std::string(info.checker).c_str(),
                 std::string(info.what).c_str());
  }
  std::exit(2);
}

uint64_t Number(const char* option, const char* text) {
  char* end = nullptr;
  const uint64_t number = text == nullptr ? 0 : std::strtoull(text, &end, 10);
  if (text == nullptr || *text == '\0' || *end != '\0') Usage(std::string(option) + " takes a number");
  return number;
}

Options Parse(char** argv) {
  Options options;
  options.jobs = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  for (++argv; *argv != nullptr; ++argv) {
    const std::string name = *argv;
    if (name == "--trace") {
      options.trace = true;
    } else if (name == "--json") {
      options.json = true;
    } else if (name == "--breaks") {
      for (const BreakInfo& info : AllBreaks()) options.breaks.push_back(info.kind);
    } else if (name == "--help" || name == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    } else if (argv[1] == nullptr) {
      Usage("'" + name + "' is not an option, or lacks its value");
    } else if (name == "--seeds") {
      options.seeds = Number("--seeds", *++argv);
    } else if (name == "--first-seed") {
      options.first_seed = Number("--first-seed", *++argv);
    } else if (name == "--seed") {
      options.seed = Number("--seed", *++argv);
    } else if (name == "--jobs") {
      options.jobs = std::max(1u, static_cast<unsigned>(Number("--jobs", *++argv)));
    } else if (name == "--regressions") {
      options.regressions = *++argv;
    } else if (name == "--break") {
      const std::optional<Break> broken = ParseBreak(*++argv);
      if (!broken) Usage("'" + std::string(*argv) + "' is no way to break it");
      options.breaks.push_back(*broken);
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

std::vector<uint64_t> Seeds(const Options& options, uint64_t usual) {
  if (options.seed) return {*options.seed};
  std::vector<uint64_t> seeds = ReadRegressions(options.regressions);
  const uint64_t count = options.seeds == 0 ? usual : options.seeds;
  for (uint64_t i = 0; i < count; ++i) seeds.push_back(options.first_seed + i);
  return seeds;
}

std::string Reproduce(uint64_t seed, Break broken) {
  return "./dev sim --seed " + std::to_string(seed) +
         (broken == Break::kNone ? "" : " --break " + std::string(InfoOf(broken).name)) + " --trace";
}

void Print(const Finding& finding, Break broken) {
  std::printf("seed %llu violates '%s': %s\n  %s\n", static_cast<unsigned long long>(finding.seed),
              finding.checker.c_str(), finding.what.c_str(), Reproduce(finding.seed, broken).c_str());
}

int Trace(const Options& options) {
  const Break broken = options.breaks.empty() ? Break::kNone : options.breaks.front();
  const Verdict verdict = RunSeed(*options.seed, broken, true);
  if (verdict.violation) {
    std::printf("\n");
    Print({*options.seed, verdict.violation->checker, verdict.violation->what}, broken);
  } else {
    std::printf("\nseed %llu: no violation; the job is %s\n", static_cast<unsigned long long>(*options.seed),
                std::string(aimaster::Name(verdict.status)).c_str());
  }
  return verdict.violation ? 1 : 0;
}

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

int RunSeeds(const Options& options) {
  const auto start = Clock::now();
  const bool on_terminal = ::isatty(STDOUT_FILENO) == 1 && !options.json;
  CampaignOptions campaign{.seeds = Seeds(options, 2000), .jobs = options.jobs};
  const size_t all = campaign.seeds.size();
  campaign.on_progress = [&](uint64_t done, uint64_t found) {
    if (!on_terminal || done % 50 != 0) return;
    std::printf("\r%llu of %zu seeds, %llu violations, %.0f seeds/s ", static_cast<unsigned long long>(done), all,
                static_cast<unsigned long long>(found), static_cast<double>(done) / SecondsSince(start));
    std::fflush(stdout);
  };
  const CampaignResult result = RunCampaign(campaign);
  const double seconds = SecondsSince(start);
  if (options.json) {
    nlohmann::json violations = nlohmann::json::array();
    for (const Finding& finding : result.findings) {
      violations.push_back({{"seed", finding.seed},
                            {"checker", finding.checker},
                            {"what", finding.what},
                            {"reproduce", Reproduce(finding.seed, Break::kNone)}});
    }
    const nlohmann::json object = {
        {"seeds", result.seeds_run}, {"events", result.events}, {"seconds", seconds}, {"violations", violations}};
    std::printf("%s\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    if (on_terminal) std::printf("\r%60s\r", "");
    for (const Finding& finding : result.findings) Print(finding, Break::kNone);
    std::printf("%llu seeds, %zu violations, %.1f s, %.0f seeds/s\n", static_cast<unsigned long long>(result.seeds_run),
                result.findings.size(), seconds, static_cast<double>(result.seeds_run) / seconds);
  }
  return result.findings.empty() ? 0 : 1;
}

// Each has to be found; one that is not is the failure here.
int RunBreaks(const Options& options) {
  int missed = 0;
  nlohmann::json array = nlohmann::json::array();
  for (const Break broken : options.breaks) {
    const BreakInfo& info = InfoOf(broken);
    CampaignOptions campaign{
        .seeds = Seeds(options, 1000), .broken = broken, .jobs = options.jobs, .stop_at_first = true};
    const CampaignResult result = RunCampaign(campaign);
    const bool caught = !result.findings.empty() && result.findings.front().checker == info.checker;
    missed += !caught;
    const std::string name(info.name), checker(info.checker);
    array.push_back({{"break", name}, {"checker", checker}, {"caught", caught}, {"seeds", result.seeds_run}});
    if (options.json) continue;
    std::printf("%-18s %s by '%s' after %llu seeds\n", name.c_str(), caught ? "caught" : "NOT CAUGHT", checker.c_str(),
                static_cast<unsigned long long>(result.seeds_run));
    if (!result.findings.empty()) Print(result.findings.front(), broken);
    std::fflush(stdout);
  }
  if (options.json) std::printf("%s\n", array.dump().c_str());
  return missed == 0 ? 0 : 1;
}

}  // namespace

int Main(char** argv) {
  const Options options = Parse(argv);
  if (options.trace) return Trace(options);
  return options.breaks.empty() ? RunSeeds(options) : RunBreaks(options);
}

}  // namespace aimaster::sim

int main(int, char** argv) { return aimaster::sim::Main(argv); }
