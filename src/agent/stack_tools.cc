#include "agent/stack_tools.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "agent/small_file.h"
#include "stacks/text_scan.h"

namespace aimaster::agent {
namespace {

std::string Find(std::string_view program, std::span<const std::string> folders) {
  for (const std::string& folder : folders) {
    if (!folder.starts_with('/')) continue;
    std::string path = folder + "/" + std::string(program);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

constexpr std::string_view kInstallPython =
    "install one where the job runs (pip install py-spy, or pip install pystack)";
constexpr std::string_view kInstallNative = "install elfutils (apt install elfutils, dnf install elfutils)";

}  // namespace

StackTools::StackTools(std::span<const std::string> folders)
    : py_spy_(Find("py-spy", folders)),
      pystack_(Find("pystack", folders)),
      eu_stack_(Find("eu-stack", folders)),
      gdb_(Find("gdb", folders)) {}

std::vector<ToolCall> StackTools::CallsFor(const StackProcess& process, StackTool wanted) const {
  std::vector<ToolCall> calls;
  const std::string pid = std::to_string(process.process.pid);
  const bool may_be_any = wanted == StackTool::kAuto;
  const auto add = [&calls](const std::string& path, std::string name, std::vector<std::string> arguments, auto parse) {
    if (path.empty()) return;
    arguments.insert(arguments.begin(), path);
    calls.push_back({std::move(name), std::move(arguments), parse});
  };
  const auto py_spy = [&] {
    // To have native frames it holds the process, and one that a signal has stopped already it would set going.
    std::vector<std::string> arguments = {"dump", "--json", "--pid", pid};
    arguments.push_back(process.was_stopped ? "--nonblocking" : "--native");
    add(py_spy_, "py-spy", std::move(arguments), &stacks::ParsePySpyJson);
  };
  const auto pystack = [&] {
    add(pystack_, "pystack", {"remote", "--native", "--no-color", pid}, &stacks::ParsePystack);
  };
  if (wanted == StackTool::kNone) return calls;
  if (process.is_python && wanted != StackTool::kEuStack) {
    if (wanted == StackTool::kPystack || (may_be_any && process.was_stopped)) pystack();
    if (wanted == StackTool::kPySpy || may_be_any) py_spy();
    if (may_be_any && !process.was_stopped) pystack();
    if (!may_be_any) return calls;
  }
  add(eu_stack_, "eu-stack", {"-m", "-s", "-p", pid}, &stacks::ParseEuStack);
  add(gdb_, "gdb", {"-nx", "-batch", "-p", pid, "-ex", "thread apply all backtrace"}, &stacks::ParseGdb);
  return calls;
}

std::string StackTools::WhyNativeOnly(const StackProcess& process, StackTool wanted, std::string_view tool) const {
  const bool has_tool = !py_spy_.empty() || !pystack_.empty();
  if (!process.is_python || wanted != StackTool::kAuto || has_tool || (tool != "eu-stack" && tool != "gdb")) return {};
  return "no frames of Python, since neither py-spy nor pystack was found in PATH or beside the job's Python: " +
         std::string(kInstallPython);
}

std::string StackTools::WhyNone(const StackProcess& process, StackTool wanted) const {
  if (wanted == StackTool::kNone) return "--stack-tool is none";
  if (process.is_python && (wanted == StackTool::kPySpy || wanted == StackTool::kPystack)) {
    return std::string(Name(wanted)) + " was not found in PATH or beside the job's Python: pip install " +
           std::string(Name(wanted));
  }
  if (process.is_python && wanted == StackTool::kAuto) {
    return "no tool for stacks of Python was found in PATH or beside the job's Python: " + std::string(kInstallPython);
  }
  return "neither eu-stack nor gdb was found in PATH: " + std::string(kInstallNative);
}

bool IsRefused(std::string_view error_output) {
  static constexpr std::array<std::string_view, 5> kWords = {"permission denied", "permissiondenied",
                                                             "operation not permitted", "eperm", "os error 1)"};
  std::string text(error_output);
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::ranges::any_of(kWords, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

std::string HowToAllow() {
  std::string text = "the kernel does not let tools look into the process: ";
  const auto scope = ReadSmallFile("/proc/sys/kernel/yama/ptrace_scope", 64);
  if (scope && (scope->starts_with('1') || scope->starts_with('2') || scope->starts_with('3'))) {
    return text + "kernel.yama.ptrace_scope is " + scope->substr(0, 1) +
           "; allow it with `sysctl kernel.yama.ptrace_scope=0`, or give this agent CAP_SYS_PTRACE";
  }
  return text +
         "allow ptrace by the capability SYS_PTRACE (docker run --cap-add=SYS_PTRACE; on Kubernetes "
         "securityContext.capabilities.add: [SYS_PTRACE]), and a seccomp profile that does not refuse it";
}

std::string LastWords(std::string_view error_output) {
  std::string_view last;
  for (std::string_view line; stacks::NextLine(error_output, line);) {
    if (!stacks::Trim(line).empty()) last = stacks::Trim(line);
  }
  return stacks::CleanName(last);
}

}  // namespace aimaster::agent
