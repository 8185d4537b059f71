// EngineHarness: a job on the test bench. It plays agents, provider and detector in one line each, so that a test reads
// as the story of a job.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace aimaster {

class EngineHarness {
 public:
  using Milliseconds = std::chrono::milliseconds;

  explicit EngineHarness(uint32_t workers = 2, uint32_t nodes = 1) {
    spec.id = *JobId::Parse("dlc0123456789abc");
    spec.roles = {{Role::kWorker, workers, 1}};
    spec.local_nodes = nodes;
    spec.command = {"train"};
    spec.fault_tolerance.enable_job_restart = true;
  }

  // --- time and raw inputs ---
  StepResult Feed(Event event) {
    last = engine.Step({now, event});
    inputs.push_back({now, std::move(event)});
    return last;
  }
  void Pass(Duration duration) {
    now.monotonic = now.monotonic + duration;
    now.wall = now.wall + duration;
  }
  StepResult PassTo(std::optional<Monotonic> deadline) {
    EXPECT_TRUE(deadline);
    Pass(std::max<Duration>(*deadline - now.monotonic, Duration::zero()));
    return Feed(Tick{});
  }
  StepResult NextTick() { return PassTo(engine.NextDeadline()); }

  // --- the parts that others play ---
  StepResult Submit() { return Feed(JobSubmitted{spec}); }
  void Join(uint32_t node) {
    Feed(NodeJoined{NodeIndex{node}, "node-" + std::to_string(node), "10.0.0." + std::to_string(node)});
  }
  void JoinAll() {
    for (uint32_t node = 0; node < spec.local_nodes; ++node) Join(node);
  }
  // Every node answers that it holds as many ports as it was asked for.
  StepResult Ports(uint16_t port = 23456) {
    for (const ReservePort& order : Of<ReservePort>({.actions = engine.Outstanding()})) {
      PortReserved reserved{.reservation = order.reservation, .port = port, .node = order.node};
      for (uint32_t i = 0; i < order.count; ++i) reserved.ports.push_back(port++);
      Feed(std::move(reserved));
    }
    return last;
  }
  StepResult Port(uint16_t port = 23456) { return Feed(PortReserved{job().reservation, port}); }
  void StartedAll() {
    for (uint32_t i = 0; i < job().instances.size(); ++i) Feed(InstanceStarted{InstanceIndex{i}, AttemptOf(i)});
  }
  void ReadyAll() {
    for (uint32_t i = 0; i < job().instances.size(); ++i) Feed(InstanceReady{InstanceIndex{i}, AttemptOf(i)});
  }
  // From nothing, or from the start of a round, to a job whose ranks all run.
  void Run() {
    if (job().phase == Phase::kNew) Submit();
    if (job().phase == Phase::kAcquiring) JoinAll();
    if (job().phase == Phase::kReserving) Port();
    StartedAll();
    ReadyAll();
    ASSERT_EQ(job().phase, Phase::kRunning);
    ASSERT_EQ(job().status, JobStatus::kRunning);
  }
  RankFailure Failure(uint32_t rank, int code) const {
    const InstanceIndex instance = job().instance_of_rank.at(rank);
    return {.rank = Rank{rank},
            .instance = instance,
            .attempt = AttemptOf(Value(instance)),
            .node = job().instances[Value(instance)].node,
            .exit = RankExit{.code = code, .time = now.wall}};
  }
  StepResult Fail(uint32_t rank, int code = 1) { return Feed(RankFailed{Failure(rank, code)}); }
  StepResult Ended(uint32_t instance) { return Feed(InstanceEnded{InstanceIndex{instance}, AttemptOf(instance)}); }
  void EndedAll() {
    for (uint32_t i = 0; i < job().instances.size(); ++i) Ended(i);
  }
  // Every node answers, and the window passes.
  void Collect(std::vector<Rank> dumping = {}) {
    for (const auto& [index, node] : job().nodes) Feed(EvidenceCollected{job().collection, index, dumping});
    if (dumping.empty() && job().phase == Phase::kCollecting) NextTick();
  }
  Judgement Verdict(uint32_t rank, Retryable retryable = Retryable::kYes, int code = 1) const {
    const InstanceIndex instance = job().instance_of_rank.at(rank);
    Judgement judgement{.root_rank = Rank{rank},
                        .root_instance = instance,
                        .root_node = job().instances[Value(instance)].node,
                        .error_code = code,
                        .fault = "TestFault",
                        .category = "user",
                        .message = "boom",
                        .retryable = retryable,
                        .reasons = {"rank " + std::to_string(rank) + " said boom"},
                        .failed_ranks = 1};
    judgement.details.push_back(
        {.rank = Rank{rank}, .instance = instance, .node = judgement.root_node, .is_root = true});
    return judgement;
  }
  StepResult Judged(Judgement judgement) { return Feed(FailureJudged{job().judgement_number, std::move(judgement)}); }
  StepResult JudgedApart(std::vector<Judgement> judgements) {
    FailureJudged judged{.judgement_number = job().judgement_number, .judgement = judgements.at(0), .apart = true};
    judged.others.assign(judgements.begin() + 1, judgements.end());
    return Feed(std::move(judged));
  }
  // In an Async job: the failure of a worker up to the decision.
  StepResult FailAlone(uint32_t rank, Retryable retryable = Retryable::kYes, int code = 1) {
    Fail(rank, code);
    if (job().phase == Phase::kCollecting) Collect();
    return JudgedApart({Verdict(rank, retryable, code)});
  }
  // And until it runs again.
  void RestartAlone(uint32_t rank, int code = 1) {
    const uint32_t instance = Value(job().instance_of_rank.at(rank));
    FailAlone(rank, Retryable::kYes, code);
    Ended(instance);
    if (RenewalOf(job().instances[instance]) == Renewal::kPausing) PassTo(job().instances[instance].own->deadline);
    Feed(InstanceStarted{InstanceIndex{instance}, AttemptOf(instance)});
    Feed(InstanceReady{InstanceIndex{instance}, AttemptOf(instance)});
  }
  // One whole failure up to the decision.
  StepResult FailAndJudge(uint32_t rank, Retryable retryable = Retryable::kYes, int code = 1) {
    Fail(rank, code);
    if (job().phase == Phase::kCollecting) Collect();
    return Judged(Verdict(rank, retryable, code));
  }

  // --- what can be asked ---
  const JobState& job() const { return engine.job(); }
  Attempt AttemptOf(uint32_t instance) const { return job().instances[instance].attempt; }

  template <typename T>
  static std::vector<T> Of(const StepResult& result) {
    std::vector<T> found;
    for (const Action& action : result.actions) {
      if (const T* wanted = std::get_if<T>(&action)) found.push_back(*wanted);
    }
    return found;
  }
  std::vector<std::string> StagesOf(size_t round) const {
    std::vector<std::string> names;
    for (const StageTime& stage : job().rounds.at(round).stages) names.emplace_back(Name(stage.stage));
    return names;
  }

  JobSpec spec;
  Engine engine;
  Moment now{Monotonic{std::chrono::hours{1}}, Wall{std::chrono::hours{24 * 365 * 50}}};
  StepResult last;
  std::vector<Input> inputs;
};

inline Judgement SuspectNode(const EngineHarness& job, uint32_t rank) {
  Judgement judgement = job.Verdict(rank);
  judgement.node_suspect = true;
  judgement.severity = Severity::kIsolateNode;
  return judgement;
}

}  // namespace aimaster
