// What ranks tell their agent through its socket, and what becomes of it.
#include <algorithm>
#include <utility>

#include "agent/agent.h"
#include "agent/caller.h"
#include "agent/limits.h"
#include "agent/log.h"
#include "agent/retryable_text.h"
#include "agent/socket_path.h"
#include "core/clocks.h"
#include "core/quote.h"

namespace aimaster::agent {

// At the place where the last agent of this node had it, since that is where the ranks look for it.
void Agent::ServeRanks() {
  ServerLimits limits;
  limits.connections_max = limits.strangers_max = kSdkConnectionsMax;
  const auto answer = [this](const HttpRequest& request, pid_t peer) { return sdk_api_.Answer(request, peer); };
  Result<std::unique_ptr<LocalServer>> server = Fail(ErrorKind::kEnvironment, "");
  if (!file_.socket.empty()) server = LocalServer::Listen(io_, file_.socket, limits, answer);
  if (!server) {
    const auto path = SocketPath(NodeDirectory(options_), "agent.sock");
    if (!path) return LogError(path.error().message + "; ranks can't speak to their agent");
    file_.socket = path->string();
    server = LocalServer::Listen(io_, file_.socket, limits, answer);
  }
  if (!server) return LogError(server.error().message + "; ranks can't speak to their agent");
  SaveFile();
  sdk_socket_ = std::move(*server);
  attempts_.SetSocket(file_.socket);
}

SdkApi::Node::State Agent::GetState() const {
  return {.job = job_.job_id(),
          .node = options_.node_name,
          .connected = conversation_.is_welcomed(),
          .retryable_errors = file_.retryable_errors,
          .hang = tidings_.hang()};
}

Status Agent::AddRetryableErrors(const std::vector<std::string>& texts) {
  std::vector<std::string> added;
  for (const std::string& text : texts) {
    const bool is_known = std::ranges::find(file_.retryable_errors, text) != file_.retryable_errors.end() ||
                          std::ranges::find(added, text) != added.end();
    if (!is_known) added.push_back(text);
  }
  if (file_.retryable_errors.size() + added.size() > kRetryableTextsMax) {
    return Fail(ErrorKind::kUsage, "a job may name " + std::to_string(kRetryableTextsMax) +
                                       " retryable errors, and has named " +
                                       std::to_string(file_.retryable_errors.size()) + " already");
  }
  if (added.empty()) return {};
  LearnRetryableErrors(added);
  ReportRetryableErrors(added);
  return {};
}

// They are kept on disk: the next agent looks for them in the output of ranks that die before it has a master.
void Agent::LearnRetryableErrors(std::span<const std::string> texts) {
  const size_t before = file_.retryable_errors.size();
  for (const std::string& text : texts) {
    const bool is_known = std::ranges::find(file_.retryable_errors, text) != file_.retryable_errors.end();
    if (!is_known && file_.retryable_errors.size() < kRetryableTextsMax) file_.retryable_errors.push_back(text);
  }
  if (file_.retryable_errors.size() > before) SaveFile();
}

void Agent::ReportRetryableErrors(const std::vector<std::string>& texts) {
  v1::Report report;
  for (const std::string& text : texts) report.mutable_retryable_errors()->add_texts(text);
  Report(std::move(report));
}

// Both sides know all that either knew: an agent that was killed may have taken a report along.
void Agent::ShareRetryableErrors(std::vector<std::string> of_master) {
  std::vector<std::string> unknown_to_it;
  for (const std::string& text : file_.retryable_errors) {
    if (std::ranges::find(of_master, text) == of_master.end()) unknown_to_it.push_back(text);
  }
  LearnRetryableErrors(of_master);
  const bool has_room = of_master.size() < kRetryableTextsMax;
  if (!unknown_to_it.empty() && has_room) ReportRetryableErrors(unknown_to_it);
}

// By the process where it can be seen: a rank, or what descends from one. One that has spoken and ended is gone by the
// time that we look, and one in another pid namespace can't be seen: of those, what it says of itself counts.
Result<Agent::Speaker> Agent::FindSpeaker(const SdkCaller& caller) const {
  const std::vector<LiveRank> ranks = attempts_.LiveRanks();
  if (caller.rank) {
    const auto named = std::ranges::find(ranks, *caller.rank, [](const LiveRank& one) { return one.rank.rank; });
    if (named != ranks.end()) return Speaker{named->key, named->rank};
    return Fail(ErrorKind::kUsage, "rank " + std::to_string(*caller.rank) + " does not run on this node");
  }
  const auto index = FindCaller(ranks, caller.pid, [](pid_t pid) {
    const auto stat = ReadStat(pid);
    return stat ? stat->parent : 0;
  });
  if (index) return Speaker{ranks[*index].key, ranks[*index].rank};
  const Claim* claim =
      caller.instance.empty() ? nullptr : attempts_.ClaimOf(caller.instance, caller.attempt.value_or(0));
  if (claim == nullptr) {
    return Fail(ErrorKind::kUsage, "the caller belongs to no rank of this node; say which with \"rank\"");
  }
  return Speaker{claim->key, claim->ranks.size() == 1 ? std::optional(claim->ranks.front()) : std::nullopt};
}

Result<Tidings::RankKey> Agent::FindLiveRank(const SdkCaller& caller) {
  const Result<Speaker> speaker = FindSpeaker(caller);
  if (!speaker) return std::unexpected(speaker.error());
  if (!speaker->rank) {
    return Fail(ErrorKind::kUsage,
                "the caller may be any rank of " + Quoted(caller.instance) + "; say which with \"rank\"");
  }
  const auto live = attempts_.Live();
  if (std::ranges::find(live, speaker->attempt) == live.end()) {
    return Fail(ErrorKind::kUsage, "the rank that the caller belongs to has ended");
  }
  logs_.RankSpoke(speaker->attempt, speaker->rank->local);
  return Tidings::RankKey{speaker->attempt, speaker->rank->local};
}

Status Agent::SetStep(const SdkCaller& caller, uint64_t step, std::optional<double> loss) {
  const auto rank = FindLiveRank(caller);
  if (!rank) return std::unexpected(rank.error());
  tidings_.SetStep(*rank, step, loss, MonotonicNow());
  return {};
}

Status Agent::SetCheckpoint(const SdkCaller& caller, uint64_t step) {
  const auto rank = FindLiveRank(caller);
  if (!rank) return std::unexpected(rank.error());
  tidings_.SetCheckpoint(*rank, step, MonotonicNow());
  v1::Checkpoint& checkpoint = new_checkpoint_.emplace();
  checkpoint.set_round(attempts_.ClaimOf(rank->first)->round);
  checkpoint.set_step(step);
  checkpoint.set_time_ns(WallNow().since_epoch.count());
  if (!checkpoint_timer_runs_) PassCheckpointOn();
  return {};
}

// It is what lost work is counted from, so it is made durable; a training that tells one a step costs no more for it.
void Agent::PassCheckpointOn() {
  if (!new_checkpoint_) return;
  v1::Report report;
  *report.mutable_checkpoint() = *std::exchange(new_checkpoint_, std::nullopt);
  report.mutable_checkpoint()->set_clock_offset_ns(conversation_.clock().Estimate().offset.count());
  Report(std::move(report));
  checkpoint_timer_runs_ = true;
  checkpoint_timer_.After(kCheckpointPace, [this] {
    checkpoint_timer_runs_ = false;
    PassCheckpointOn();
  });
}

// Of one that ended right after it spoke too: its last words are the ones that matter.
Status Agent::SendMessage(const SdkCaller& caller, const std::string& content) {
  const Result<Speaker> speaker = FindSpeaker(caller);
  if (!speaker) return std::unexpected(speaker.error());
  if (conversation_.CountUnacknowledged(v1::Report::kCustomMessage) >= kMessagesKeptMax) {
    return Fail(ErrorKind::kEnvironment,
                std::to_string(kMessagesKeptMax) + " messages of this node wait for the master; say it again later");
  }
  if (!tidings_.MaySpeak({speaker->attempt, speaker->rank ? speaker->rank->local : UINT32_MAX}, MonotonicNow())) {
    return Fail(ErrorKind::kEnvironment,
                "no more than " + std::to_string(kMessagesAtOnce) +
                    " messages of a rank are passed on at once, and then one a second; after the first " +
                    std::to_string(kMessagesSoon) + ", one in 10 s");
  }
  v1::Report report;
  v1::CustomMessage& message = *report.mutable_custom_message();
  message.mutable_id()->set_instance(speaker->attempt.instance);
  message.mutable_id()->set_attempt(speaker->attempt.attempt);
  if (speaker->rank) message.set_rank(speaker->rank->rank);
  message.set_content(content);
  Report(std::move(report));
  if (speaker->rank) logs_.RankSpoke(speaker->attempt, speaker->rank->local);
  return {};
}

// It is the round's, whoever sets it: a process that outlived its round has no say.
Status Agent::SetHangInterval(const SdkCaller& caller, int64_t interval_ms) {
  std::optional<uint32_t> round = caller.round;
  if (!round) {
    const Result<Speaker> speaker = FindSpeaker(caller);
    if (!speaker) return std::unexpected(speaker.error());
    const Claim* claim = attempts_.ClaimOf(speaker->attempt);
    if (claim != nullptr) round = claim->round;
  }
  const std::optional<uint32_t> present = attempts_.Round();
  if (!round || !present || *round != *present) {
    return Fail(ErrorKind::kUsage, "the caller's round is over, and its interval with it");
  }
  const HangSetting setting{
      .interval_ms = interval_ms, .set_at_ns = SaidAtNs(caller.at_ns, MonotonicNow()), .round = *round};
  if (!tidings_.SetHang(setting)) return {};  // what was said later has come before
  hang_changed_ = true;
  if (!hang_timer_runs_) PassHangSettingOn();
  return {};
}

void Agent::OnRoundOf(const AttemptLife& attempt) {
  if (!tidings_.BeginRound(attempt.claim().round)) return;
  hang_changed_ = true;
  if (!hang_timer_runs_) PassHangSettingOn();
}

// The master hears at once, since silence may be about to be found too long; the next agent of this node finds it on
// disk. Both cost more than saying it, so whoever says much is heard every kHangSettingPace.
void Agent::PassHangSettingOn() {
  hang_timer_runs_ = hang_changed_;
  if (!std::exchange(hang_changed_, false)) return;
  file_.hang_setting = tidings_.hang();
  SaveFile();
  if (link_.queued_bytes() < kHeartbeatQueueMaxBytes) {
    SayHeartbeat();
  }
  hang_timer_.After(kHangSettingPace, [this] { PassHangSettingOn(); });
}

// One that we ended, or that ended well, has failed of nothing.
void Agent::AddWordsOfRank(const AttemptLife& attempt, const RankEnd& end, v1::RankExited& report) {
  const std::optional<uint64_t> step = tidings_.StepOf({attempt.key(), end.rank.local});
  if (step) report.set_step(*step);
  if (end.exit && (end.exit->code == 0 || end.exit->stopped_by_us || end.exit->orphaned_ms > 0)) return;
  report.set_retryable_text(FindRetryableText(attempt.claim(), end.rank.local, file_.retryable_errors));
}

}  // namespace aimaster::agent
