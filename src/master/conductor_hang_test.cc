// From heartbeats to a finding: asked before anything is concluded, durable before anything is done.
#include "master/conductor_bench.h"

namespace aimaster {
namespace {

class HangBench : public Bench {
 public:
  HangBench() {
    spec.fault_tolerance.enable_job_hang_detection = true;
    spec.fault_tolerance.job_hang_interval = 10s;
  }
  void RunAll() {
    RunToStart();
    for (uint32_t rank : {0u, 1u}) Report(kFirst, 2 + rank, Started(rank));
    Settle();
    printed = now;
    Heard(kFirst);
  }
  // The agent says for how long it has been quiet, and what it was asked last.
  void Beat() {
    v1::ToMaster message;
    v1::Heartbeat& beat = *message.mutable_heartbeat();
    beat.set_monotonic_ns(now.monotonic.since_origin.count());
    beat.set_silent_ns((now.monotonic - printed.monotonic).count());
    beat.set_look(asked);
    Say(kFirst, message);
  }
  // A heartbeat every second, for so long.
  void Live(Duration time) {
    for (const Monotonic end = now.monotonic + time; now.monotonic < end;) {
      Pass(1s);
      Beat();
      conductor.Watch(now);
      Settle();
    }
  }
  // True when it is asked now; then it knows by what number.
  bool IsAsked() {
    conductor.OnTime(now);
    for (const v1::ToAgent& message : Heard(kFirst)) {
      if (message.command().has_look_now()) asked = message.command().look_now().number();
    }
    return asked != 0;
  }
  size_t Found() {
    size_t found = 0;
    for (const auto& [input, result] : conductor.BeginWrite()) found += std::holds_alternative<HangFound>(input.event);
    return found;
  }
  Phase phase() const { return conductor.engine().job().phase; }

  Moment printed;
  uint64_t asked = 0;
};

TEST(ConductorHangTest, AtTheEndOfTheIntervalAgentsAreAskedAndTheirAnswerIsTheFinding) {
  HangBench bench;
  bench.RunAll();
  bench.Live(9s);
  bench.Heard(kFirst);
  EXPECT_EQ(bench.conductor.NextDeadline(), bench.printed.monotonic + 10s);
  bench.Pass(1s);
  ASSERT_TRUE(bench.IsAsked());
  EXPECT_FALSE(bench.conductor.WantsToWrite()) << "nothing is concluded yet";
  bench.Beat();
  ASSERT_TRUE(bench.conductor.WantsToWrite());
  EXPECT_EQ(bench.Found(), 1u);
  EXPECT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kStopInstance), 0u) << "it is not durable";
  bench.conductor.OnDurable(bench.now);
  bench.Settle();
  EXPECT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kStopInstance), 0u) << "call stacks first";
  bench.conductor.OnStacksStored(bench.now, {.capture = 1, .ranks_asked = 2, .path = {}, .summary = "nothing"});
  bench.Settle();
  EXPECT_EQ(bench.conductor.engine().job().records.at(0).judgement.fault, "JobHang");
  EXPECT_EQ(bench.phase(), Phase::kStopping);
  EXPECT_EQ(CountOf(bench.Heard(kFirst), v1::Command::kStopInstance), 2u);
}

TEST(ConductorHangTest, WhoHasPrintedInTheMeantimeIsNotSilent) {
  HangBench bench;
  bench.RunAll();
  bench.Live(9s);
  bench.Pass(900ms);
  bench.printed = bench.now;
  bench.Pass(100ms);
  ASSERT_TRUE(bench.IsAsked());
  bench.Beat();
  EXPECT_FALSE(bench.conductor.WantsToWrite());
  EXPECT_EQ(bench.conductor.NextDeadline(), bench.printed.monotonic + 10s);
}

TEST(ConductorHangTest, WhileTheJournalCannotBeWrittenNothingIsFound) {
  HangBench bench;
  bench.RunAll();
  bench.Live(5s);
  bench.Report(kFirst, 9, Bench::Started(0));
  bench.conductor.BeginWrite();
  bench.conductor.OnNotDurable("disk full");
  for (int i = 0; i < 10; ++i) {
    bench.Pass(1s);
    bench.Beat();
    EXPECT_FALSE(bench.IsAsked());
  }
  EXPECT_EQ(bench.phase(), Phase::kRunning);
  bench.Settle();
  EXPECT_TRUE(bench.IsAsked()) << "it can be written again, and silence has gone on";
}

TEST(ConductorHangTest, AWatchdogsTimeoutBecomesAnAdvice) {
  Bench bench;
  bench.RunToStart();
  v1::Report report;
  v1::RankExited& exited = *report.mutable_rank_exited();
  exited.set_code(1);
  v1::LineMatch& match = *exited.add_matches();
  match.set_rule("CollectiveTimeout");
  match.set_file("rank0.err");
  match.set_line("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, Timeout(ms)=600000)");
  bench.Report(kFirst, 2, report);
  for (bench.Pass(3min); bench.conductor.engine().job().records.empty(); bench.Pass(1s)) {
    bench.conductor.OnTime(bench.now);
    bench.Settle();
    ASSERT_LT(bench.now.monotonic.since_origin, 2000s);
  }
  EXPECT_EQ(bench.conductor.engine().job().records[0].judgement.advised_interval, 450s);
}

TEST(ConductorHangTest, APauseThatLastsIsToldOnceAndSoIsItsEnd) {
  HangBench bench;
  bench.RunAll();
  const auto told = [&] {
    std::vector<std::string> lines;
    for (const Effect& effect : bench.conductor.TakeEffects()) {
      const auto* print = std::get_if<Print>(&effect);
      if (print != nullptr && print->line.contains("heard")) lines.push_back(print->line);
    }
    return lines;
  };
  const auto silent = [&](Duration time) {
    for (const Monotonic end = bench.now.monotonic + time; bench.now.monotonic < end;) {
      bench.Pass(1s);
      bench.conductor.Watch(bench.now);
    }
  };
  bench.Live(2s);
  told();
  silent(29s);
  EXPECT_TRUE(told().empty());
  silent(2s);
  const std::vector<std::string> lines = told();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "no hang can be found while these nodes are not heard, 30.0 s by now: node");
  silent(60s);
  EXPECT_TRUE(told().empty()) << "it is known";
  bench.Beat();
  bench.conductor.Watch(bench.now);
  EXPECT_EQ(told(), std::vector<std::string>{"all nodes are heard again, and a hang is looked for"});
  silent(10s);
  bench.Beat();
  bench.conductor.Watch(bench.now);
  EXPECT_TRUE(told().empty()) << "too short to be told";
}

}  // namespace
}  // namespace aimaster
