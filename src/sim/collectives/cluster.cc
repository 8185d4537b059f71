#include "sim/collectives/cluster.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/check.h"

namespace aimaster::sim::collectives {
namespace {

constexpr uint32_t kComputeStream = 0;
constexpr uint32_t kSlowLinkFactor = 5;
// A call takes no time here, yet no two calls of a rank are at the same time: their order is seen in their ages.
constexpr Duration kCallTime = std::chrono::microseconds(1);

bool StopsHost(FaultKind kind) { return kind == FaultKind::kHostBefore || kind == FaultKind::kHostAhead; }

// The same operation, as far as members have to agree.
bool Agree(const Call& a, const Call& b) {
  return a.function == b.function && a.count == b.count && a.type == b.type && a.peer == b.peer;
}

}  // namespace

std::string_view Name(Mode mode) {
  switch (mode) {
    case Mode::kStreams:
      return "asynchronous, a queue per group";
    case Mode::kOneStream:
      return "asynchronous, one queue for all groups";
    case Mode::kSynchronous:
      return "synchronous";
  }
  return "mode";
}

Cluster::Cluster(const Layout& layout, const Workload& workload, Mode mode, uint32_t queue_depth,
                 std::vector<Fault> faults, uint32_t slow_link)
    : layout_(layout),
      workload_(workload),
      mode_(mode),
      queue_depth_(queue_depth),
      slow_link_(slow_link),
      faults_(std::move(faults)),
      ranks_(layout.ranks()),
      meetings_(layout.groups().size()),
      channels_(layout.groups().size()) {
  for (const Group& group : layout.groups()) members_.emplace_back(group.members.size());
  for (uint32_t rank = 0; rank < layout.ranks(); ++rank) {
    ranks_[rank].streams.resize(mode == Mode::kStreams ? 1 + kParts : 1);
    LoadStep(rank);
    Schedule(Duration::zero(), {.kind = Event::Kind::kHost, .target = rank});
  }
}

void Cluster::RunUntil(Duration time) {
  while (!events_.empty() && events_.top().at <= time) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    Handle(event);
  }
  now_ = std::max(now_, time);
}

void Cluster::RunUntilStill(Duration limit) {
  while (!events_.empty() && events_.top().at <= limit) RunUntil(events_.top().at);
}

void Cluster::Schedule(Duration delay, Event event) {
  event.at = now_ + delay;
  event.number = ++event_number_;
  events_.push(event);
}

void Cluster::Handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kHost: {
      RankLife& life = ranks_[event.target];
      if (life.host == HostState::kStopped) return;
      life.host = HostState::kRuns;
      RunHost(event.target);
      return;
    }
    case Event::Kind::kKernel:
      if (ranks_[event.target].is_stopped) return;
      FinishItem(event.target, static_cast<uint32_t>(event.detail));
      Pump(event.target);
      GoOn(event.target);
      return;
    case Event::Kind::kTransfer:
      CompleteCollective(event.target, event.detail);
      return;
    case Event::Kind::kChannel:
      CompleteTransfer(event.target, event.channel, event.detail);
      return;
  }
}

// The host ------------------------------------------------------------------------------------------------------------

void Cluster::LoadStep(uint32_t rank) {
  RankLife& life = ranks_[rank];
  life.program = StepOf(layout_, workload_, rank, life.step);
  life.at = 0;
  for (size_t i = 0; i < faults_.size(); ++i) {
    if (faults_[i].rank == rank && faults_[i].step == life.step) ApplyToProgram(static_cast<int8_t>(i), life.program);
  }
}

// What goes wrong in the program itself is a change of its text; all else is a mark on an instruction.
void Cluster::ApplyToProgram(int8_t number, std::vector<Instruction>& program) {
  const Fault& fault = faults_[static_cast<size_t>(number)];
  if (fault.kind == FaultKind::kSlowRank || fault.kind == FaultKind::kSlowLink) return;
  CHECK(fault.index < program.size());
  Instruction& instruction = program[fault.index];
  if (fault.kind == FaultKind::kOppositeOrder) {
    CHECK(fault.index + 1 < program.size());
    std::swap(instruction, program[fault.index + 1]);
  } else if (fault.kind == FaultKind::kMismatch) {
    Call& call = instruction.call[0];
    switch (fault.difference) {
      case Difference::kFunction:
        call.function =
            call.function == c4d::Function::kAllReduce ? c4d::Function::kAllGather : c4d::Function::kAllReduce;
        call.peer = kNone;
        break;
      case Difference::kCount:
        call.count += 1;
        break;
      case Difference::kType:
        call.type = static_cast<uint16_t>((call.type + 1) % kTypes.size());
        break;
      case Difference::kRoot:
        call.peer = layout_.groups()[call.group].members.back();
        break;
    }
  }
  instruction.fault = number;
}

