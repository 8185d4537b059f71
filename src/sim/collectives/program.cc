#include "sim/collectives/program.h"

#include <algorithm>
#include <chrono>

#include "sim/random.h"

namespace aimaster::sim::collectives {
namespace {

using c4d::Function;
using namespace std::chrono_literals;

constexpr Duration kCollectiveTime = 2ms, kSmallTime = 200us;

uint64_t Mix(uint64_t seed, uint64_t a, uint64_t b) { return Random(seed * 0x100000001b3 + a * 0x9e3779b1 + b).Next(); }

Duration Scaled(Duration time, double factor) {
  return Duration(static_cast<int64_t>(static_cast<double>(time.count()) * factor));
}

class Writer {
 public:
  Writer(const Layout& layout, const Workload& workload, uint32_t rank, uint64_t step)
      : layout_(layout),
        workload_(workload),
        rank_(rank),
        step_(step),
        place_(layout.PlaceOf(rank)),
        of_all_(Mix(workload.seed, step, 1)),
        of_rank_(Mix(workload.seed, step, 1000 + rank)) {
    // Who works on the same sequences takes as long: the lines of tensor and pipeline.
    Random of_line(Mix(workload.seed, step, 500000 + place_.data));
    factor_ = 1 + (workload.imbalance - 1) * static_cast<double>(of_line.Below(1000)) / 1000;
    if (rank == workload.slow_rank) factor_ *= workload.slowness;
  }

  std::vector<Instruction> Write() {
    Host(of_rank_.Time(1ms, 20ms));  // the data loader
    if (step_ == 0) Host(of_rank_.Time(workload_.compile / 2, workload_.compile));
    if (of_rank_.Chance(workload_.pause_chance)) Host(of_rank_.Time(200ms, 3s));
    if (workload_.evaluate_every != 0 && step_ % workload_.evaluate_every == workload_.evaluate_every - 1) Evaluate();
    Train();
    Update();
    if (step_ % workload_.drain_every == 0) Drain();
    if (workload_.checkpoint_every != 0 && step_ % workload_.checkpoint_every == workload_.checkpoint_every - 1) Save();
    return std::move(out_);
  }

 private:
  void Host(Duration time) { out_.push_back({.kind = Instruction::Kind::kHost, .time = time}); }
  void Kernel(Duration time) {
    const double jitter = 0.95 + 0.1 * static_cast<double>(of_rank_.Below(1000)) / 1000;
    out_.push_back({.kind = Instruction::Kind::kKernel, .time = Scaled(time, factor_ * jitter)});
  }
  void Drain() { out_.push_back({.kind = Instruction::Kind::kDrain}); }

  void Collective(Part part, Function function, uint64_t count, bool compute_waits = true, uint16_t type = 0) {
    const uint32_t group = layout_.GroupOf(rank_, part);
    if (group == kNone) return;
    Call call{.group = group,
              .function = function,
              .type = type,
              .count = count,
              .transfer = count > 64 ? kCollectiveTime : kSmallTime};
    if (function == Function::kBroadcast || function == Function::kReduce) {
      call.peer = layout_.groups()[group].members.front();
    }
    out_.push_back({.kind = Instruction::Kind::kCalls, .compute_waits = compute_waits, .calls = 1, .call = {call}});
  }

  void Barrier() {
    Collective(Part::kWorld, Function::kBarrier, 1);
    Drain();
  }

  Call Transfer(Function function, uint32_t stage) const {
    return {.group = layout_.GroupOf(rank_, Part::kPipeline),
            .function = function,
            .count = 8192,
            .peer = layout_.RankAt({place_.tensor, place_.data, stage}),
            .transfer = kSmallTime};
  }
  bool is_first() const { return place_.pipeline == 0; }
  bool is_last() const { return place_.pipeline + 1 == layout_.dimensions().pipeline; }

  // What goes to and comes from a neighbouring stage, together.
  void Exchange(std::initializer_list<std::pair<Function, int>> transfers) {
    Instruction instruction{.kind = Instruction::Kind::kCalls};
    for (const auto& [function, direction] : transfers) {
      if (direction < 0 ? is_first() : is_last()) continue;
      instruction.call[instruction.calls++] =
          Transfer(function, direction < 0 ? place_.pipeline - 1 : place_.pipeline + 1);
    }
    if (instruction.calls > 0) out_.push_back(instruction);
  }

