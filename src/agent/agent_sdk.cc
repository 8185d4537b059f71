// What ranks tell their agent through its socket, and what becomes of it.
#include <algorithm>

#include "agent/agent.h"
#include "agent/caller.h"
#include "agent/limits.h"
#include "agent/log.h"
#include "agent/retryable_text.h"
#include "agent/socket_path.h"
#include "core/clocks.h"

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
          .retryable_errors = file_.retryable_errors};
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

Status Agent::SetStep(pid_t caller, std::optional<uint32_t> rank, uint64_t step) {
  const std::vector<LiveRank> ranks = attempts_.LiveRanks();
  const auto named = std::ranges::find_if(ranks, [&](const LiveRank& one) { return one.rank.rank == rank; });
  std::optional<size_t> index;
  if (rank) {
    if (named != ranks.end()) index = static_cast<size_t>(named - ranks.begin());
  } else {
    index = FindCaller(ranks, caller, [](pid_t pid) {
      const auto stat = ReadStat(pid);
      return stat ? stat->parent : 0;
    });
  }
  if (!index) {
    return Fail(ErrorKind::kUsage, rank ? "rank " + std::to_string(*rank) + " does not run on this node"
                                        : "the caller belongs to no rank of this node; say which with \"rank\"");
  }
  const auto [known, is_new] = steps_.try_emplace({ranks[*index].key, ranks[*index].rank.local}, step);
  if (is_new || step > known->second)
    progress_ = Progress{std::max(step, progress_ ? progress_->step : 0), MonotonicNow()};
  known->second = step;
  return {};
}

// One that we ended, or that ended well, has failed of nothing.
void Agent::AddWordsOfRank(const AttemptLife& attempt, const RankEnd& end, v1::RankExited& report) {
  const auto step = steps_.find({attempt.key(), end.rank.local});
  if (step != steps_.end()) report.set_step(step->second);
  if (end.exit && (end.exit->code == 0 || end.exit->stopped_by_us || end.exit->orphaned_ms > 0)) return;
  report.set_retryable_text(FindRetryableText(attempt.claim(), end.rank.local, file_.retryable_errors));
}

}  // namespace aimaster::agent