void Cluster::RunHost(uint32_t rank) {
  RankLife& life = ranks_[rank];
  while (life.host == HostState::kRuns) {
    if (life.at == life.program.size()) {
      ++life.step;
      LoadStep(rank);
    }
    const Instruction& instruction = life.program[life.at];
    const bool is_queued = mode_ != Mode::kSynchronous && (instruction.kind == Instruction::Kind::kKernel ||
                                                           instruction.kind == Instruction::Kind::kCalls);
    if (is_queued && life.queued >= queue_depth_) {
      life.host = HostState::kQueueFull;
      return;
    }
    if (instruction.fault >= 0) {
      const Fault& fault = faults_[static_cast<size_t>(instruction.fault)];
      const uint32_t group = instruction.call[0].group;
      if (StopsHost(fault.kind)) {
        life.host = HostState::kStopped;
        Fire(instruction.fault, group, Of(rank, group).issued + 1);
        return;
      }
      if (fault.kind == FaultKind::kSkipped) {
        Fire(instruction.fault, group, Of(rank, group).issued + 1);
        ++life.at;
        continue;
      }
    }
    ++life.at;
    switch (instruction.kind) {
      case Instruction::Kind::kHost:
        life.host = HostState::kBusy;
        Schedule(instruction.time, {.kind = Event::Kind::kHost, .target = rank});
        break;
      case Instruction::Kind::kKernel:
        if (mode_ == Mode::kSynchronous) {
          life.host = HostState::kBusy;
          Schedule(instruction.time, {.kind = Event::Kind::kHost, .target = rank});
        } else {
          Queue(rank, kComputeStream, {.kind = instruction.kind, .time = instruction.time});
        }
        break;
      case Instruction::Kind::kCalls:
        IssueCalls(rank, instruction);
        break;
      case Instruction::Kind::kDrain:
        if (life.queued > 0) life.host = HostState::kDrains;
        break;
    }
  }
}

void Cluster::GoOn(uint32_t rank) {
  RankLife& life = ranks_[rank];
  if ((life.host == HostState::kQueueFull && life.queued < queue_depth_) ||
      (life.host == HostState::kDrains && life.queued == 0)) {
    life.host = HostState::kRuns;
    RunHost(rank);
  }
}

void Cluster::IssueCalls(uint32_t rank, const Instruction& instruction) {
  RankLife& life = ranks_[rank];
  Item item{.kind = Instruction::Kind::kCalls, .fault = instruction.fault, .calls = instruction.calls};
  item.parts = item.calls;
  for (uint8_t i = 0; i < instruction.calls; ++i) {
    const Call& call = instruction.call[i];
    item.sequences[i] = Issue(rank, call).sequence;
    item.groups[i] = call.group;
    item.between_two[i] = c4d::IsPointToPoint(call.function);
  }
  if (instruction.fault >= 0) {
    const FaultKind kind = faults_[static_cast<size_t>(instruction.fault)].kind;
    if (kind == FaultKind::kMismatch || kind == FaultKind::kOppositeOrder) {
      Fire(instruction.fault, item.groups[0], item.sequences[0]);
    }
  }
  if (mode_ == Mode::kSynchronous) {
    life.host = HostState::kInside;
    life.inside = item.calls;
    BeginItem(rank, 0, item);
    return;
  }
  const uint32_t stream = StreamOf(item.groups[0]);
  if (stream != kComputeStream) item.wait_ticket = life.streams[kComputeStream].queued;
  const uint64_t ticket = life.streams[stream].queued + 1;
  Queue(rank, stream, item);
  if (stream != kComputeStream && instruction.compute_waits) {
    Queue(rank, kComputeStream, {.kind = Instruction::Kind::kDrain, .wait_stream = stream, .wait_ticket = ticket});
  }
}

Outstanding& Cluster::Issue(uint32_t rank, const Call& call) {
  Member& member = Of(rank, call.group);
  RankLife& life = ranks_[rank];
  life.last_call = std::max(now_, life.last_call + kCallTime);
  Outstanding operation{.call = call, .issued_at = life.last_call};
  if (c4d::IsPointToPoint(call.function)) {
    operation.sequence = ++member.point_to_point_issued;
    operation.channel_sequence = ++member.channel_issued[ChannelOf(rank, call)];
  } else {
    operation.sequence = ++member.issued;
  }
  member.crossed = life.last_call;
  life.last_crossing = life.last_call;
  member.outstanding.push_back(operation);
  return member.outstanding.back();
}

Outstanding* Cluster::FindOutstanding(uint32_t rank, uint32_t group, uint64_t sequence, bool between_two) {
  for (Outstanding& operation : Of(rank, group).outstanding) {
    if (operation.sequence == sequence && c4d::IsPointToPoint(operation.call.function) == between_two) {
      return &operation;
    }
  }
  return nullptr;
}

