// What an append costs: the master answers agents and acts only after one, so it is part of every reaction time.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "engine/engine.h"
#include "journal/job_reader.h"
#include "journal/journal.h"

namespace aimaster {
namespace {

// AIMASTER_BENCH_DIR, else the temporary directory: the disk is what is measured, so which one matters.
class Place {
 public:
  Place() {
    const char* wanted = std::getenv("AIMASTER_BENCH_DIR");
    std::string pattern =
        (wanted == nullptr ? std::filesystem::temp_directory_path() : std::filesystem::path(wanted)) / "journal-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Place() { std::filesystem::remove_all(path_); }
  std::filesystem::path journal() const { return path_ / "journal.db"; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

JobSpec SpecOf(uint32_t workers) {
  JobSpec spec;
  spec.id = *JobId::Parse("dlc0123456789abc");
  spec.roles = {{Role::kWorker, workers, 1}};
  spec.local_nodes = std::max<uint32_t>(1, workers / 8);
  spec.command = {"train"};
  return spec;
}

// A job of so many workers, submitted, with all its nodes: each instance and node is written.
std::pair<Engine, JournalBatch> Submitted(uint32_t workers) {
  std::pair<Engine, JournalBatch> job;
  const auto feed = [&job](Event event) {
    Input input{{}, std::move(event)};
    StepResult result = job.first.Step(input);
    job.second.emplace_back(std::move(input), std::move(result));
  };
  const JobSpec spec = SpecOf(workers);
  feed(JobSubmitted{spec});
  for (uint32_t i = 0; i < spec.local_nodes; ++i)
    feed(NodeJoined{NodeIndex{i}, "node-" + std::to_string(i), "10.0.0.1"});
  return job;
}

void BM_AppendTheStartOfAJob(benchmark::State& state) {
  const auto [engine, batch] = Submitted(static_cast<uint32_t>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    const Place place;
    Journal journal = std::move(*Journal::OpenOrCreate(place.journal(), "rules"));
    state.ResumeTiming();
    if (!journal.Append(batch, engine.job())) state.SkipWithError("append failed");
  }
}
BENCHMARK(BM_AppendTheStartOfAJob)->Arg(8)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);

void BM_AppendOneInput(benchmark::State& state) {
  const auto [engine, batch] = Submitted(static_cast<uint32_t>(state.range(0)));
  const Place place;
  Journal journal = std::move(*Journal::OpenOrCreate(place.journal(), "rules"));
  if (!journal.Append(batch, engine.job())) state.SkipWithError("append failed");
  for (auto _ : state) {
    if (!journal.Append({{Input{{}, Tick{}}, {}}}, engine.job())) state.SkipWithError("append failed");
  }
}
BENCHMARK(BM_AppendOneInput)->Arg(8)->Arg(10'000)->Unit(benchmark::kMillisecond);

void BM_ReadSnapshot(benchmark::State& state) {
  const auto [engine, batch] = Submitted(static_cast<uint32_t>(state.range(0)));
  const Place place;
  const JobDirectory directory = *JobDirectory::Create(Home(place.path()), engine.job().spec);
  Journal journal = std::move(*Journal::OpenOrCreate(directory.journal(), "rules"));
  if (!journal.Append(batch, engine.job())) state.SkipWithError("append failed");
  JobReader reader = *JobReader::Open(directory);
  for (auto _ : state) {
    if (!reader.ReadSnapshot()) state.SkipWithError("read failed");
  }
}
BENCHMARK(BM_ReadSnapshot)->Arg(8)->Arg(10'000)->Unit(benchmark::kMillisecond);

// What a master does before it can do anything else.
void BM_OpenAndLoad(benchmark::State& state) {
  const Place place;
  {
    Journal journal = std::move(*Journal::OpenOrCreate(place.journal(), "rules"));
    JournalBatch batch;
    for (int64_t i = 0; i < state.range(0); ++i) {
      batch.push_back({Input{{}, RankSucceeded{InstanceIndex{1}, Attempt{2}, Rank{3}}}, {}});
    }
    if (!journal.Append(batch, {})) state.SkipWithError("append failed");
  }
  for (auto _ : state) {
    Journal journal = std::move(*Journal::OpenOrCreate(place.journal(), "rules"));
    if (!journal.LoadInputs()) state.SkipWithError("load failed");
  }
}
BENCHMARK(BM_OpenAndLoad)->Arg(100)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace aimaster

BENCHMARK_MAIN();
