// The order to take call stacks, and the answer.
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "agent/agent.h"
#include "agent/log.h"
#include "stacks/document.h"

namespace aimaster::agent {
namespace {

void AddFolders(std::vector<std::string>& folders, const std::string& path) {
  std::istringstream parts(path);
  for (std::string folder; std::getline(parts, folder, ':');) {
    if (folder.starts_with('/')) folders.push_back(folder);
  }
}

// Where the job's own Python would find its tools, then where we would.
std::vector<std::string> ToolFolders(const v1::JobConfig& job) {
  std::vector<std::string> folders;
  const auto variable = [&job](const std::string& name) {
    const auto found = job.environment().find(name);
    return found == job.environment().end() ? std::string() : found->second;
  };
  if (!job.command().empty()) AddFolders(folders, std::filesystem::path(job.command(0)).parent_path().string());
  for (const char* root : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string folder = variable(root); !folder.empty()) AddFolders(folders, folder + "/bin");
  }
  AddFolders(folders, variable("PATH"));
  if (const char* own = std::getenv("PATH")) AddFolders(folders, own);
  AddFolders(folders, "/usr/local/bin:/usr/bin:/bin");
  std::set<std::string> seen;
  std::erase_if(folders, [&seen](const std::string& folder) { return !seen.insert(folder).second; });
  return folders;
}

// Each rank is named, though nothing is known of it.
std::string Nothing(const StackOrder& order, const std::string& why) {
  stacks::CaptureBuilder builder;
  for (const StackTarget& target : order.targets) {
    builder.Add({.node = order.node,
                 .instance = target.instance,
                 .rank = target.rank,
                 .pid = static_cast<uint32_t>(target.process.pid),
                 .is_child = false,
                 .command = {},
                 .tool = {},
                 .trouble = why},
                {});
  }
  return stacks::FormatDocument(stacks::Bounded(builder.Take(), stacks::kNodeDocumentMaxBytes));
}

}  // namespace

// The same order may come twice, around a reconnect. While its answer is still to come, that will do; later stacks are
// taken twice: whether the master still has the first answer, only it knows.
void Agent::CaptureStacks(const v1::CaptureStacks& order) {
  if (stack_helper_.IsTaking(order.capture())) return;
  StackOrder taken{.capture = order.capture(),
                   .tool = ParseStackTool(order.tool()).value_or(StackTool::kAuto),
                   .timeout = std::chrono::milliseconds(order.timeout_ms()),
                   .node = options_.node_name,
                   .tool_path = ToolFolders(job_),
                   .targets = attempts_.StackTargets()};
  LogInfo("taking the stacks of " + std::to_string(taken.targets.size()) + " ranks, capture " +
          std::to_string(taken.capture));
  const std::string program = std::filesystem::path(options_.shim_path).parent_path() / "aimaster-agent";
  stack_helper_.Start(program, taken, [this, taken](Result<std::string> document) {
    if (!document) LogWarning(document.error().message);
    ReportStacks(taken.capture, document ? std::move(*document) : Nothing(taken, document.error().message));
  });
}

void Agent::ReportStacks(uint32_t capture, std::string document) {
  v1::Report report;
  report.mutable_stacks_captured()->set_capture(capture);
  report.mutable_stacks_captured()->set_document(std::move(document));
  Report(std::move(report));
}

}  // namespace aimaster::agent
