// py-spy's text, pystack and faulthandler.
#include <algorithm>

#include "stacks/dump_parsers.h"
#include "stacks/dump_parts.h"
#include "stacks/text_scan.h"

namespace aimaster::stacks {
namespace {

// Which thread of a faulthandler dump is the main one is not said; it is the oldest, and the oldest comes last. Of more
// than these it prints only the newest.
constexpr size_t kFaulthandlerThreads = 100;

// "load (train.py:7)", "poll (libc.so.6)".
std::optional<Frame> PySpyFrame(std::string_view line) {
  const size_t open = line.rfind(" (");
  if (open == std::string_view::npos || !line.ends_with(')')) return std::nullopt;
  std::string_view file = line.substr(open + 2, line.size() - open - 3);
  const std::string_view function = line.substr(0, open);
  const uint32_t number = TakeLineOff(file);
  if (number == 0) return NativeFrame(function, file, 0);
  return Frame{.function = CleanName(function), .file = CleanName(file), .line = number};
}

// `Thread 1841 (active+gil): "MainThread"`; the name may be missing.
std::optional<Thread> PySpyThread(std::string_view line) {
  if (!Skip(line, "Thread ")) return std::nullopt;
  const std::optional<uint64_t> id = TakeNumber(line);
  if (!id || !Skip(line, " (")) return std::nullopt;
  const std::optional<std::string_view> state = Until(line, ")");
  if (!state) return std::nullopt;
  Thread thread{.id = *id, .name = {}, .is_waiting = state->starts_with("idle")};
  thread.holds_gil = state->find("gil") != std::string_view::npos;
  if (Skip(line, ": \"") && line.ends_with('"')) thread.name = CleanName(line.substr(0, line.size() - 1));
  return thread;
}

// `Traceback for thread 1843 (python3) [Has the GIL] (most recent call last):`
std::optional<Thread> PystackThread(std::string_view line) {
  if (!Skip(line, "Traceback for thread ")) return std::nullopt;
  const std::optional<uint64_t> id = TakeNumber(line);
  if (!id) return std::nullopt;
  Thread thread{.id = *id};
  const size_t flags = line.find('[');
  if (Skip(line, " (")) {
    if (const auto name = Until(line, ")")) thread.name = CleanName(*name);
  }
  if (flags != std::string_view::npos) {
    thread.holds_gil = line.find("Has the GIL") != std::string_view::npos;
    thread.is_waiting = line.find("Waiting for the GIL") != std::string_view::npos;
  }
  return thread;
}

// `File "train.py", line 7, in load`, and behind the function of a C frame its module.
std::optional<Frame> PystackFrame(std::string_view line) {
  const bool is_native = Skip(line, "(C) ");
  if (!is_native && !Skip(line, "(Python) ") && !line.starts_with("File ")) return std::nullopt;
  if (!Skip(line, "File \"")) return std::nullopt;
  const std::optional<std::string_view> file = Until(line, "\", line ");
  if (!file) return std::nullopt;
  const std::optional<uint64_t> number = TakeNumber(line);
  if (!number || !Skip(line, ", in ")) return std::nullopt;
  const auto in_file = static_cast<uint32_t>(std::min<uint64_t>(*number, UINT32_MAX - 1));
  if (!is_native) return Frame{.function = CleanName(line), .file = CleanName(*file), .line = in_file};
  std::string_view module;
  if (const size_t open = line.rfind(" ("); open != std::string_view::npos && line.ends_with(')')) {
    module = line.substr(open + 2, line.size() - open - 3);
    line = line.substr(0, open);
  }
  if (line.ends_with(" (inlined)")) line.remove_suffix(std::string_view(" (inlined)").size());
  const bool has_source = in_file != 0 && *file != "???";
  return NativeFrame(line, has_source ? *file : module, has_source ? in_file : 0);
}

// `Thread 0x00007f0e (most recent call first):`, with a name in brackets from Python 3.14 on.
std::optional<Thread> FaulthandlerThread(std::string_view line) {
  if (!line.ends_with("(most recent call first):")) return std::nullopt;
  Thread thread;
  if (Skip(line, "Stack ")) return thread;
  if (!Skip(line, "Current thread ") && !Skip(line, "Thread ")) return std::nullopt;
  const std::optional<uint64_t> id = TakeNumber(line);
  if (!id) return std::nullopt;
  thread.id = *id;
  if (Skip(line, " [")) {
    if (const auto name = Until(line, "]")) thread.name = CleanName(*name);
  }
  return thread;
}

// `  File "train.py", line 7 in load`
std::optional<Frame> FaulthandlerFrame(std::string_view line) {
  if (!Skip(line, "  File ")) return std::nullopt;
  Skip(line, "\"");
  const size_t at = line.find(", line ");
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view file = line.substr(0, at);
  if (file.ends_with('"')) file.remove_suffix(1);
  line.remove_prefix(at + std::string_view(", line ").size());
  const std::optional<uint64_t> number = TakeNumber(line);
  if (!Skip(line, " in ")) return std::nullopt;
  return Frame{.function = CleanName(line),
               .file = CleanName(file),
               .line = static_cast<uint32_t>(std::min<uint64_t>(number.value_or(0), UINT32_MAX - 1))};
}

}  // namespace

std::vector<ProcessDump> ParsePySpyText(std::string_view text) {
  std::vector<ProcessDump> dumps;
  bool is_python = false;  // eu-stack's words are near, but never say this
  bool in_thread = false;
  for (std::string_view line; NextLine(text, line);) {
    if (std::string_view rest = line; Skip(rest, "Process ")) {
      const std::optional<uint64_t> pid = TakeNumber(rest);
      if (!pid || !Skip(rest, ": ")) continue;
      if (dumps.size() == kProcessesPerDumpMax) break;
      dumps.push_back({.pid = static_cast<uint32_t>(*pid), .command = CleanName(rest), .threads = {}});
      in_thread = false;
    } else if (line.starts_with("Python v")) {
      is_python = true;
    } else if (std::optional<Thread> thread = PySpyThread(line)) {
      if (dumps.empty()) dumps.emplace_back();
      in_thread = HasRoom(dumps.back());
      if (in_thread) dumps.back().threads.push_back(std::move(*thread));
    } else if (in_thread && line.starts_with("    ") && !line.starts_with("     ")) {
      if (auto frame = PySpyFrame(line.substr(4))) dumps.back().threads.back().frames.push_back(std::move(*frame));
    }
  }
  if (!is_python) return {};
  for (ProcessDump& dump : dumps) Close(dump.threads);
  std::erase_if(dumps, [](const ProcessDump& dump) { return dump.threads.empty(); });
  return dumps;
}

std::vector<ProcessDump> ParsePystack(std::string_view text) {
  ProcessDump dump;
  bool in_thread = false;
  for (std::string_view line; NextLine(text, line);) {
    if (std::optional<Thread> thread = PystackThread(line)) {
      in_thread = HasRoom(dump);
      if (in_thread) dump.threads.push_back(std::move(*thread));
    } else if (in_thread && line.starts_with("    ")) {
      if (auto frame = PystackFrame(line.substr(4))) dump.threads.back().frames.push_back(std::move(*frame));
    }
  }
  for (Thread& thread : dump.threads) BoundFrames(thread.frames);
  return dump.threads.empty() ? std::vector<ProcessDump>{} : std::vector{std::move(dump)};
}

std::vector<ProcessDump> ParseFaulthandler(std::string_view text) {
  ProcessDump dump;
  bool in_thread = false;
  for (std::string_view line; NextLine(text, line);) {
    if (std::optional<Thread> thread = FaulthandlerThread(line)) {
      in_thread = HasRoom(dump);
      if (in_thread) dump.threads.push_back(std::move(*thread));
    } else if (auto frame = in_thread ? FaulthandlerFrame(line) : std::nullopt) {
      dump.threads.back().frames.push_back(std::move(*frame));
    } else if (line != "  ..." && line != "  <no Python frame>") {
      in_thread = false;
    }
  }
  if (dump.threads.empty()) return {};
  const bool are_all = dump.threads.size() < kFaulthandlerThreads;
  if (are_all && dump.threads.back().name.empty()) dump.threads.back().name = "MainThread";
  Close(dump.threads);
  return {std::move(dump)};
}

}  // namespace aimaster::stacks
