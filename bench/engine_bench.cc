// What the engine costs a large job: every input is stepped by one thread, so the sum of its steps is a bound on how
// soon ten thousand ranks are told anything.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>

#include "engine/engine.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;

class LargeJob {
 public:
  explicit LargeJob(uint32_t workers) : workers_(workers) {
    spec_.id = *JobId::Parse("dlc0123456789abc");
    spec_.roles = {{Role::kWorker, workers, 1}};
    spec_.local_nodes = std::max<uint32_t>(1, workers / 8);
    spec_.command = {"train"};
    spec_.fault_tolerance.enable_job_restart = true;
  }

  void Submit() {
    Feed(JobSubmitted{spec_});
    for (uint32_t i = 0; i < spec_.local_nodes; ++i) Feed(NodeJoined{NodeIndex{i}, "node", "10.0.0.1"});
  }
  void Start() {
    Feed(PortReserved{engine_.job().reservation, 2000});
    ForEach([this](InstanceIndex i, Attempt attempt) { Feed(InstanceStarted{i, attempt}); });
    ForEach([this](InstanceIndex i, Attempt attempt) { Feed(InstanceReady{i, attempt}); });
  }
  void FailAll() {
    ForEach([this](InstanceIndex i, Attempt attempt) {
      RankFailure failure{.rank = Rank{Value(i)}, .instance = i, .attempt = attempt, .node = NodeIndex{Value(i) / 8}};
      failure.exit = RankExit{.code = 1, .time = now_.wall};
      failure.last_error_line = std::string(4000, 'x');
      Feed(RankFailed{std::move(failure)});
      Feed(InstanceEnded{i, attempt});
    });
  }
  void Restart() {
    Judgement judgement{.fault = "Fault", .message = "boom", .retryable = Retryable::kYes};
    Feed(FailureJudged{engine_.job().judgement_number, judgement});
  }
  bool IsRunning() const { return engine_.job().status == JobStatus::kRunning; }

 private:
  template <typename Say>
  void ForEach(Say say) {
    for (uint32_t i = 0; i < workers_; ++i) say(InstanceIndex{i}, engine_.job().instances[i].attempt);
  }
  void Feed(Event event) {
    now_.monotonic = now_.monotonic + 1us;
    now_.wall = now_.wall + 1us;
    benchmark::DoNotOptimize(engine_.Step({now_, engine_.Fit(std::move(event))}));
  }

  const uint32_t workers_;
  JobSpec spec_;
  Engine engine_;
  Moment now_{Monotonic{1h}, Wall{24h}};
};

template <typename Before, typename What>
void Measure(benchmark::State& state, Before before, What what) {
  for (auto _ : state) {
    state.PauseTiming();
    auto job = std::make_unique<LargeJob>(static_cast<uint32_t>(state.range(0)));
    before(*job);
    state.ResumeTiming();
    what(*job);
    state.PauseTiming();
    job.reset();
    state.ResumeTiming();
  }
}

void BM_SubmitAndJoin(benchmark::State& state) {
  Measure(state, [](LargeJob&) {}, [](LargeJob& job) { job.Submit(); });
}
BENCHMARK(BM_SubmitAndJoin)->Arg(100)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

void BM_StartAll(benchmark::State& state) {
  Measure(state, [](LargeJob& job) { job.Submit(); }, [](LargeJob& job) { job.Start(); });
}
BENCHMARK(BM_StartAll)->Arg(100)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

void BM_FailAll(benchmark::State& state) {
  Measure(state, [](LargeJob& job) { job.Submit(), job.Start(); }, [](LargeJob& job) { job.FailAll(); });
}
BENCHMARK(BM_FailAll)->Arg(100)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

void BM_RestartAll(benchmark::State& state) {
  Measure(
      state, [](LargeJob& job) { job.Submit(), job.Start(), job.FailAll(); },
      [&state](LargeJob& job) {
        job.Restart();
        job.Start();
        if (!job.IsRunning()) state.SkipWithError("it does not run again");
      });
}
BENCHMARK(BM_RestartAll)->Arg(100)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace aimaster

BENCHMARK_MAIN();
