#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "agent/attempt_files.h"
#include "agent/launch_file.h"
#include "agent/limits.h"
#include "agent/small_file.h"
#include "cli/beside.h"
#include "cli/command.h"
#include "cli/job_lookup.h"
#include "cli/report.h"
#include "cli/text.h"
#include "shim/launch_format.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {
    Option{.name = "--rank", .value = "R", .help = "in the environment of this rank; default: the instance's first"},
};
constexpr size_t kLaunchMaxBytes = 64 << 20;

struct InstanceAddress {
  std::string job;       // an id, the beginning of one, or a name
  std::string instance;  // "worker-1"
};

// "<job>-<role>-<index>", where the job's own name may hold dashes too.
std::optional<InstanceAddress> ParseAddress(const std::string& text) {
  const size_t index = text.rfind('-');
  if (index == std::string::npos || index + 1 == text.size()) return std::nullopt;
  const bool is_number = std::ranges::all_of(text.substr(index + 1), [](char c) { return c >= '0' && c <= '9'; });
  const size_t role = text.rfind('-', index - 1);
  if (!is_number || role == std::string::npos || role == 0) return std::nullopt;
  return InstanceAddress{text.substr(0, role), text.substr(role + 1)};
}

Result<InstanceState> FindInstance(OpenedJob& job, const InstanceAddress& address, NodeState& node) {
  const Result<JobSnapshot> snapshot = job.reader.ReadSnapshot();
  if (!snapshot) return std::unexpected(snapshot.error());
  const std::string id = job.spec.id.text(), name = id + "-" + address.instance;
  const auto found = std::ranges::find(snapshot->instances, name, &InstanceState::name);
  if (found == snapshot->instances.end()) {
    const bool is_master = address.instance == "aimaster-0";
    return Fail(ErrorKind::kNotFound, is_master ? name + " is the job's master and has no environment of a rank"
                                                : "job " + id + " has no instance " + InQuotes(address.instance) +
                                                      "; `aimaster get " + id + "` lists them");
  }
  if (!found->live) {
    return Fail(ErrorKind::kNotFound, name + " does not run now: it is " + std::string(Name(found->status)) +
                                          ", and job " + id + " is " + std::string(Name(snapshot->summary.status)));
  }
  node = snapshot->nodes.at(found->node);
  return *found;
}

// What its ranks were started with, and who is their parent.
Result<BesideCommand> DescribeAttempt(const OpenedJob& job, const InstanceState& instance, const NodeState& node,
                                      std::optional<uint64_t> rank) {
  const std::filesystem::path directory =
      job.directory.path() / "nodes" / node.name / instance.name / std::to_string(Value(instance.attempt));
  const auto started_text = agent::ReadSmallFile(directory / AIMASTER_FILE_STARTED, agent::kSmallFileMaxBytes);
  const auto started = started_text ? agent::ParseStarted(*started_text) : std::nullopt;
  if (!started) return Fail(ErrorKind::kNotFound, instance.name + " has not started yet; try again in a moment");
  const auto launch_text = agent::ReadSmallFile(directory / AIMASTER_FILE_LAUNCH, kLaunchMaxBytes);
  const auto launch = launch_text ? agent::ParseLaunch(*launch_text) : std::nullopt;
  if (!launch) {
    return Fail(ErrorKind::kEnvironment,
                (directory / AIMASTER_FILE_LAUNCH).string() + " can't be read: what it was started with is not known");
  }
  const auto wanted = rank ? std::ranges::find(launch->ranks, *rank, &agent::LaunchRank::rank) : launch->ranks.begin();
  if (wanted == launch->ranks.end()) {
    const uint32_t first = Value(instance.first_rank);
    return Fail(ErrorKind::kNotFound, instance.name + " has no rank " + std::to_string(*rank) + "; its ranks are " +
                                          std::to_string(first) + " to " + std::to_string(first + instance.ranks - 1));
  }
  return BesideCommand{.command = {},
                       .environment = wanted->environment,
                       .working_directory = launch->working_directory,
                       .companion = started->shim};
}

int Run(const Arguments& arguments) {
  const Result<std::optional<uint64_t>> rank = arguments.Number("--rank", 0, UINT32_MAX);
  if (!rank) return Complain(rank.error());
  const std::string& written = arguments.operands.front();
  const std::optional<InstanceAddress> address = ParseAddress(written);
  if (!address) {
    return Complain({ErrorKind::kNotFound, InQuotes(written) +
                                               " names no instance; an instance is named JOB-ROLE-INDEX, "
                                               "nightly-worker-1 say"});
  }
  Result<OpenedJob> job = OpenJob(address->job);
  if (!job) return Complain(job.error());
  NodeState node;
  const Result<InstanceState> instance = FindInstance(*job, *address, node);
  if (!instance) return Complain(instance.error());
  Result<BesideCommand> beside = DescribeAttempt(*job, *instance, node, *rank);
  if (!beside) return Complain(beside.error());
  beside->command.assign(arguments.operands.begin() + 1, arguments.operands.end());
  const BesideEnd end = RunBeside(*beside);
  if (!end.trouble.empty()) Complain({ErrorKind::kEnvironment, instance->name + ": " + end.trouble});
  if (end.with_companion) {
    Complain({ErrorKind::kEnvironment, "attempt " + std::to_string(Value(instance->attempt)) + " of " + instance->name +
                                           " has ended, and the command with it"});
  }
  return end.exit_code;
}

}  // namespace

const Command kExecCommand = {
    .name = "exec",
    .operands = "INSTANCE -- CMD [ARG]…",
    .operands_min = 2,
    .operands_max = SIZE_MAX,
    .summary = "run a command beside an instance",
    .details =
        "The command gets the environment of one of the instance's ranks and its working directory, so that "
        "`nvidia-smi`, "
        "`py-spy` or a shell sees what the rank was given. Standard input, output and the terminal are yours, signals "
        "are "
        "passed on, and the exit code is the command's.\n\nIt is no part of the job: its end changes nothing there. "
        "But it "
        "ends, with everything that it started, when the instance's attempt does, since it could hold a device or a "
        "port "
        "that the next attempt needs.\n\nINSTANCE is written JOB-ROLE-INDEX, where JOB is an id, the beginning of one, "
        "or "
        "a name.",
    .examples =
        "aimaster exec nightly-worker-1 -- nvidia-smi\n"
        "aimaster exec dlc1a2b3c4d5e6f7-worker-0 -- bash\n"
        "aimaster exec --rank 3 nightly-worker-1 -- sh -c 'py-spy dump --pid \"$(pgrep -f train.py)\"'",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