// The device ----------------------------------------------------------------------------------------------------------

uint32_t Cluster::StreamOf(uint32_t group) const {
  return mode_ == Mode::kStreams ? 1 + static_cast<uint32_t>(layout_.groups()[group].part) : kComputeStream;
}

void Cluster::Queue(uint32_t rank, uint32_t stream, Item item) {
  RankLife& life = ranks_[rank];
  life.streams[stream].items.push_back(item);
  ++life.streams[stream].queued;
  ++life.queued;
  Pump(rank);
}

// Begins what can begin, and passes over waits that are fulfilled, until nothing moves.
void Cluster::Pump(uint32_t rank) {
  RankLife& life = ranks_[rank];
  for (bool moved = true; moved && !life.is_halted;) {
    moved = false;
    for (uint32_t number = 0; number < life.streams.size() && !life.is_halted; ++number) {
      Stream& stream = life.streams[number];
      if (stream.items.empty() || stream.items.front().begun) continue;
      Item& item = stream.items.front();
      if (life.streams[item.wait_stream].completed < item.wait_ticket) continue;
      if (item.kind == Instruction::Kind::kDrain) {
        FinishItem(rank, number);
        moved = true;
      } else {
        BeginItem(rank, number, item);
      }
    }
  }
}

void Cluster::BeginItem(uint32_t rank, uint32_t stream, Item& item) {
  RankLife& life = ranks_[rank];
  if (item.kind == Instruction::Kind::kKernel) {
    item.begun = true;
    Schedule(item.time, {.kind = Event::Kind::kKernel, .target = rank, .detail = stream});
    return;
  }
  const bool fails = item.fault >= 0;
  const FaultKind kind = fails ? faults_[static_cast<size_t>(item.fault)].kind : FaultKind::kSlowRank;
  if (kind == FaultKind::kDeviceBefore) {
    life.is_halted = true;
    Fire(item.fault, item.groups[0], item.sequences[0]);
    return;
  }
  item.begun = true;
  const bool is_inside = kind == FaultKind::kDeviceInside || kind == FaultKind::kStopped;
  for (uint8_t i = 0; i < item.calls; ++i) {
    Outstanding* operation = FindOutstanding(rank, item.groups[i], item.sequences[i], item.between_two[i]);
    CHECK(operation != nullptr);
    Arrive(rank, *operation, is_inside && i == 0 ? item.fault : int8_t{-1});
  }
  if (is_inside) Fire(item.fault, item.groups[0], item.sequences[0]);
  if (kind == FaultKind::kStopped) StopProcess(rank, item.fault);
}

void Cluster::FinishItem(uint32_t rank, uint32_t stream) {
  RankLife& life = ranks_[rank];
  life.streams[stream].items.pop_front();
  ++life.streams[stream].completed;
  --life.queued;
}

void Cluster::StopProcess(uint32_t rank, int8_t number) {
  RankLife& life = ranks_[rank];
  life.host = HostState::kStopped;
  life.is_halted = life.is_stopped = true;
  for (size_t part = 0; part < kParts; ++part) {
    const uint32_t group = layout_.GroupOf(rank, static_cast<Part>(part));
    if (group == kNone) continue;
    for (const Outstanding& operation : Of(rank, group).outstanding) {
      if (!operation.is_started) continue;
      Meeting& meeting = MeetingOf(rank, operation);
      if (!meeting.is_under_way) meeting.stuck = number;
    }
  }
}

// Where they meet -----------------------------------------------------------------------------------------------------

uint64_t Cluster::ChannelOf(uint32_t rank, const Call& call) {
  const bool sends = call.function == c4d::Function::kSend;
  const uint64_t from = sends ? rank : call.peer, to = sends ? call.peer : rank;
  return from << 32 | to;
}

uint32_t Cluster::SizeOf(const Outstanding& operation) const {
  if (c4d::IsPointToPoint(operation.call.function)) return 2;
  return static_cast<uint32_t>(layout_.groups()[operation.call.group].members.size());
}

Meeting& Cluster::MeetingOf(uint32_t rank, const Outstanding& operation) {
  const bool between_two = c4d::IsPointToPoint(operation.call.function);
  const uint32_t group = operation.call.group;
  Meetings& meetings = between_two ? channels_[group][ChannelOf(rank, operation.call)] : meetings_[group];
  const uint64_t sequence = between_two ? operation.channel_sequence : operation.sequence;
  CHECK(sequence >= meetings.first);
  while (meetings.first + meetings.all.size() <= sequence) meetings.all.emplace_back();
  return meetings.all[sequence - meetings.first];
}

