// Program: what each rank's training script does, step by step. All ranks of a stage go through the same calls; how
// long each computes is drawn per rank and step, so that nobody is ever quite where the others are.
//
// A healthy job waits for good reasons, and all of them are here: sequences of unequal length, a first step that
// compiles, evaluation, checkpoints that one rank or all write while the others stand at a barrier, pauses.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "c4d/observation.h"
#include "core/time.h"
#include "sim/collectives/layout.h"

namespace aimaster::sim::collectives {

// One operation as one rank calls it.
struct Call {
  uint32_t group = 0;
  c4d::Function function = c4d::Function::kAllReduce;
  uint16_t type = 0;  // in kTypes
  uint64_t count = 0;
  uint32_t peer = kNone;  // a rank: the other one, or the root
  Duration transfer{};    // how long it takes when all have come
};
inline constexpr std::array<const char*, 3> kTypes = {"BFloat16", "Float", "Int"};

struct Instruction {
  enum class Kind : uint8_t {
    kHost,    // the host is busy for `time`
    kKernel,  // the device computes for `time`
    kCalls,   // one operation, or a send and a receive together
    kDrain,   // the host waits for its device
  };
  Kind kind = Kind::kHost;
  bool compute_waits = true;  // what is computed afterwards needs the result
  uint8_t calls = 0;
  int8_t fault = -1;  // in the plan: what goes wrong here
  Duration time{};
  std::array<Call, 2> call;
};

struct Workload {
  uint64_t seed = 0;
  uint32_t microbatches = 4;
  uint32_t buckets = 1;      // in which gradients are reduced
  Duration compute{};        // of one microbatch on one stage, forward
  Duration think{};          // of the host for one microbatch
  double imbalance = 1;      // the longest sequences take so many times as long as the shortest
  Duration compile{};        // most that the first step takes longer
  uint32_t drain_every = 1;  // steps
  uint32_t evaluate_every = 0;
  uint32_t checkpoint_every = 0;
  Duration checkpoint{};  // most that one writes
  bool all_write = false;
  double pause_chance = 0;  // of a rank in a step
  uint32_t slow_rank = kNone;
  double slowness = 1;
};

// The calls of `rank` in `step`; the same arguments give the same.
std::vector<Instruction> StepOf(const Layout& layout, const Workload& workload, uint32_t rank, uint64_t step);

}  // namespace aimaster::sim::collectives