  void Layers(Duration time) {
    Kernel(time / 2);
    Collective(Part::kTensor, Function::kAllGather, 4096);
    if (layout_.GroupOf(rank_, Part::kExpert) != kNone) {
      Collective(Part::kExpert, Function::kAllToAll, c4d::kUnknown);
      Kernel(time / 8);
      Collective(Part::kExpert, Function::kAllToAll, c4d::kUnknown);
    }
    Kernel(time / 2);
    Collective(Part::kTensor, Function::kReduceScatter, 4096);
  }
  void Forward() {
    Host(of_rank_.Time(workload_.think / 2, workload_.think));
    Layers(workload_.compute);
  }
  void Backward() {
    Host(of_rank_.Time(workload_.think / 2, workload_.think));
    Layers(2 * workload_.compute);
  }

  // One forward, one backward: a stage first takes as many as there are stages behind it.
  void Train() {
    const uint32_t warm_up = std::min(layout_.dimensions().pipeline - place_.pipeline - 1, workload_.microbatches);
    const uint32_t steady = workload_.microbatches - warm_up;
    for (uint32_t i = 0; i < warm_up; ++i) {
      Exchange({{Function::kReceive, -1}});
      Forward();
      Exchange({{Function::kSend, 1}});
    }
    if (steady > 0) Exchange({{Function::kReceive, -1}});
    for (uint32_t i = 0; i < steady; ++i) {
      Forward();
      Exchange({{Function::kSend, 1}, {Function::kReceive, 1}});
      Backward();
      if (i + 1 < steady) {
        Exchange({{Function::kSend, -1}, {Function::kReceive, -1}});
      } else {
        Exchange({{Function::kSend, -1}});
      }
    }
    for (uint32_t i = 0; i < warm_up; ++i) {
      Exchange({{Function::kReceive, 1}});
      Backward();
      Exchange({{Function::kSend, -1}});
    }
  }

  // Gradients are reduced in buckets beside what is computed; then everybody has to agree, and takes the new weights.
  void Update() {
    const bool has_instances = layout_.GroupOf(rank_, Part::kInstance) != kNone;
    const Part shards = has_instances ? Part::kInstance : Part::kData;
    for (uint32_t bucket = 0; bucket < workload_.buckets; ++bucket) {
      Kernel(workload_.compute / 16);
      Collective(shards, Function::kReduceScatter, 65536 + 1024 * bucket, bucket + 1 == workload_.buckets);
    }
    Collective(Part::kAcross, Function::kAllReduce, 16384, true, 1);
    if (has_instances) Collective(Part::kData, Function::kAllReduce, 2, true, 2);
    Collective(Part::kWorld, Function::kAllReduce, 1, true, 1);
    Kernel(workload_.compute / 4);
    Collective(shards, Function::kAllGather, 32768);
  }

  void Evaluate() {
    Barrier();
    const uint32_t batches = 1 + static_cast<uint32_t>(of_all_.Below(4));
    for (uint32_t i = 0; i < batches; ++i) {
      Exchange({{Function::kReceive, -1}});
      Forward();
      Exchange({{Function::kSend, 1}});
    }
    // One looks at the results while the others are at the door already.
    if (rank_ == 0) Host(of_all_.Time(Duration::zero(), workload_.checkpoint / 2));
    Collective(Part::kWorld, Function::kBroadcast, 16, true, 1);
    Drain();
  }

  void Save() {
    Barrier();
    if (workload_.all_write || rank_ == 0) Host(of_rank_.Time(workload_.checkpoint / 4, workload_.checkpoint));
    Barrier();
  }

  const Layout& layout_;
  const Workload& workload_;
  uint32_t rank_;
  uint64_t step_;
  Place place_;
  Random of_all_, of_rank_;
  double factor_ = 1;
  std::vector<Instruction> out_;
};

}  // namespace

std::vector<Instruction> StepOf(const Layout& layout, const Workload& workload, uint32_t rank, uint64_t step) {
  return Writer(layout, workload, rank, step).Write();
}

}  // namespace aimaster::sim::collectives
