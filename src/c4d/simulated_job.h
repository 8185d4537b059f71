// SimulatedJob: a training of tensor, data and pipeline parallel groups, run until it hangs. Hosts issue ahead of their
// devices, devices do one operation after the other, and a collective completes when the devices of all members are
// there: so who waits for whom follows from the program, and the truth is known.
//
// For tests and benchmarks. Real incidents are few; this makes one for every rank, place and fault.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "c4d/observation.h"

namespace aimaster::c4d {

enum class SimulatedFault : uint8_t {
  kHost,         // the program stops before it issues an operation: a lock held, a file system that does not answer
  kDevice,       // the device never gets to an operation
  kCompletions,  // the device, as its own host sees it, completes nothing from an operation on
};

struct SimulatedLayout {
  uint32_t tensor = 2, data = 2, pipeline = 2;
  uint32_t microbatches = 4, steps = 3;
  uint32_t chunks = 1;       // of the model on each stage: with more than one the last stage sends on to the first
  uint32_t ahead = 12;       // operations that a host issues before it waits for the oldest
  bool tells_start = false;  // the source knows what devices have begun with
  bool overlaps = false;     // gradients are reduced beside the rest of the backward pass, on a stream of their own
  uint32_t ranks() const { return tensor * data * pipeline; }
};

class SimulatedJob {
 public:
  explicit SimulatedJob(const SimulatedLayout& layout) : layout_(layout), ranks_(layout.ranks()) {
    WritePrograms();
    MakeGroups();
  }

  uint32_t program_length(uint32_t rank) const { return static_cast<uint32_t>(ProgramOf(rank).size()); }
  void Break(uint32_t rank, SimulatedFault fault, uint32_t at) { ranks_[rank].fault = {{fault, at}}; }
  // A healthy job is looked at after so many operations of all ranks together; one that hangs, when nothing moves.
  void StopAfter(uint64_t operations) { stop_after_ = operations; }

  // How the job stands: for how long since the last thing happened.
  Observation Run(Duration since) {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) open_.push_back(rank);
    for (size_t next = 0; next < open_.size() && clock_ < stop_after_; ++next) {
      Advance(open_[next]);
      if (next > 1'000'000) {
        open_.erase(open_.begin(), open_.begin() + static_cast<ptrdiff_t>(next) + 1);
        next = SIZE_MAX;
      }
    }
    return Observe(since);
  }
  bool is_finished(uint32_t rank) const { return ranks_[rank].front == program_length(rank); }

 private:
  enum Kind : uint8_t { kTensor, kData, kPipeline, kStage, kWorld, kKinds };
  struct Step {
    Kind kind;
    Function function;
    int towards = 0;         // the next stage, or the one before
    bool is_beside = false;  // what comes after it does not wait for it, up to the end of the step
  };
  struct FaultAt {
    SimulatedFault fault;
    uint32_t at;
  };
  struct Issued {
    uint64_t tick;
    bool is_done;
  };
  struct Process {
    std::optional<FaultAt> fault;
    uint32_t front = 0;                     // the first step that is no send and has not completed on the device
    bool is_there = false;                  // its device is at that
    uint64_t last = 0;                      // when anything happened to it
    uint64_t last_in[kKinds] = {};          // and in each of its groups
    std::vector<Issued> steps;              // issued ones
    uint32_t seen = 0;                      // the first of them of which the host has not seen the end
    std::vector<uint32_t> sends[2];         // steps that the device is at, to the stage before and the next
    std::vector<uint32_t> arrived[kKinds];  // collectives that the device is at
    uint32_t arrivals[kKinds] = {};
  };

  const std::vector<Step>& ProgramOf(uint32_t rank) const { return programs_[StageOf(rank)]; }
  uint32_t StageOf(uint32_t rank) const { return rank / (layout_.tensor * layout_.data); }
  uint32_t PeerOf(uint32_t rank, int towards) const {
    const uint32_t stage = layout_.tensor * layout_.data;
    return (rank + (towards > 0 ? stage : layout_.ranks() - stage)) % layout_.ranks();
  }

