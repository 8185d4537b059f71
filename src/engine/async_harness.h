// Async jobs on the test bench.
#pragma once

#include "engine/engine_harness.h"

namespace aimaster {

inline EngineHarness AsyncJob(uint32_t workers = 3, uint32_t nodes = 1) {
  EngineHarness job(workers, nodes);
  job.spec.fault_tolerance.execution_mode = ExecutionMode::kAsync;
  job.spec.fault_tolerance.enable_job_restart = false;  // of no importance for a worker
  return job;
}

// Workers 0 and 1, and a ps with rank 2.
inline EngineHarness ParameterServerJob(uint32_t nodes = 1) {
  EngineHarness job = AsyncJob(2, nodes);
  job.spec.roles.push_back({Role::kPs, 1, 1});
  return job;
}

template <typename T>
std::vector<T> Of(const StepResult& result) {
  return EngineHarness::Of<T>(result);
}

inline void ExpectUntouched(const EngineHarness& job, std::initializer_list<uint32_t> instances) {
  for (const uint32_t i : instances) {
    EXPECT_EQ(job.AttemptOf(i), Attempt{0}) << i;
    EXPECT_EQ(job.job().instances[i].status, InstanceStatus::kRunning) << i;
  }
}

}  // namespace aimaster