const Meeting* Cluster::FindMeeting(uint32_t rank, const Outstanding& operation) const {
  const bool between_two = c4d::IsPointToPoint(operation.call.function);
  const uint32_t group = operation.call.group;
  const Meetings* meetings = &meetings_[group];
  if (between_two) {
    const auto channel = channels_[group].find(ChannelOf(rank, operation.call));
    if (channel == channels_[group].end()) return nullptr;
    meetings = &channel->second;
  }
  const uint64_t sequence = between_two ? operation.channel_sequence : operation.sequence;
  if (sequence < meetings->first || sequence >= meetings->first + meetings->all.size()) return nullptr;
  return &meetings->all[sequence - meetings->first];
}

void Cluster::Arrive(uint32_t rank, Outstanding& operation, int8_t fault) {
  const bool between_two = c4d::IsPointToPoint(operation.call.function);
  operation.is_started = true;
  operation.started_at = now_;
  Member& member = Of(rank, operation.call.group);
  if (!between_two) ++member.started;
  member.begun = now_;

  Meeting& meeting = MeetingOf(rank, operation);
  if (meeting.arrived++ == 0) {
    meeting.first_arrival = now_;
    meeting.as_called = operation.call;
  } else if (!between_two && !Agree(meeting.as_called, operation.call)) {
    meeting.differs = true;
  }
  meeting.last_arrival = now_;
  if (fault >= 0) meeting.stuck = fault;
  if (meeting.arrived < SizeOf(operation) || meeting.differs) return;
  if (meeting.stuck >= 0 && !faults_[static_cast<size_t>(meeting.stuck)].others_complete) return;
  meeting.is_under_way = true;
  const uint32_t group = operation.call.group;
  const bool slow = slow_link_ != kNone && layout_.IsMember(slow_link_, group);
  Event event{.kind = Event::Kind::kTransfer, .target = group, .detail = operation.sequence};
  if (between_two) {
    event.kind = Event::Kind::kChannel;
    event.detail = operation.channel_sequence;
    event.channel = ChannelOf(rank, operation.call);
  }
  Schedule(operation.call.transfer * (slow ? kSlowLinkFactor : 1), event);
}

uint32_t Cluster::End(Meetings& meetings, uint64_t sequence) {
  Meeting& meeting = meetings.all[sequence - meetings.first];
  meeting.is_over = true;
  const uint32_t stuck = meeting.stuck >= 0 ? faults_[static_cast<size_t>(meeting.stuck)].rank : kNone;
  while (!meetings.all.empty() && meetings.all.front().is_over && meetings.all.front().stuck < 0) {
    meetings.all.pop_front();
    ++meetings.first;
  }
  return stuck;
}

void Cluster::CompleteCollective(uint32_t group, uint64_t sequence) {
  const uint32_t stuck = End(meetings_[group], sequence);
  for (const uint32_t rank : layout_.groups()[group].members) {
    if (rank != stuck) Complete(rank, group, sequence, false);
  }
}

void Cluster::CompleteTransfer(uint32_t group, uint64_t channel, uint64_t sequence) {
  const uint32_t stuck = End(channels_[group][channel], sequence);
  for (const uint32_t rank : {static_cast<uint32_t>(channel >> 32), static_cast<uint32_t>(channel)}) {
    if (rank == stuck) continue;
    for (const Outstanding& operation : Of(rank, group).outstanding) {
      if (!c4d::IsPointToPoint(operation.call.function) || operation.channel_sequence != sequence ||
          ChannelOf(rank, operation.call) != channel) {
        continue;
      }
      Complete(rank, group, operation.sequence, true);
      break;
    }
  }
}

void Cluster::Complete(uint32_t rank, uint32_t group, uint64_t sequence, bool between_two) {
  RankLife& life = ranks_[rank];
  if (life.is_stopped) return;
  Member& member = Of(rank, group);
  const Outstanding* operation = FindOutstanding(rank, group, sequence, between_two);
  CHECK(operation != nullptr);
  if (watcher_) watcher_(rank, *operation, now_ - operation->started_at);
  member.outstanding.erase(member.outstanding.begin() + (operation - member.outstanding.data()));
  if (!between_two) ++member.completed;
  member.crossed = now_;
  life.last_crossing = now_;
  if (mode_ == Mode::kSynchronous) {
    if (--life.inside > 0) return;
    life.host = HostState::kRuns;
    RunHost(rank);
    return;
  }
  const uint32_t stream = StreamOf(group);
  Item& item = life.streams[stream].items.front();
  if (--item.parts > 0) return;
  FinishItem(rank, stream);
  Pump(rank);
  GoOn(rank);
}

void Cluster::Fire(int8_t number, uint32_t group, uint64_t sequence) {
  Fault& fault = faults_[static_cast<size_t>(number)];
  fault.fired = now_;
  fault.group = group;
  fault.sequence = sequence;
}

}  // namespace aimaster::sim::collectives
