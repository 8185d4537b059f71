// Whatever happens to a job, the counts are what counting gives; and an engine that is made of a stored state goes on
// as the one that never stopped.
#include <rapidcheck.h>

#include "engine/engine_harness.h"

namespace aimaster {
namespace {

// Anything an agent, a provider or a person may say, sense or nonsense.
Event AnyEvent(const JobState& job, const JobSpec& spec) {
  const auto below = [](uint32_t end) { return *rc::gen::inRange<uint32_t>(0, std::max(1u, end)); };
  const InstanceIndex instance{below(static_cast<uint32_t>(job.instances.size()))};
  const Attempt attempt = job.instances.empty() ? Attempt{} : job.instances[Value(instance)].attempt;
  const NodeIndex node{below(static_cast<uint32_t>(job.nodes.size()) + 1)};
  switch (below(15)) {
    case 0:
      return JobSubmitted{spec};
    case 1:
      return NodeJoined{node, "node", "10.0.0.1"};
    case 2:
      return NodeLost{node, "gone"};
    case 3:
      return NodeDenied{"no"};
    case 4:
    case 5:
      return PortReserved{job.reservation, 2000, node, std::vector<uint16_t>(below(4) + 1, 2000)};
    case 6:
    case 7:
      return InstanceStarted{instance, attempt};
    case 8:
      return InstanceReady{instance, attempt};
    case 9:
      return RankSucceeded{instance, attempt, Rank{below(8)}};
    case 10: {
      const Rank rank{below(8)};
      return RankFailed{{.rank = rank, .instance = instance, .attempt = attempt, .exit = RankExit{.code = 1}}};
    }
    case 11:
      return InstanceEnded{instance, attempt};
    case 12:
      return EvidenceCollected{job.collection, node, {}};
    case 13:
      return FailureJudged{job.judgement_number,
                           {.root_instance = instance, .message = "boom", .retryable = Retryable::kYes},
                           below(2) == 1};
    default:
      return Tick{};
  }
}

TEST(Tallies, AreWhatCountingGives) {
  EXPECT_TRUE(rc::check([] {
    EngineHarness job(4, 2);
    job.spec.roles.front().ranks_per_instance = 2;
    if (*rc::gen::arbitrary<bool>()) {
      job.spec.fault_tolerance.execution_mode = ExecutionMode::kAsync;
      job.spec.roles.push_back({Role::kPs, 1, 1});
    }
    job.spec.framework =
        *rc::gen::element(Framework::kPyTorch, Framework::kTensorFlow, Framework::kElasticBatch, Framework::kMpi);
    job.spec.success_policy =
        *rc::gen::element(SuccessPolicy::kAuto, SuccessPolicy::kAllWorkers, SuccessPolicy::kChiefWorker);
    job.Submit();
    job.JoinAll();
    job.Ports();
    Engine other;
    for (const Input& input : job.inputs) other.Step(input);
    const size_t steps = *rc::gen::inRange<size_t>(0, 120);
    for (size_t i = 0; i < steps; ++i) {
      job.Pass(std::chrono::seconds{*rc::gen::inRange(0, 20)});
      const StepResult result = job.Feed(AnyEvent(job.job(), job.spec));
      RC_ASSERT(job.job().tallies == CountAll(job.job()));
      other = Engine(other.job());
      RC_ASSERT(other.Step(job.inputs.back()) == result);
    }
  }));
}

}  // namespace
}  // namespace aimaster
