// JobFields: which fields of the job's types are stored, and under which names. A name that was ever written stays:
// fields may be added, never renamed or given another meaning. tests/data/journal/ holds one of everything, as it was
// written.
#pragma once

#include <string_view>

#include "journal/codec.h"
#include "journal/json_fields.h"
#include "journal/stored_state.h"

namespace aimaster {

// Names of states that only the journal writes.
inline std::string_view Name(ExecutionMode mode) {
  switch (mode) {
    case ExecutionMode::kSync:
      return "Sync";
    case ExecutionMode::kAsync:
      return "Async";
  }
  return "unknown";
}
inline std::string_view Name(FaultTolerantPolicy policy) {
  switch (policy) {
    case FaultTolerantPolicy::kOnFailure:
      return "OnFailure";
    case FaultTolerantPolicy::kExitCodeAndErrorMsg:
      return "ExitCodeAndErrorMsg";
    case FaultTolerantPolicy::kNever:
      return "Never";
  }
  return "unknown";
}
inline std::string_view Name(C4dLogLevel level) {
  switch (level) {
    case C4dLogLevel::kInfo:
      return "Info";
    case C4dLogLevel::kWarning:
      return "Warning";
    case C4dLogLevel::kError:
      return "Error";
  }
  return "unknown";
}
inline std::string_view Name(HangRequires requires_what) {
  switch (requires_what) {
    case HangRequires::kLog:
      return "log";
    case HangRequires::kLogAndProgress:
      return "log+progress";
  }
  return "unknown";
}
inline std::string_view Name(HangKind kind) {
  switch (kind) {
    case HangKind::kSilence:
      return "silence";
    case HangKind::kExit:
      return "exit";
    case HangKind::kCommunication:
      return "communication";
  }
  return "unknown";
}
inline std::string_view Name(Severity severity) {
  switch (severity) {
    case Severity::kIsolateNode:
      return "isolate-node";
    case Severity::kRestartProcesses:
      return "restart-processes";
    case Severity::kRetryInPlace:
      return "retry-in-place";
  }
  return "unknown";
}
inline std::string_view Name(RestartScope scope) {
  switch (scope) {
    case RestartScope::kJob:
      return "job";
    case RestartScope::kInstance:
      return "instance";
  }
  return "unknown";
}

inline std::string_view Name(Phase phase) {
  switch (phase) {
    case Phase::kNew:
      return "new";
    case Phase::kAcquiring:
      return "acquiring";
    case Phase::kReserving:
      return "reserving";
    case Phase::kRunning:
      return "running";
    case Phase::kCollecting:
      return "collecting";
    case Phase::kJudging:
      return "judging";
    case Phase::kStopping:
      return "stopping";
    case Phase::kEnded:
      return "ended";
  }
  return "unknown";
}
inline std::string_view Name(StopPurpose purpose) {
  switch (purpose) {
    case StopPurpose::kRestart:
      return "restart";
    case StopPurpose::kRetryStart:
      return "retry-start";
    case StopPurpose::kFail:
      return "fail";
    case StopPurpose::kUserStop:
      return "user-stop";
    case StopPurpose::kSucceed:
      return "succeed";
  }
  return "unknown";
}

// Fields() are found by argument-dependent lookup, so they live beside the types.
#define AIMASTER_FIELDS(Type) \
  template <typename Visitor> \
  void Fields(Visitor& v, [[maybe_unused]] Type& x)

AIMASTER_FIELDS(Moment) { v("monotonic_ns", x.monotonic), v("wall_ns", x.wall); }

AIMASTER_FIELDS(RoleSpec) { v("role", x.role), v("count", x.count), v("ranks_per_instance", x.ranks_per_instance); }

AIMASTER_FIELDS(Timing) {
  v("stop_grace_ms", x.stop_grace), v("start_timeout_ms", x.start_timeout);
  v("node_lost_timeout_ms", x.node_lost_timeout), v("orphan_timeout_ms", x.orphan_timeout);
  v("collect_window_ms", x.collect_window), v("stack_timeout_ms", x.stack_timeout);
}

AIMASTER_FIELDS(FaultToleranceParameters) {
  v("execution_mode", x.execution_mode), v("enable_job_restart", x.enable_job_restart);
  v("max_num_of_job_restart", x.max_num_of_job_restart), v("enable_job_hang_detection", x.enable_job_hang_detection);
  v("job_hang_interval_s", x.job_hang_interval), v("enable_c4d_hang_detection", x.enable_c4d_hang_detection);
  v("enable_job_exit_hang_detection", x.enable_job_exit_hang_detection);
  v("job_exit_hang_interval_s", x.job_exit_hang_interval), v("fault_tolerant_policy", x.fault_tolerant_policy);
  v("max_num_of_same_error", x.max_num_of_same_error);
  v("max_tolerated_failure_rate", x.max_tolerated_failure_rate), v("c4d_log_level", x.c4d_log_level);
  v("c4d_common_envs", x.c4d_common_envs), v("job_restart_timeout_s", x.job_restart_timeout);
  v("no_progress_limit", x.no_progress_limit), v("hang_requires", x.hang_requires);
}

AIMASTER_FIELDS(JobSpec) {
  v("job_id", x.id), v("name", x.name), v("framework", x.framework), v("roles", x.roles), v("command", x.command);
  v("success_policy", x.success_policy);
  v("environment", x.environment), v("working_directory", x.working_directory), v("log_directory", x.log_directory);
  v("fault_tolerance", x.fault_tolerance), v("notes", x.notes), v("timing", x.timing);
  v("log_max_bytes", x.log_max_bytes), v("stack_tool", x.stack_tool), v("local_nodes", x.local_nodes),
      v("mpi_slots", x.mpi_slots);
  v("devices", x.devices);
  v("listen_address", x.listen_address), v("tls_certificate", x.tls_certificate), v("tls_key", x.tls_key);
  v("create_time_ns", x.create_time);
}

AIMASTER_FIELDS(RankExit) {
  v("code", x.code), v("signal", x.signal), v("core_dumped", x.core_dumped), v("out_of_memory", x.out_of_memory);
  v("time_ns", x.time);
}

AIMASTER_FIELDS(LineMatch) { v("rule", x.rule), v("line", x.line), v("file", x.file), v("offset", x.offset); }

AIMASTER_FIELDS(Torchrun) { v("rank", x.rank), v("pid", x.pid); }
AIMASTER_FIELDS(MpiRank) { v("rank", x.rank), v("pid", x.pid), v("launcher_status", x.launcher_status); }

AIMASTER_FIELDS(RankFailure) {
  v("rank", x.rank), v("instance", x.instance), v("attempt", x.attempt), v("node", x.node), v("exit", x.exit);
  v("lost_reason", x.lost_reason), v("node_lost", x.node_lost), v("exec_error", x.exec_error);
  v("exec_errno", x.exec_errno), v("stopped_by_us", x.stopped_by_us), v("orphaned_ns", x.orphaned);
  v("dump_start_ns", x.dump_start), v("clock_uncertainty_ns", x.clock_uncertainty), v("matches", x.matches);
  v("last_error_line", x.last_error_line), v("error_file_message", x.error_file_message);
  v("error_file_time_ns", x.error_file_time), v("retryable_text", x.retryable_text), v("step", x.step);
  v("torchrun", x.torchrun);
  v("mpi_rank", x.mpi_rank), v("is_launcher", x.is_launcher);
}

AIMASTER_FIELDS(FailureDetail) {
  v("rank", x.rank), v("instance", x.instance), v("node", x.node), v("is_root", x.is_root);
  v("error_code", x.error_code), v("fault", x.fault), v("message", x.message), v("source", x.source);
  v("mpi_rank", x.mpi_rank);
}

AIMASTER_FIELDS(Judgement) {
  v("root_rank", x.root_rank), v("root_instance", x.root_instance), v("root_node", x.root_node);
  v("error_code", x.error_code), v("fault", x.fault), v("category", x.category), v("message", x.message);
  v("source", x.source), v("retryable", x.retryable), v("severity", x.severity), v("node_suspect", x.node_suspect);
  v("address_in_use", x.address_in_use), v("never_started", x.never_started);
  v("is_consequence", x.is_consequence), v("reasons", x.reasons), v("details", x.details);
  v("failed_ranks", x.failed_ranks), v("advised_interval_s", x.advised_interval), v("stacks", x.stacks);
}

AIMASTER_FIELDS(JobSubmitted) { v("spec", x.spec); }
AIMASTER_FIELDS(MasterStarted) { v("epoch", x.epoch), v("engine_change", x.engine_change); }
AIMASTER_FIELDS(NodeJoined) { v("node", x.node), v("name", x.name), v("address", x.address); }
AIMASTER_FIELDS(NodeDenied) { v("reason", x.reason); }
AIMASTER_FIELDS(NodeLost) { v("node", x.node), v("reason", x.reason); }
AIMASTER_FIELDS(PortReserved) {
  v("reservation", x.reservation), v("port", x.port), v("node", x.node), v("ports", x.ports);
}
AIMASTER_FIELDS(PortRefused) { v("reservation", x.reservation), v("reason", x.reason), v("node", x.node); }
AIMASTER_FIELDS(InstanceStarted) { v("instance", x.instance), v("attempt", x.attempt); }
AIMASTER_FIELDS(InstanceReady) { v("instance", x.instance), v("attempt", x.attempt); }
AIMASTER_FIELDS(RankSucceeded) { v("instance", x.instance), v("attempt", x.attempt), v("rank", x.rank); }
AIMASTER_FIELDS(RankFailed) { v("failure", x.failure); }
AIMASTER_FIELDS(InstanceEnded) { v("instance", x.instance), v("attempt", x.attempt); }
AIMASTER_FIELDS(EvidenceCollected) {
  v("collection", x.collection), v("node", x.node), v("dumping_core", x.dumping_core);
}
AIMASTER_FIELDS(FailureJudged) {
  v("judgement_number", x.judgement_number), v("judgement", x.judgement), v("apart", x.apart), v("others", x.others);
}
AIMASTER_FIELDS(StopRequested) { v("at_once", x.at_once), v("by", x.by); }
AIMASTER_FIELDS(RetryableErrorsAdded) { v("texts", x.texts); }
AIMASTER_FIELDS(HangFound) {
  v("hang", x.kind), v("round", x.round), v("lasts_ns", x.lasts), v("interval_ns", x.interval);
  v("set_by", x.set_by), v("is_advancing", x.is_advancing), v("quietest", x.quietest);
  v("quietest_for_ns", x.quietest_for);
}
AIMASTER_FIELDS(CommunicationVerdict) {
  v("kind", x.kind), v("level", x.level), v("ranks", x.ranks), v("instances", x.instances);
  v("nodes", x.nodes), v("is_culprit", x.is_culprit), v("suspects_node", x.suspects_node), v("text", x.text),
      v("lasts_ns", x.lasts), v("evidence", x.evidence);
}
AIMASTER_FIELDS(CommunicationJudged) { v("round", x.round), v("verdicts", x.verdicts); }
AIMASTER_FIELDS(StacksRequested) { v("by", x.by); }
AIMASTER_FIELDS(StacksCaptured) {
  v("capture", x.capture), v("ranks_asked", x.ranks_asked), v("ranks_answered", x.ranks_answered);
  v("path", x.path), v("summary", x.summary), v("culprits", x.culprits), v("where", x.where);
}
AIMASTER_FIELDS(CustomMessageSent) { v("instance", x.instance), v("rank", x.rank), v("content", x.content); }
AIMASTER_FIELDS(CheckpointTold) { v("round", x.round), v("step", x.step), v("time_ns", x.time); }
AIMASTER_FIELDS(Tick) {
  static_cast<void>(v);  // a moment is all there is to it
}

AIMASTER_FIELDS(OwnLife) {
  v("renewal", x.renewal), v("started_alone", x.started_alone), v("restarts", x.restarts), v("start_ns", x.start);
  v("deadline_ns", x.deadline), v("stop_began_ns", x.stop_began), v("stop_at_once", x.stop_at_once);
  v("open_record", x.open_record), v("first_local_rank", x.first_local_rank);
  v("quick_failures", x.quick_failures), v("not_before_ns", x.not_before);
}

AIMASTER_FIELDS(InstanceState) {
  v("name", x.name), v("role", x.role), v("index_in_role", x.index_in_role), v("first_rank", x.first_rank);
  v("ranks", x.ranks), v("node", x.node), v("status", x.status), v("attempt", x.attempt), v("starts", x.starts);
  v("live", x.live), v("started", x.started), v("ready", x.ready), v("ranks_succeeded", x.ranks_succeeded);
  v("ranks_failed", x.ranks_failed), v("exit_code", x.exit_code), v("signal", x.signal);
  v("own", x.own), v("address", x.address), v("port", x.port);
}

AIMASTER_FIELDS(NodeState) {
  v("name", x.name), v("address", x.address), v("joined", x.joined), v("lost", x.lost), v("isolated", x.isolated);
  v("isolation_reason", x.isolation_reason);
}

AIMASTER_FIELDS(StageTime) { v("stage", x.stage), v("start", x.start), v("duration_ns", x.duration); }

AIMASTER_FIELDS(Checkpoint) { v("step", x.step), v("at_ns", x.at); }

AIMASTER_FIELDS(RoundState) {
  v("round", x.round), v("start", x.start), v("end_ns", x.end), v("result", x.result), v("reason", x.reason);
  v("stages", x.stages), v("checkpoint", x.checkpoint);
}

AIMASTER_FIELDS(RestartRecord) {
  v("restarts", x.restarts), v("scope", x.scope), v("restart_time", x.restart_time), v("began", x.began);
  v("round", x.round), v("reason", x.reason), v("result", x.result), v("duration_ns", x.duration);
  v("judgement", x.judgement), v("isolated_node", x.isolated_node), v("node_name", x.node_name);
  v("instance_name", x.instance_name);
}

AIMASTER_FIELDS(Decision) {
  v("at", x.at), v("round", x.round), v("kind", x.kind), v("summary", x.summary), v("reasons", x.reasons);
}

AIMASTER_FIELDS(JobEvent) { v("at", x.at), v("type", x.type), v("subject", x.subject), v("message", x.message); }

AIMASTER_FIELDS(JobSummary) {
  v("status", x.status), v("epoch", x.epoch), v("round", x.round), v("restarts", x.restarts);
  v("reason_code", x.reason_code), v("reason_message", x.reason_message), v("exit_code", x.exit_code);
  v("submit_time_ns", x.submit_time), v("running_time_ns", x.running_time), v("end_time_ns", x.end_time);
  v("master_port", x.master_port);
}

AIMASTER_FIELDS(Deadlines) {
  v("collect", x.collect), v("collect_cap", x.collect_cap), v("start", x.start), v("stop", x.stop), v("wait", x.wait);
}

AIMASTER_FIELDS(StackCapture) {
  v("number", x.number), v("is_under_way", x.is_under_way), v("reason", x.reason), v("deadline_ns", x.deadline);
  v("path", x.path);
}

AIMASTER_FIELDS(SameStep) { v("step", x.step), v("times", x.times); }

AIMASTER_FIELDS(StateRest) {
  auto& p = x.progress;
  v("epoch", p.epoch), v("status", p.status), v("phase", p.phase), v("stop_purpose", p.stop_purpose);
  v("stop_at_once", p.stop_at_once), v("round", p.round), v("restarts", p.restarts);
  v("start_retries", p.start_retries), v("reason_code", p.reason_code), v("reason_message", p.reason_message);
  v("exit_code", p.exit_code), v("submit_time", p.submit_time), v("running_time_ns", p.running_time);
  v("end_time_ns", p.end_time), v("master_address", p.master_address), v("master_port", p.master_port);
  v("reservation", p.reservation), v("port_refusals", p.port_refusals), v("collection", p.collection);
  v("judgement_number", p.judgement_number), v("collecting_from", p.collecting_from);
  v("dumping_core", p.dumping_core), v("failures_dropped", p.failures_dropped), v("same_error", p.same_error);
  v("quick_failures", p.quick_failures), v("failed_workers", p.failed_workers);
  v("free_restarts", p.free_restarts), v("same_step", p.same_step), v("outside_failures", p.outside_failures);
  v("retryable_texts", p.retryable_texts), v("ranks_started_ns", p.ranks_started), v("not_before_ns", p.not_before);
  v("first_success_ns", p.first_success), v("hang", p.hang);
  v("communication", p.communication);
  v("late_stop_by", p.late_stop_by);
  v("told_advancing_ns", p.told_advancing);
  v("pending_stages", p.pending_stages), v("failure_began", p.failure_began), v("stop_began_ns", p.stop_began);
  v("stop_escalations", p.stop_escalations), v("deadlines_ns", p.deadlines), v("stacks", p.stacks),
      v("ranks_ended", x.ranks_ended);
  v("placement", x.placement), v("instances", x.instances), v("nodes", x.nodes), v("rounds", x.rounds);
  v("records", x.records), v("failures", x.failures);
}

AIMASTER_FIELDS(StoredState) {
  v("rest", x.rest), v("instances", x.instances), v("nodes", x.nodes), v("rounds", x.rounds);
  v("records", x.records), v("failures", x.failures);
}

#undef AIMASTER_FIELDS

}  // namespace aimaster
