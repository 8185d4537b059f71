// eu-stack and gdb.
#include "stacks/dump_parsers.h"
#include "stacks/dump_parts.h"
#include "stacks/text_scan.h"

namespace aimaster::stacks {
namespace {

void CloseAll(std::vector<ProcessDump>& dumps) {
  for (ProcessDump& dump : dumps) Close(dump.threads);
  std::erase_if(dumps, [](const ProcessDump& dump) { return dump.threads.empty(); });
}

bool SkipFrameNumber(std::string_view& line) {
  std::string_view rest = line;
  if (!Skip(rest, "#") || !TakeNumber(rest)) return false;
  line = Trim(rest);
  return true;
}

// `#0  0x00007fe76a66b545 clock_nanosleep - /usr/lib/libc.so.6`; of an inlined one the address is missing.
Frame EuStackFrame(std::string_view line) {
  if (line.starts_with("0x")) {
    TakeNumber(line);
    line = Trim(line);
  }
  std::string_view module;
  if (line.starts_with("- ")) {
    module = line.substr(2);
    line = {};
  } else if (const size_t at = line.rfind(" - "); at != std::string_view::npos) {
    module = line.substr(at + 3);
    line = line.substr(0, at);
  }
  return NativeFrame(line, module, 0);
}

// `#1  0x00007f12 in wait_for (lock=0x1) at lock.c:12`
Frame GdbFrame(std::string_view line) {
  if (line.starts_with("0x")) {
    TakeNumber(line);
    line = Trim(line);
    Skip(line, "in ");
  }
  std::string_view file;
  uint32_t number = 0;
  if (const size_t at = line.rfind(") at "); at != std::string_view::npos) {
    file = line.substr(at + 5);
    number = TakeLineOff(file);
  } else if (const size_t from = line.rfind(") from "); from != std::string_view::npos) {
    file = line.substr(from + 7);
  }
  return NativeFrame(line.substr(0, line.find(" (")), file, number);
}

// `Thread 2 (Thread 0x7f12 (LWP 124) "name"):`; older ones have no name, newer ones one behind the bracket.
std::optional<Thread> GdbThread(std::string_view line) {
  if (!Skip(line, "Thread ") || !TakeNumber(line) || !Skip(line, " (")) return std::nullopt;
  Thread thread;
  std::string_view rest = line;
  if (Until(rest, "LWP ") || (rest = line, Until(rest, "process "))) thread.id = TakeNumber(rest).value_or(0);
  if (Until(rest, "\"")) {
    if (const auto name = Until(rest, "\"")) thread.name = CleanName(*name);
  }
  return thread;
}

}  // namespace

std::vector<ProcessDump> ParseEuStack(std::string_view text) {
  std::vector<ProcessDump> dumps;
  bool in_thread = false;
  for (std::string_view line; NextLine(text, line);) {
    if (std::string_view rest = line; Skip(rest, "PID ")) {
      const std::optional<uint64_t> pid = TakeNumber(rest);
      if (!pid) continue;
      if (dumps.size() == kProcessesPerDumpMax) break;
      dumps.push_back({.pid = static_cast<uint32_t>(*pid), .command = {}, .threads = {}});
      in_thread = false;
    } else if (rest = line; Skip(rest, "TID ")) {
      const std::optional<uint64_t> id = TakeNumber(rest);
      in_thread = id && !dumps.empty() && HasRoom(dumps.back());
      if (in_thread) dumps.back().threads.push_back({.id = *id});
    } else if (in_thread && SkipFrameNumber(line)) {
      dumps.back().threads.back().frames.push_back(EuStackFrame(line));
    } else if (in_thread && line.starts_with("    ") && !dumps.back().threads.back().frames.empty()) {
      std::string_view file = Trim(line);
      Frame& frame = dumps.back().threads.back().frames.back();
      if (const uint32_t number = TakeLineOff(file)) {
        frame.file = CleanName(file);
        frame.line = number;
      }
    }
  }
  CloseAll(dumps);
  return dumps;
}

std::vector<ProcessDump> ParseGdb(std::string_view text) {
  ProcessDump dump;
  bool in_thread = false;
  for (std::string_view line; NextLine(text, line);) {
    if (std::optional<Thread> thread = GdbThread(line)) {
      in_thread = HasRoom(dump);
      if (in_thread) dump.threads.push_back(std::move(*thread));
    } else if (SkipFrameNumber(line)) {
      if (dump.threads.empty()) {  // `backtrace` of one thread
        dump.threads.emplace_back();
        in_thread = true;
      }
      if (in_thread) dump.threads.back().frames.push_back(GdbFrame(line));
    }
  }
  std::vector<ProcessDump> dumps{std::move(dump)};
  CloseAll(dumps);
  return dumps;
}

}  // namespace aimaster::stacks
