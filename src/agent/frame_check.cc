#include "agent/frame_check.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "agent/limits.h"
#include "core/file_name.h"
#include "core/status.h"
#include "shim/launch_format.h"

namespace aimaster::agent {
namespace {

std::unexpected<Error> Bad(std::string what) { return Fail(ErrorKind::kUsage, std::move(what)); }

bool HasNul(const std::string& text) { return text.find('\0') != std::string::npos; }
bool IsString(const std::string& text) { return text.size() <= kStringMaxBytes && !HasNul(text); }
bool IsPath(const std::string& path) {
  return path.starts_with('/') && path.size() <= kLaunchMaxPathBytes && !HasNul(path);
}

template <typename Map>
Status CheckEnvironment(const Map& environment) {
  if (environment.size() > kVariablesMax) return Bad("too many variables");
  for (const auto& [name, value] : environment) {
    if (name.empty() || name.find('=') != std::string::npos || !IsString(name)) return Bad("a variable's name is bad");
    if (!IsString(value) || name.size() + value.size() > kStringMaxBytes)
      return Bad("the value of " + name + " is bad");
  }
  return {};
}

template <typename Texts>
Status CheckTexts(const Texts& texts) {
  if (texts.size() > static_cast<int>(kRetryableTextsMax)) return Bad("too many retryable errors");
  const bool good = std::ranges::all_of(
      texts, [](const std::string& text) { return !text.empty() && text.size() <= kRetryableTextMaxBytes; });
  return good ? Status() : Bad("a retryable error is empty or too long");
}

Status Check(const v1::JobConfig& job) {
  if (!IsSafeName(job.job_id())) return Bad("the job's id is bad");
  if (job.command().empty() || job.command(0).empty()) return Bad("there is no command");
  if (job.command().size() > static_cast<int>(kArgumentsMax)) return Bad("the command has too many arguments");
  if (!std::ranges::all_of(job.command(), IsString)) return Bad("an argument of the command is bad");
  if (!IsPath(job.working_directory())) return Bad("the working directory is no absolute path");
  if (!job.log_directory().empty() && !IsPath(job.log_directory())) return Bad("the log directory is no absolute path");
  if (job.stop_grace_ms() > kLaunchMaxStopGraceMs) return Bad("the stop grace is out of range");
  if (const Status texts = CheckTexts(job.retryable_errors()); !texts) return texts;
  return CheckEnvironment(job.environment());
}

// The sums and differences of what passes here can be computed.
bool IsTime(int64_t ns) { return ns >= 0 && ns <= int64_t{1} << 61; }

Status Check(const v1::HeartbeatReply& reply) {
  if (IsTime(reply.agent_wall_ns()) && IsTime(reply.master_wall_ns())) return {};
  return Bad("a time is out of range");
}

Status Check(const v1::AttemptId& id) {
  if (id.instance() > kIndexMax || id.attempt() > kIndexMax)
    return Bad("an instance or attempt number is out of range");
  return {};
}

// An address or a name; what would break out of a line of a host file is neither.
bool IsHost(const std::string& text) {
  constexpr size_t kHostMaxBytes = 255;
  return !text.empty() && text.size() <= kHostMaxBytes && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
  });
}

Status Check(const v1::MpiPart& part) {
  constexpr uint32_t kPortMax = 65'535;
  if (part.launcher().hosts_size() > kMpiHostsMax) return Bad("too many hosts for mpirun");
  for (const v1::MpiHost& host : part.launcher().hosts()) {
    if (!IsHost(host.address())) return Bad("a host for mpirun is bad");
  }
  if (!part.station().address().empty() && !IsHost(part.station().address())) return Bad("the address is bad");
  if (part.launcher().port() > kPortMax || part.station().port() > kPortMax) return Bad("the port is out of range");
  return {};
}

Status Check(const v1::StartInstance& start) {
  if (const Status id = Check(start.id()); !id) return id;
  if (const Status mpi = Check(start.mpi()); !mpi) return mpi;
  if (!IsSafeName(start.instance_name())) return Bad("the instance's name is bad");
  if (start.round() > kIndexMax) return Bad("the round is out of range");
  if (start.own_port() > UINT16_MAX) return Bad("the instance's port is out of range");
  if (start.ranks().empty() || start.ranks().size() > static_cast<int>(kRanksPerInstanceMax)) {
    return Bad("the number of ranks is out of range");
  }
  std::set<uint32_t> locals;
  for (const v1::RankLaunch& rank : start.ranks()) {
    if (rank.rank() > kIndexMax || rank.local() >= kRanksPerInstanceMax) return Bad("a rank's number is out of range");
    if (!locals.insert(rank.local()).second) return Bad("two ranks have the same local number");
    if (const Status environment = CheckEnvironment(rank.environment()); !environment) return environment;
  }
  return {};
}

Status Check(const v1::ReservePort& order) {
  if (order.count() > kPortsMax) return Bad("the number of ports is out of range");
  return {};
}

Status Check(const v1::CaptureStacks& order) {
  if (!ParseStackTool(order.tool())) return Bad("the tool for stacks is not known");
  return {};
}

Status Check(const v1::StopInstance& stop) {
  if (!stop.instance_name().empty() && !IsSafeName(stop.instance_name())) return Bad("the instance's name is bad");
  return Check(stop.id());
}

Status Check(const v1::Command& command) {
  switch (command.body_case()) {
    case v1::Command::kStartInstance:
      return Check(command.start_instance());
    case v1::Command::kStopInstance:
      return Check(command.stop_instance());
    case v1::Command::kRetryableErrors:
      return CheckTexts(command.retryable_errors().texts());
    case v1::Command::kReservePort:
      return Check(command.reserve_port());
    case v1::Command::kCaptureStacks:
      return Check(command.capture_stacks());
    case v1::Command::kSignalInstances:
    case v1::Command::kCollectEvidence:
    case v1::Command::kShutdown:
    case v1::Command::kLookNow:
    case v1::Command::kReadRecords:
    case v1::Command::BODY_NOT_SET:  // of a newer master
      return {};
  }
  return {};
}

}  // namespace

bool IsSafeName(std::string_view name) { return IsFileName(name); }

Result<v1::ToAgent> ParseFrame(std::string_view bytes) {
  v1::ToAgent message;
  if (bytes.size() > kMessageToAgentMax) return Bad("a message of " + std::to_string(bytes.size()) + " bytes");
  if (bytes.empty() || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Bad("a message that is no message");
  Status checked;
  switch (message.body_case()) {
    case v1::ToAgent::kWelcome:
      checked = Check(message.welcome().job());
      break;
    case v1::ToAgent::kCommand:
      checked = Check(message.command());
      break;
    case v1::ToAgent::kHeartbeatReply:
      checked = Check(message.heartbeat_reply());
      break;
    case v1::ToAgent::kRefused:
    case v1::ToAgent::kAcknowledge:
    case v1::ToAgent::BODY_NOT_SET:  // of a newer master
      break;
  }
  if (!checked) return std::unexpected(checked.error());
  return message;
}

}  // namespace aimaster::agent