  void WritePrograms() {
    for (uint32_t stage = 0; stage < layout_.pipeline; ++stage) {
      std::vector<Step>& program = programs_.emplace_back();
      const bool is_first = stage == 0, is_last = stage + 1 == layout_.pipeline;
      const auto compute = [&](bool has_experts) {
        program.push_back({kTensor, Function::kAllGather});
        if (has_experts) program.push_back({kStage, Function::kAllToAll});
        program.push_back({kTensor, Function::kReduceScatter});
      };
      for (uint32_t step = 0; step < layout_.steps; ++step) {
        for (uint32_t i = 0; i < layout_.chunks * layout_.microbatches; ++i) {
          const bool is_first_chunk = i < layout_.microbatches;
          const bool is_last_chunk = i >= (layout_.chunks - 1) * layout_.microbatches;
          if (!(is_first && is_first_chunk)) program.push_back({kPipeline, Function::kReceive, -1});
          compute(i % 2 == 0);
          if (!(is_last && is_last_chunk)) program.push_back({kPipeline, Function::kSend, 1});
        }
        for (uint32_t i = 0; i < layout_.chunks * layout_.microbatches; ++i) {
          const bool is_last_chunk = i < layout_.microbatches;
          const bool is_first_chunk = i >= (layout_.chunks - 1) * layout_.microbatches;
          if (!(is_last && is_last_chunk)) program.push_back({kPipeline, Function::kReceive, 1});
          compute(i % 2 == 1);
          if (layout_.overlaps) {
            program.push_back({.kind = kData, .function = Function::kReduceScatter, .is_beside = true});
          }
          if (!(is_first && is_first_chunk)) program.push_back({kPipeline, Function::kSend, -1});
        }
        if (!layout_.overlaps) program.push_back({kData, Function::kReduceScatter});
        program.push_back({kWorld, Function::kAllReduce});
        program.push_back({kData, Function::kAllGather});
      }
    }
  }

