#include "sim/master_process.h"

#include "core/check.h"
#include "core/overloaded.h"
#include "journal/codec.h"
#include "journal/stack_files.h"
#include "journal/stored_state.h"
#include "sim/world.h"

namespace aimaster::sim {
namespace {

using namespace std::chrono_literals;

// As in master.cc.
constexpr Duration kAppendAgain = 1s, kWatchInterval = 1s;

// As a successor reads it from the journal's rows.
Engine ThroughTheStore(const JobState& job) {
  const Result<StoredState> stored = DecodeStoredState(Encode(StoreState(job)));
  CHECK(stored);
  Result<JobState> restored = RestoreState(job.spec, *stored);
  CHECK(restored);
  return Engine(std::move(*restored));
}

constexpr int kExitDone = 0, kExitAgain = 1, kExitFenced = 75;

}  // namespace

SimMaster::SimMaster(World& world, uint64_t id) : process(world.queue), world_(world), id_(id) {}

void SimMaster::Say(const std::string& text) const {
  if (world_.is_traced()) world_.Say("master-" + std::to_string(id_) + " epoch " + std::to_string(Value(epoch_)), text);
}

Moment SimMaster::Now() const {
  const Moment now = world_.master_machine.Now();
  return {now.monotonic + clock_shift_, now.wall};
}

void SimMaster::Begin() {
  const Result<Epoch> epoch = world_.journal.Open();
  if (!epoch) return Leave(kExitAgain, "cannot run: " + epoch.error().message);
  epoch_ = *epoch;
  process.Step();
  // Reading the journal and opening a port take their time.
  process.After(world_.random.Delay(1s), [this] { Lead(); });
}

void SimMaster::Lead() {
  Engine engine;
  for (const auto& entry : world_.journal.entries()) engine.Step(entry->decoded);
  if (!world_.journal.entries().empty()) engine = ThroughTheStore(engine.job());
  conductor_.emplace(epoch_, "/job", std::move(engine));
  if (!world_.journal.entries().empty()) {  // as in master/clock.cc
    const Moment last = world_.journal.entries().back()->decoded.at;
    const Moment now = Now();
    if (now.monotonic < last.monotonic) {
      clock_shift_ += last.monotonic - now.monotonic + std::max(now.wall - last.wall, Duration::zero());
    }
  }
  const std::optional<MasterAddress> before = world_.ReadAddress("master-" + std::to_string(id_));
  if (before && before->epoch > epoch_ && world_.broken() != Break::kKeepOldAddress) {
    return Leave(kExitFenced, "another master has taken over");
  }
  world_.WriteAddress(*this);
  process.Step();
  Say("begins");
  JobSpec spec = world_.scenario.spec;
  if (world_.broken() == Break::kRestartOnceMore) ++spec.fault_tolerance.max_num_of_job_restart;
  if (world_.broken() == Break::kGiveUpEarly && spec.fault_tolerance.max_num_of_job_restart > 0) {
    --spec.fault_tolerance.max_num_of_job_restart;
  }
  if (world_.broken() == Break::kTakeAllAlong) spec.fault_tolerance.execution_mode = ExecutionMode::kSync;
  if (world_.broken() == Break::kOtherChance) {
    static uint64_t other = 0;
    spec.name += std::to_string(++other);
  }
  Drive([&] { conductor_->Begin(Now(), spec); });
  Watch();
}

// ---- the loop ----

template <typename Call>
void SimMaster::Drive(Call call) {
  call();
  for (const Effect& effect : conductor_->TakeEffects()) {
    process.Step();
    Do(effect);
  }
  WriteSoon();
  ArmDeadline();
}

void SimMaster::Do(const Effect& effect) {
  std::visit(Overloaded{[this](const aimaster::Transmit& t) { Transmit(static_cast<uint64_t>(t.connection), t.bytes); },
                        [this](const HangUp& h) {
                          // Its own end hears of it too, as with a socket.
                          const auto wire = static_cast<uint64_t>(h.connection);
                          world_.network.Close(wire, End::kMaster);
                          process.After(Duration::zero(), [this, wire] { OnClosed(wire); });
                        },
                        [this](const AcquireFromProvider& a) {
                          world_.OnAsksProvider(a.nodes);
                          world_.provider.Acquire(*this, a.nodes);
                        },
                        [this](const IsolateAtProvider& i) { world_.provider.Isolate(i.node); },
                        [this](const ReleaseAtProvider& r) { world_.provider.Release(r.node); },
                        [this](const RecoverAtProvider& r) { world_.provider.Recover(r.node); },
                        [this](const LookForSuccessor&) { LeaveIfFenced(); },
                        [this](const StoreStacks& s) {
                          process.After(std::chrono::milliseconds{5}, [this, s] {
                            Drive([&] {
                              const std::string name = StackFileName(s.capture.number);
                              conductor_->OnStacksStored(Now(), SummarizeStacks(s.capture, name, s.instances));
                            });
                          });
                        },
                        [this](const Print& p) { Say(p.line); },
                        [this](const aimaster::Leave& l) { Leave(kExitDone, l.why); }},
             effect);
}

void SimMaster::Transmit(uint64_t wire, const std::string& bytes) {
  if (world_.broken() == Break::kNeverSendAgain) {
    v1::ToAgent message;
    message.ParseFromString(bytes);
    if (message.has_command()) {
      message.mutable_command()->set_epoch(0);
      if (!sent_.insert(message.SerializeAsString()).second) return;
    }
  }
  world_.OnMasterSends(wire, bytes);
  world_.network.Send(wire, End::kMaster, bytes);
}

void SimMaster::WriteSoon() {
  if (!conductor_->WantsToWrite() || append_waits_ || std::exchange(write_posted_, true)) return;
  process.After(Duration::zero(), [this] {
    write_posted_ = false;
    if (conductor_->WantsToWrite() && !append_waits_) Write();
  });
}

void SimMaster::Write() {
  const JournalBatch& batch = conductor_->BeginWrite();
  process.Step();
  if (batch.empty()) {
    Drive([this] { conductor_->OnDurable(Now()); });
    return;
  }
  writing_ = Writing{.number = ++writes_, .batch = batch};
  if (world_.broken() == Break::kActBeforeDurable) {
    process.After(Duration::zero(), [this] { Drive([this] { conductor_->OnDurable(Now()); }); });
  }
  // The disk goes on while the process is stopped, and while it hears of nothing.
  const Duration until_commit = world_.CommitDelay(), until_known = world_.random.Delay(5ms);
  world_.queue.After(until_commit, [this, master = id_, number = writes_, &world = world_] {
    if (world.FindMaster(master) != nullptr && writing_ && writing_->number == number) Commit();
  });
  process.After(until_commit + until_known, [this, number = writes_] {
    if (!writing_ || writing_->number != number) return;
    Commit();
    const Status status = writing_->status;
    writing_.reset();
    OnAppended(status);
  });
}

void SimMaster::Commit() {
  if (std::exchange(writing_->committed, true)) return;
  const auto added = world_.journal.Append(epoch_, writing_->batch);
  if (!added) {
    writing_->status = std::unexpected(added.error());
    return;
  }
  for (const JournalDisk::Entry* entry : *added) world_.OnDurable(*entry);
}

void SimMaster::OnAppended(const Status& status) {
  if (world_.broken() == Break::kActBeforeDurable) return;
  if (status) {
    Drive([this] { conductor_->OnDurable(Now()); });
  } else if (status.error().kind == ErrorKind::kFenced) {
    Leave(kExitFenced, "another master has taken over");
  } else {
    append_waits_ = true;
    Drive([&] { conductor_->OnNotDurable(status.error().message); });
    append_again_.After(kAppendAgain, [this] {
      append_waits_ = false;
      WriteSoon();
    });
  }
}

void SimMaster::OnDeath() {
  if (writing_ && !writing_->committed && world_.random.Chance(0.5)) Commit();
  writing_.reset();
}

void SimMaster::ArmDeadline() {
  if (world_.broken() == Break::kDeafToTime) return;
  const std::optional<Monotonic> next = conductor_->NextDeadline();
  if (next == armed_) return;
  armed_ = next;
  if (!next) {
    deadline_.Cancel();
    return;
  }
  deadline_.After(*next - Now().monotonic, [this] {
    armed_.reset();
    Drive([this] { conductor_->OnTime(Now()); });
  });
}

void SimMaster::Watch() {
  process.After(kWatchInterval, [this] {
    if (LeaveIfFenced()) return;
    Drive([this] { conductor_->Watch(Now()); });
    Watch();
  });
}

// ---- what comes from outside ----

void SimMaster::OnBytes(uint64_t wire, const std::string& bytes) {
  Drive([&] { conductor_->OnMessage(Now(), ConnectionId{wire}, bytes); });
  if (world_.broken() != Break::kAcknowledgeFirst) return;
  v1::ToMaster message;
  if (!message.ParseFromString(bytes) || !message.has_report()) return;
  v1::ToAgent answer;
  answer.mutable_acknowledge()->set_sequence(message.report().sequence());
  Transmit(wire, answer.SerializeAsString());
}

void SimMaster::OnClosed(uint64_t wire) {
  Drive([&] { conductor_->OnDisconnected(ConnectionId{wire}, "closed"); });
}

void SimMaster::Stop(bool at_once) {
  Drive([&] { conductor_->Stop(Now(), at_once, "a person"); });
}

void SimMaster::OnNodeDenied(const std::string& reason) {
  Drive([&] { conductor_->OnNodeDenied(Now(), reason); });
}

void SimMaster::OnNodeLost(NodeIndex node, const std::string& reason) {
  Drive([&] { conductor_->OnNodeLost(Now(), node, reason); });
}

// ---- the end ----

bool SimMaster::LeaveIfFenced() {
  const std::optional<MasterAddress> address = world_.ReadAddress("master-" + std::to_string(id_));
  if (address && address->epoch < epoch_ && world_.broken() != Break::kKeepOldAddress) {
    world_.WriteAddress(*this);  // one that came late has written its own
    // The real one looks at the journal every second; here that is as late as its sight of the address, so that older
    // masters live long enough to do harm.
    if (!world_.journal.IsOwnedBy(epoch_)) Leave(kExitFenced, "another master has taken over");
  }
  if (!address || address->epoch <= epoch_) return false;
  Leave(kExitFenced, "another master has taken over");
  return true;
}

void SimMaster::Leave(int status, const std::string& why) {
  Say("leaves with " + std::to_string(status) + (why.empty() ? "" : ": " + why));
  if (status == kExitDone) world_.provider.Dismiss();
  world_.OnMasterGone(*this, status);
  throw ProcessDied();
}

}  // namespace aimaster::sim
