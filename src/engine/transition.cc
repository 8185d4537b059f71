#include "engine/transition.h"

#include <algorithm>
#include <utility>

#include "core/quote.h"
#include "core/roles.h"
#include "engine/failures.h"

namespace aimaster {

StepResult Transition::TakeResult() {
  result_.changed_instances.assign(changed_instances_.begin(), changed_instances_.end());
  result_.changed_rounds.assign(changed_rounds_.begin(), changed_rounds_.end());
  result_.changed_records.assign(changed_records_.begin(), changed_records_.end());
  result_.changed_failures.assign(changed_failures_.begin(), changed_failures_.end());
  return std::move(result_);
}

// The instance, if the input is about its current attempt; agents also repeat what they said about former ones.
InstanceState* Transition::Current(InstanceIndex index, Attempt attempt) {
  if (Value(index) >= job_.instances.size()) return nullptr;
  InstanceState& instance = job_.instances[Value(index)];
  const bool current = instance.live && instance.attempt == attempt;
  return current ? &instance : nullptr;
}

InstanceState& Transition::Changed(InstanceIndex index) {
  changed_instances_.insert(index);
  return job_.instances[Value(index)];
}

RoundState& Transition::ChangedRound() {
  changed_rounds_.insert(job_.rounds.size() - 1);
  return job_.rounds.back();
}

void Transition::SetLive(InstanceIndex index, bool live) {
  InstanceState& instance = Changed(index);
  job_.tallies.live += live;
  job_.tallies.live -= instance.live;
  instance.live = live;
}

void Transition::SetStatus(InstanceIndex index, InstanceStatus status) {
  InstanceState& instance = Changed(index);
  job_.tallies.succeeded += status == InstanceStatus::kSucceeded;
  job_.tallies.succeeded -= instance.status == InstanceStatus::kSucceeded;
  if (CountsForSuccess(job_.spec, instance.role, instance.index_in_role)) {
    job_.tallies.work_succeeded += status == InstanceStatus::kSucceeded;
    job_.tallies.work_succeeded -= instance.status == InstanceStatus::kSucceeded;
  }
  instance.status = status;
}

void Transition::SetRanksSucceeded(InstanceIndex index, uint32_t count) {
  InstanceState& instance = Changed(index);
  if (CountsForSuccess(job_.spec, instance.role, instance.index_in_role)) {
    job_.tallies.work_done += count == instance.ranks;
    job_.tallies.work_done -= instance.ranks_succeeded == instance.ranks;
  }
  instance.ranks_succeeded = count;
}

// Slots are looked at in order and each once: while nodes are acquired, a node that is usable stays so, or Acquire
// begins anew.
bool Transition::AllSlotsFilled() {
  while (job_.slots_filled < job_.placement.size() && NodeUsable(job_.placement[job_.slots_filled])) {
    ++job_.slots_filled;
  }
  return job_.slots_filled == job_.placement.size();
}

void Transition::ClearFailures() {
  job_.failures.clear();
  job_.failures_dropped = 0;
  job_.tallies.failure_classes.clear();
  job_.tallies.failure_bytes = 0;
}

// For one line of text, however many they are.
std::string Transition::NamesOfLive() const {
  std::string names;
  uint32_t named = 0;
  for (const InstanceState& instance : job_.instances) {
    if (named == kNamesInTextMax) break;
    if (!instance.live) continue;
    names += (named++ == 0 ? "" : ", ") + instance.name + " on " + job_.nodes.at(instance.node).name;
  }
  const uint32_t more = job_.tallies.live - named;
  return more == 0 ? names : names + " and " + std::to_string(more) + " more";
}

bool Transition::NodeUsable(NodeIndex node) const {
  const auto found = job_.nodes.find(node);
  return found != job_.nodes.end() && found->second.joined && !found->second.lost && !found->second.isolated;
}

NodeIndex Transition::NextNodeIndex() const {
  return job_.nodes.empty() ? NodeIndex{0} : Next(job_.nodes.rbegin()->first);
}

bool Transition::RoundIsUp() const {
  switch (job_.phase) {
    case Phase::kRunning:
    case Phase::kCollecting:
    case Phase::kJudging:
      return true;
    case Phase::kNew:
    case Phase::kAcquiring:
    case Phase::kReserving:
    case Phase::kStopping:
    case Phase::kEnded:
      return false;
  }
  return false;
}

NodeIndex Transition::NodeOfRankZero() const { return job_.instances.front().node; }

std::string Transition::RankText(Rank rank) const {
  return "rank " + std::to_string(Value(rank)) + " (" + job_.instances[Value(job_.instance_of_rank[Value(rank)])].name +
         ")";
}

std::vector<StageTime>& Transition::Stages() {
  if (!job_.pending_stages.empty()) return job_.pending_stages;
  return ChangedRound().stages;
}

void Transition::BeginStage(Stage stage, Moment start) { Stages().push_back({stage, start, std::nullopt}); }

void Transition::EndStage(Stage stage) {
  std::vector<StageTime>& stages = Stages();
  const auto last = std::ranges::find_if(stages.rbegin(), stages.rend(),
                                         [stage](const StageTime& s) { return s.stage == stage && !s.duration; });
  if (last != stages.rend()) last->duration = now_.monotonic - last->start.monotonic;
}

bool Transition::IsOpen(Stage stage) const {
  return std::ranges::any_of(job_.rounds.back().stages,
                             [stage](const StageTime& s) { return s.stage == stage && !s.duration; });
}

// What had begun and will not come to its own end: it lasted until now.
void Transition::EndAllStages() {
  for (StageTime& stage : ChangedRound().stages) {
    if (!stage.duration) stage.duration = now_.monotonic - stage.start.monotonic;
  }
}

// The failure led to no other round: its stages are the last ones of this.
void Transition::KeepStagesInThisRound() {
  std::vector<StageTime>& stages = ChangedRound().stages;
  stages.insert(stages.end(), job_.pending_stages.begin(), job_.pending_stages.end());
  job_.pending_stages.clear();
}

void Transition::Tell(std::string type, std::string subject, std::string message) {
  result_.events.push_back({now_, std::move(type), std::move(subject), std::move(message)});
}

void Transition::Record(std::string kind, std::string summary, std::vector<std::string> reasons) {
  result_.decisions.push_back({now_, job_.round, std::move(kind), std::move(summary), std::move(reasons)});
}

void Transition::On(const MasterStarted& input) {
  job_.epoch = input.epoch;
  if (Value(input.epoch) > 1) {
    Tell("aimaster.master.started", "", "the master was started again, epoch " + std::to_string(Value(input.epoch)));
  }
  if (!input.engine_change.empty()) {
    Tell("aimaster.master.engine-changed", "", input.engine_change);
    Record("Continue", "what was decided before stays, though this version would have decided otherwise",
           {input.engine_change});
  }
}

// What the job itself has called retryable holds for its life, so nothing is ever taken back.
void Transition::On(const RetryableErrorsAdded& input) {
  if (job_.phase == Phase::kNew || job_.phase == Phase::kEnded) return;
  std::vector<std::string>& known = job_.retryable_texts;
  std::string added, refused;
  for (const std::string& text : input.texts) {
    if (text.empty() || text.size() > kRetryableTextMaxBytes || std::ranges::find(known, text) != known.end()) continue;
    const bool has_room = known.size() < kRetryableTextsMax;
    std::string& names = has_room ? added : refused;
    names += (names.empty() ? "" : ", ") + Quoted(text);
    if (has_room) known.push_back(text);
  }
  if (!refused.empty()) {
    Tell("aimaster.job.note", "",
         "no more than " + std::to_string(kRetryableTextsMax) +
             " texts can make a failure retryable; left out: " + refused);
  }
  if (added.empty()) return;
  Tell("aimaster.job.retryable-errors", "", "the job calls these errors retryable: " + added);
  Act(ShareRetryableErrors{known});
}

// It changes nothing; who is told of events is told of it, whatever the job is doing.
void Transition::On(const CustomMessageSent& input) {
  if (job_.phase == Phase::kNew || job_.phase == Phase::kEnded) return;
  if (Value(input.instance) >= job_.instances.size()) return;
  const std::string who = input.rank ? "rank " + std::to_string(Value(*input.rank)) + ": " : "";
  Tell("aimaster.custom.message", job_.instances[Value(input.instance)].name, who + input.content);
}

// Several ranks may save parts of one checkpoint; it is there when the last has.
void Transition::On(const CheckpointTold& input) {
  if (job_.phase == Phase::kNew || job_.phase == Phase::kEnded) return;
  if (job_.rounds.empty() || job_.rounds.back().round != input.round) return;
  const std::optional<Checkpoint>& known = job_.rounds.back().checkpoint;
  if (known && known->at >= input.time) return;
  ChangedRound().checkpoint = Checkpoint{.step = input.step, .at = input.time};
}

void Transition::On(const Tick&) {
  Deadlines& deadlines = job_.deadlines;
  const auto due = [this](std::optional<Monotonic>& deadline) {
    if (!deadline || *deadline > now_.monotonic) return false;
    deadline.reset();
    return true;
  };
  if (due(deadlines.collect) || due(deadlines.collect_cap)) CloseCollectionWhenComplete();
  if (due(deadlines.start)) {
    if (job_.phase == Phase::kAcquiring || job_.phase == Phase::kReserving) {
      FailStart("NodeTimeout", "not all nodes were ready within --start-timeout");
    } else if (All(job_.tallies.started) || IsAsync(job_)) {  // there each instance has a deadline of its own
      FinishReadyStage();
    } else {
      FailStart("StartTimeout", "not all instances were started within --start-timeout");
    }
  }
  if (due(deadlines.stop)) EscalateStop();
  if (due(deadlines.wait)) ContinueWhenStopped();
  if (due(job_.stacks.deadline)) GiveUpOnStacks();
  OnDeadlines();
}

}  // namespace aimaster