  void MakeGroups() {
    const uint32_t tensor = layout_.tensor, data = layout_.data;
    group_of_.assign(ranks_.size() * kKinds, 0);
    const auto add = [&](Kind kind, const std::string& description, const auto& key) {
      std::vector<std::vector<Rank>> members;
      for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        const uint32_t group = key(rank);
        if (members.size() <= group) members.resize(group + 1);
        members[group].push_back(Rank{rank});
        group_of_[rank * kKinds + kind] = static_cast<uint32_t>(groups_.size()) + group;
      }
      for (std::vector<Rank>& one : members) {
        groups_.push_back({.name = std::to_string(groups_.size()), .description = description, .members = one});
      }
    };
    add(kTensor, "TENSOR", [&](uint32_t rank) { return rank / tensor; });
    add(kData, "DATA", [&](uint32_t rank) { return StageOf(rank) * tensor + rank % tensor; });
    add(kPipeline, "PIPELINE", [&](uint32_t rank) { return rank % (tensor * data); });
    add(kStage, "STAGE", [&](uint32_t rank) { return StageOf(rank); });
    add(kWorld, "WORLD", [&](uint32_t) { return 0u; });
    states_.resize(groups_.size());
  }

  Kind KindOf(uint32_t rank, uint32_t group) const {
    const auto first = group_of_.begin() + rank * kKinds;
    return static_cast<Kind>(std::find(first, first + kKinds, group) - first);
  }

  bool Has(const Process& process, SimulatedFault fault, uint32_t step) const {
    return process.fault && process.fault->fault == fault && step >= process.fault->at;
  }

  // Around a ring of stages nobody may wait for the end of a send, or all would.
  bool IsLetGo(const Step& step) const { return layout_.chunks > 1 && step.function == Function::kSend; }

  // The host issues what it may; the device goes to what is next.
  void Advance(uint32_t rank) {
    Process& process = ranks_[rank];
    const std::vector<Step>& program = ProgramOf(rank);
    while (process.steps.size() < program.size()) {
      while (process.seen < process.steps.size() &&
             (process.steps[process.seen].is_done || IsLetGo(program[process.seen]))) {
        ++process.seen;
      }
      const auto next = static_cast<uint32_t>(process.steps.size());
      if (next - process.seen >= layout_.ahead || Has(process, SimulatedFault::kHost, next)) break;
      process.steps.push_back({.tick = ++clock_, .is_done = false});
      process.last = process.last_in[program[next].kind] = clock_;
    }
    while (!process.is_there && process.front < process.steps.size()) {
      const uint32_t step = process.front;
      if (Has(process, SimulatedFault::kDevice, step)) return;
      if (program[step].function == Function::kSend) {
        ++process.front;
        process.sends[program[step].towards > 0].push_back(step);
        Meet(rank, PeerOf(rank, program[step].towards), program[step].towards);
        continue;
      }
      if (program[step].is_beside) {
        ++process.front;
        Arrive(rank, step);
        continue;
      }
      // The norm of all gradients needs all of them.
      if (program[step].kind == kWorld && !process.arrived[kData].empty()) return;
      process.is_there = true;
      if (program[step].function == Function::kReceive) {
        Meet(PeerOf(rank, program[step].towards), rank, -program[step].towards);
      } else {
        Arrive(rank, step);
      }
      return;
    }
  }

  void Arrive(uint32_t rank, uint32_t step) {
    const Kind kind = ProgramOf(rank)[step].kind;
    Process& process = ranks_[rank];
    process.arrived[kind].push_back(step);
    const uint32_t group = group_of_[rank * kKinds + kind];
    std::vector<uint32_t>& arrived = states_[group];
    if (arrived.size() <= process.arrivals[kind]) arrived.resize(process.arrivals[kind] + 1);
    if (++arrived[process.arrivals[kind]++] < groups_[group].members.size()) return;
    for (const Rank member : groups_[group].members) {
      std::vector<uint32_t>& steps = ranks_[Value(member)].arrived[kind];
      const uint32_t first = steps.front();
      steps.erase(steps.begin());
      Complete(Value(member), first);
    }
  }

  // A transfer goes on where both sides are there.
  void Meet(uint32_t sender, uint32_t receiver, int towards) {
    Process& to = ranks_[receiver];
    std::vector<uint32_t>& sends = ranks_[sender].sends[towards > 0];
    if (!to.is_there || sends.empty()) return;
    const Step& step = ProgramOf(receiver)[to.front];
    if (step.function != Function::kReceive || step.towards != -towards) return;
    const uint32_t send = sends.front();
    sends.erase(sends.begin());
    Complete(receiver, to.front);
    Complete(sender, send);
  }

  void Complete(uint32_t rank, uint32_t step) {
    Process& process = ranks_[rank];
    if (!Has(process, SimulatedFault::kCompletions, step)) {
      process.steps[step].is_done = true;
      process.last = process.last_in[ProgramOf(rank)[step].kind] = ++clock_;
    }
    if (process.is_there && step == process.front) {
      process.is_there = false;
      ++process.front;
    }
    open_.push_back(rank);
  }

  Observation Observe(Duration since) const {
    Observation job;
    job.communicators = groups_;
    job.ranks.assign(ranks_.size(), {.is_observed = true});
    const auto age = [&](uint64_t tick) { return since + std::chrono::milliseconds(clock_ - tick); };
    for (uint32_t group = 0; group < groups_.size(); ++group) {
      for (const Rank rank : groups_[group].members) {
        const Process& process = ranks_[Value(rank)];
        const std::vector<Step>& program = ProgramOf(Value(rank));
        const Kind kind = KindOf(Value(rank), group);
        MemberState state{.communicator = group, .rank = rank, .idle = age(process.last_in[kind])};
        state.first_operation = static_cast<uint32_t>(job.operations.size());
        uint64_t common = 0;
        for (uint32_t s = 0; s < process.steps.size(); ++s) {
          const Step& step = program[s];
          if (group_of_[Value(rank) * kKinds + step.kind] != group) continue;
          const bool is_common = IsPointToPoint(step.function);
          state.carries_point_to_point = state.carries_point_to_point || is_common;
          const uint64_t sequence = is_common ? ++common : ++state.issued;
          if (process.steps[s].is_done) {
            if (!is_common) ++state.completed;
            continue;
          }
          Operation& operation = job.operations.emplace_back();
          operation.sequence = sequence;
          operation.age = age(process.steps[s].tick);
          operation.function = step.function;
          if (is_common) operation.peer = Rank{PeerOf(Value(rank), step.towards)};
          if (step.function != Function::kAllToAll) operation.count = 4096;
          if (layout_.tells_start) {
            const bool is_begun = s < process.front || (s == process.front && process.is_there);
            operation.start = is_begun ? Start::kStarted : Start::kNotStarted;
          }
        }
        state.operation_count = static_cast<uint32_t>(job.operations.size()) - state.first_operation;
        job.states.push_back(state);
      }
    }
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) job.ranks[rank].outside = age(ranks_[rank].last);
    return job;
  }

  SimulatedLayout layout_;
  std::vector<std::vector<Step>> programs_;  // of each stage
  std::vector<Communicator> groups_;
  std::vector<uint32_t> group_of_;             // of each rank and kind
  std::vector<std::vector<uint32_t>> states_;  // of each group, how many have come to each of its collectives
  std::vector<Process> ranks_;
  std::vector<uint32_t> open_;  // ranks to which something happened
  uint64_t clock_ = 0;
  uint64_t stop_after_ = UINT64_MAX;
};

}  // namespace aimaster::c4d
