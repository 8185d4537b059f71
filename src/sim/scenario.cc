#include "sim/scenario.h"

#include <algorithm>

#include "core/fnv1a.h"

namespace aimaster::sim {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

milliseconds Milliseconds(Random& random, milliseconds least, milliseconds most) {
  return std::chrono::duration_cast<milliseconds>(random.Time(least, most));
}

FaultToleranceParameters DrawParameters(Random& random) {
  FaultToleranceParameters parameters;
  parameters.enable_job_restart = random.Chance(0.93);
  parameters.max_num_of_job_restart = random.Pick({0u, 1u, 2u, 3u, 3u, 5u, 8u, 20u});
  parameters.fault_tolerant_policy =
      random.Pick({FaultTolerantPolicy::kOnFailure, FaultTolerantPolicy::kOnFailure, FaultTolerantPolicy::kOnFailure,
                   FaultTolerantPolicy::kExitCodeAndErrorMsg, FaultTolerantPolicy::kExitCodeAndErrorMsg,
                   random.Chance(0.2) ? FaultTolerantPolicy::kNever : FaultTolerantPolicy::kOnFailure});
  parameters.max_num_of_same_error = random.Pick({1u, 2u, 10u, 10u, 10u});
  if (random.Chance(0.2)) parameters.max_tolerated_failure_rate = random.Pick({0.1, 0.3, 0.5, 1.0});
  if (random.Chance(0.15)) parameters.no_progress_limit = random.Between(1, 4);
  return parameters;
}

JobSpec DrawSpec(Random& random) {
  JobSpec spec;
  spec.id = JobId::FromRandom(random.Next());
  spec.name = "simulated";
  const uint32_t instances = random.Chance(0.6) ? random.Between(1, 4) : random.Between(1, 16);
  const uint32_t ranks = random.Pick({1u, 1u, 1u, 2u, 3u});
  if (instances > 1 && random.Chance(0.3)) {
    spec.roles = {{Role::kMaster, 1, ranks}, {Role::kWorker, instances - 1, random.Pick({1u, ranks})}};
  } else {
    spec.roles = {{Role::kWorker, instances, ranks}};
  }
  spec.command = {"train"};
  spec.environment = {{"PATH", "/usr/bin"}};
  spec.working_directory = "/";
  spec.fault_tolerance = DrawParameters(random);
  spec.timing.stop_grace = Milliseconds(random, 200ms, 10s);
  spec.timing.start_timeout = Milliseconds(random, 20s, 90s);
  spec.timing.node_lost_timeout = Milliseconds(random, 4s, 30s);
  spec.timing.orphan_timeout = Milliseconds(random, 15s, 240s);
  spec.timing.collect_window = Milliseconds(random, 0ms, 1s);
  spec.local_nodes = random.Chance(0.6) ? random.Between(1, 3) : random.Between(1, 8);
  return spec;
}

RankHabits DrawHabits(Random& random) {
  const auto sometimes = [&random](double chance, double most) {
    return random.Chance(chance) ? most * static_cast<double>(random.Below(1000)) / 1000 : 0.0;
  };
  RankHabits habits;
  habits.fails = sometimes(0.5, random.Chance(0.3) ? 0.9 : 0.2);
  habits.hangs = sometimes(0.2, 0.3);
  habits.cascades = sometimes(0.6, 1.0);
  habits.ignores_term = sometimes(0.4, 0.6);
  habits.leaves_in_order = sometimes(0.4, 0.6);
  habits.dumps_core = sometimes(0.3, 0.6);
  habits.uninterruptible = sometimes(0.15, 0.2);
  habits.escapes = sometimes(0.4, 0.6);
  habits.hardware = sometimes(0.4, 0.5);
  habits.address_in_use = sometimes(0.1, 0.5);
  habits.works_for = random.Time(1s, random.Chance(0.5) ? 15s : 60s);
  return habits;
}

bool IsIndependent(Role role) { return role == Role::kWorker || role == Role::kMaster; }

// Workers that live each for itself, and what they may have beside them.
void DrawAsync(Random& random, JobSpec& spec) {
  spec.fault_tolerance.execution_mode = ExecutionMode::kAsync;
  if (spec.roles.front().role == Role::kMaster && random.Chance(0.5)) spec.roles.front().role = Role::kChief;
  if (random.Chance(0.15)) spec.roles.push_back({Role::kEvaluator, 1, 1});
}

// Addresses for all, instances that know nothing of each other, or an mpirun. By the job's id, so that a seed from
// before is still the same story.
void DrawFramework(JobSpec& spec) {
  Random random(Fnv1a(spec.id.text()));
  const double fate = static_cast<double>(random.Below(1000)) / 1000;
  if (fate < 0.15) {
    spec.framework = Framework::kTensorFlow;
    for (RoleSpec& role : spec.roles) role.ranks_per_instance = 1;
    spec.success_policy = random.Pick({SuccessPolicy::kAuto, SuccessPolicy::kAllWorkers, SuccessPolicy::kChiefWorker});
  } else if (fate < 0.3) {
    spec.framework = Framework::kElasticBatch;
    std::erase_if(spec.roles, [](const RoleSpec& role) { return !IsIndependent(role.role); });
    if (spec.roles.empty()) spec.roles = {{Role::kWorker, 2, 1}};
  } else if (fate < 0.4) {
    spec.framework = Framework::kMpi;
    spec.roles = MpiRoles(random.Between(0, 3));
  }
}

// Jobs of which hangs are looked for, with ranks that print often enough, unless they hang. By the job's id, as above.
void DrawHangs(Scenario& scenario) {
  FaultToleranceParameters& parameters = scenario.spec.fault_tolerance;
  Random random(Fnv1a(scenario.spec.id.text()) + 1);
  if (parameters.execution_mode == ExecutionMode::kAsync || !random.Chance(0.5)) return;
  parameters.enable_job_hang_detection = random.Chance(0.8);
  parameters.job_hang_interval = std::chrono::seconds(random.Between(2, 30));
  parameters.enable_job_exit_hang_detection = random.Chance(0.5);
  parameters.job_exit_hang_interval = std::chrono::seconds(random.Between(3, 30));
  scenario.ranks.prints_within = parameters.job_hang_interval - random.Time(10ms, 1900ms);
  if (random.Chance(0.6)) scenario.ranks.hangs = std::max(scenario.ranks.hangs, 0.25);
  scenario.ranks.hangs_all = random.Pick({0.0, 0.7, 1.0});
  if (random.Chance(0.3)) scenario.fault_count = 0;  // so that it can be told how long finding it takes
}

}  // namespace

