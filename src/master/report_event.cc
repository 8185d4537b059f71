#include "master/report_event.h"

#include <algorithm>

#include "core/character_border.h"
#include "core/failure.h"

namespace aimaster {
namespace {

// A report may say anything; longer than this, nobody has waited.
constexpr std::chrono::hours kOrphanedMax{24 * 3650};

// At most kErrorTextMaxBytes, cut between characters.
std::string Bounded(const std::string& text) { return text.substr(0, CharacterBorder(text, kErrorTextMaxBytes)); }

const InstanceState* Find(const JobState& job, const v1::AttemptId& id) {
  return id.instance() < job.instances.size() ? &job.instances[id.instance()] : nullptr;
}

RankFailure Failure(const v1::RankExited& report, NodeIndex from) {
  RankFailure failure{
      .rank = Rank{report.rank()},
      .instance = InstanceIndex{report.id().instance()},
      .attempt = Attempt{report.id().attempt()},
      .node = from,
      .lost_reason = Bounded(report.lost_reason()),
      .exec_error = Bounded(report.exec_error()),
      .exec_errno = report.exec_errno(),
      .stopped_by_us = report.stopped_by_us(),
      .orphaned = std::clamp<std::chrono::milliseconds>(std::chrono::milliseconds(report.orphaned_ms()),
                                                        std::chrono::milliseconds::zero(), kOrphanedMax),
      .clock_uncertainty = Duration{std::max<int64_t>(0, report.clock_uncertainty_ns())},
      .last_error_line = Bounded(report.last_error_line()),
      .error_file_message = Bounded(report.error_file_message()),
      .retryable_text = report.retryable_text().substr(0, kRetryableTextMaxBytes),
      .step = report.has_step() ? std::optional(report.step()) : std::nullopt};
  const auto corrected = [&](int64_t ns) { return Wall{Duration{ns + report.clock_offset_ns()}}; };
  if (report.how_case() != v1::RankExited::kLostReason) {
    RankExit exit{.core_dumped = report.core_dumped(),
                  .out_of_memory = report.out_of_memory(),
                  .time = corrected(report.exit_time_ns())};
    if (report.how_case() == v1::RankExited::kSignal) {
      exit.signal = report.signal();
    } else {
      exit.code = report.code();
    }
    failure.exit = exit;
  }
  if (report.dump_start_ns() != 0) failure.dump_start = corrected(report.dump_start_ns());
  if (report.error_file_time_ns() != 0) failure.error_file_time = corrected(report.error_file_time_ns());
  if (report.has_torchrun()) {
    failure.torchrun = Torchrun{.rank = std::nullopt, .pid = report.torchrun().pid()};
    if (report.torchrun().has_rank()) failure.torchrun->rank = report.torchrun().rank();
  }
  if (report.has_mpi_rank()) {
    const v1::MpiRank& rank = report.mpi_rank();
    failure.mpi_rank = MpiRank{.rank = rank.rank(), .pid = rank.pid(), .launcher_status = std::nullopt};
    if (rank.has_launcher_status()) failure.mpi_rank->launcher_status = rank.launcher_status();
  }
  size_t bytes = 0;
  for (const v1::LineMatch& match : report.matches()) {
    if (failure.matches.size() == kMatchesPerRankMax || bytes > kMatchBytesPerRankMax) break;
    failure.matches.push_back({match.rule(), Bounded(match.line()), match.file(), match.offset()});
    bytes += failure.matches.back().line.size();
  }
  return failure;
}

std::optional<Event> ExitEvent(const v1::RankExited& report, NodeIndex from, const JobState& job) {
  const InstanceState* instance = Find(job, report.id());
  // An exit that doesn't say how must never pass for a success.
  if (instance == nullptr || report.how_case() == v1::RankExited::HOW_NOT_SET) return std::nullopt;
  const uint32_t first = Value(instance->first_rank);
  if (report.rank() < first || report.rank() >= first + instance->ranks) return std::nullopt;
  RankFailure failure = Failure(report, from);
  failure.is_launcher = instance->role == Role::kLauncher;
  // A rank that was asked to go and that went in good order has not done its work.
  if (failure.exit && IsSuccess(*failure.exit) && !failure.stopped_by_us && failure.orphaned == Duration::zero()) {
    return RankSucceeded{failure.instance, failure.attempt, failure.rank};
  }
  return RankFailed{failure};
}

// A number that is no port would reach ranks as one. None at all is as good as a refusal.
Event Reserved(const v1::PortReserved& report, NodeIndex from) {
  PortReserved reserved{.reservation = report.reservation(), .node = from};
  for (int i = 0; i < std::max(1, report.ports_size()); ++i) {
    const uint32_t port = report.ports_size() == 0 ? report.port() : report.ports(i);
    if (port == 0 || port > UINT16_MAX) {
      return PortRefused{report.reservation(), "its agent reserved port " + std::to_string(port), from};
    }
    reserved.ports.push_back(static_cast<uint16_t>(port));
  }
  reserved.port = reserved.ports.front();
  return reserved;
}

EvidenceCollected Evidence(const v1::EvidenceCollected& report, NodeIndex from) {
  EvidenceCollected evidence{.collection = report.collection(), .node = from, .dumping_core = {}};
  for (const uint32_t rank : report.dumping_core()) evidence.dumping_core.push_back(Rank{rank});
  return evidence;
}

// What is too long or too much was refused where it was said; from a sender who did not refuse it, it is left out.
std::optional<Event> RetryableErrors(const v1::RetryableErrors& report) {
  RetryableErrorsAdded added;
  for (const std::string& text : report.texts()) {
    if (added.texts.size() == kRetryableTextsMax) break;
    if (!text.empty() && text.size() <= kRetryableTextMaxBytes) added.texts.push_back(text);
  }
  if (added.texts.empty()) return std::nullopt;
  return added;
}

std::optional<Event> Message(const v1::CustomMessage& report, const JobState& job) {
  const InstanceState* instance = Find(job, report.id());
  if (instance == nullptr || report.content().empty()) return std::nullopt;
  CustomMessageSent message{
      .instance = InstanceIndex{report.id().instance()}, .rank = {}, .content = Bounded(report.content())};
  const uint32_t first = Value(instance->first_rank);
  if (report.has_rank() && report.rank() >= first && report.rank() < first + instance->ranks) {
    message.rank = Rank{report.rank()};
  }
  return message;
}

}  // namespace

std::optional<Event> ReportEvent(const v1::Report& report, NodeIndex from, const JobState& job) {
  const auto about = [&](const v1::AttemptId& id, auto make) -> std::optional<Event> {
    if (Find(job, id) == nullptr) return std::nullopt;
    return make(InstanceIndex{id.instance()}, Attempt{id.attempt()});
  };
  switch (report.body_case()) {
    case v1::Report::kAttemptStarted:
      return about(report.attempt_started().id(), [](auto i, auto a) { return InstanceStarted{i, a}; });
    case v1::Report::kAttemptReady:
      return about(report.attempt_ready().id(), [](auto i, auto a) { return InstanceReady{i, a}; });
    case v1::Report::kAttemptEnded:
      return about(report.attempt_ended().id(), [](auto i, auto a) { return InstanceEnded{i, a}; });
    case v1::Report::kRankExited:
      return ExitEvent(report.rank_exited(), from, job);
    case v1::Report::kPortReserved:
      return Reserved(report.port_reserved(), from);
    case v1::Report::kPortRefused:
      return PortRefused{report.port_refused().reservation(), Bounded(report.port_refused().reason()), from};
    case v1::Report::kEvidenceCollected:
      return Evidence(report.evidence_collected(), from);
    case v1::Report::kRetryableErrors:
      return RetryableErrors(report.retryable_errors());
    case v1::Report::kCheckpoint:
      return CheckpointTold{
          .round = Round{report.checkpoint().round()},
          .step = report.checkpoint().step(),
          .time = Wall{Duration{report.checkpoint().time_ns() + report.checkpoint().clock_offset_ns()}}};
    case v1::Report::kCustomMessage:
      return Message(report.custom_message(), job);
    case v1::Report::kStacksCaptured:  // the engine is told of all nodes' together (stack_collector.h)
    case v1::Report::BODY_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace aimaster