Scenario DrawScenario(Random& random) {
  Scenario scenario;
  scenario.spec = DrawSpec(random);
  scenario.machines = scenario.spec.local_nodes + (random.Chance(0.4) ? random.Between(0, 4) : 0);
  scenario.provider_in_master = random.Chance(0.5);
  scenario.provider_fences = random.Chance(0.5);
  scenario.ranks = DrawHabits(random);
  scenario.faults_until = random.Time(5s, random.Chance(0.6) ? 40s : 120s);
  scenario.fault_count = random.Chance(0.1) ? 0 : random.Between(1, random.Chance(0.6) ? 6 : 20);
  for (int kind = 0; kind < kFaultKinds; ++kind) {
    if (random.Chance(0.4)) scenario.weights[static_cast<Fault>(kind)] = random.Between(1, 8);
  }
  if (random.Chance(0.05)) {  // time enough for two masters to meet
    scenario.weights = {{Fault::kSecondMaster, 1}, {Fault::kCrashMasterSoon, 1}};
    scenario.fault_count = 6;
    scenario.faults_until = 60s;
  }
  if (random.Chance(0.05)) {  // no connection lasts
    scenario.weights = {{Fault::kHangUpConnection, 2}, {Fault::kHalfOpen, 1}, {Fault::kKillRank, 1}};
    scenario.fault_count = 40;
    scenario.faults_until = 10s;
  }
  // A job that is stopped or has no node left shows little of the rest.
  for (const Fault rare : {Fault::kStopJob, Fault::kLoseNode}) {
    if (scenario.weights.contains(rare)) scenario.weights[rare] = 1;
  }
  if (scenario.weights.empty()) scenario.weights[Fault::kCrashMaster] = 1;
  scenario.network_delay = random.Pick<Duration>({2ms, 2ms, 50ms, 500ms});
  if (scenario.fault_count == 40) scenario.network_delay = 1s;
  scenario.commit_delay = random.Pick<Duration>({5ms, 5ms, 100ms, 1s});
  scenario.stale_address = random.Chance(0.4) ? 0.6 : 0;
  const bool is_async = random.Chance(0.4);
  if (is_async) DrawAsync(random, scenario.spec);
  if (random.Chance(is_async ? 0.4 : 0.05)) scenario.spec.roles.push_back({Role::kPs, random.Between(1, 2), 1});
  DrawFramework(scenario.spec);
  DrawHangs(scenario);
  return scenario;
}

}  // namespace aimaster::sim
