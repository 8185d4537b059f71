// Capture: the stacks of many processes, taken at one moment. It is tables that point into each other, and every text,
// frame and stack is held once: ten thousand ranks that wait in the same place cost ten thousand small rows.
//
// Captures add up: those of processes make that of a node, those of nodes make that of the job, in any order. So each
// node merges what is its own before it sends anything.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stacks/frame.h"

namespace aimaster::stacks {

using TextIndex = uint32_t;  // into Capture::texts; 0 is the empty text

struct FrameRow {
  TextIndex function = 0;
  TextIndex file = 0;
  uint32_t line = 0;
  Language language = Language::kPython;
  bool operator==(const FrameRow&) const = default;
};

struct ProcessRow {
  TextIndex node = 0;
  TextIndex instance = 0;
  uint32_t rank = kNone;
  uint32_t pid = 0;
  bool is_child = false;  // one that the rank's process has started, a data loader say
  TextIndex command = 0;
  TextIndex tool = 0;     // which told its stacks; 0: none did
  TextIndex trouble = 0;  // why there are no stacks, or not all that there could be
  bool operator==(const ProcessRow&) const = default;
};

struct ThreadRow {
  uint32_t process = 0;
  uint32_t stack = 0;
  uint64_t id = 0;
  TextIndex name = 0;
  bool is_main = false;
  bool is_waiting = false;
  bool holds_gil = false;
  bool operator==(const ThreadRow&) const = default;
};

struct Capture {
  uint32_t number = 0;  // of the job; 0: none
  int64_t time_ns = 0;  // since 1970 UTC; 0: not known
  std::string reason;   // why it was taken

  std::vector<std::string> texts{""};
  std::vector<FrameRow> frames;
  std::vector<std::vector<uint32_t>> stacks;  // of frames, the outermost first
  std::vector<ProcessRow> processes;
  std::vector<ThreadRow> threads;

  // What had to be left out to stay within limits.
  uint64_t threads_cut = 0;
  uint64_t processes_cut = 0;

  const std::string& Text(TextIndex index) const { return texts[index]; }
  bool operator==(const Capture&) const = default;
};

// Whose stacks they are.
struct Origin {
  std::string node;
  std::string instance;
  uint32_t rank = kNone;
  uint32_t pid = 0;
  bool is_child = false;
  std::string command;
  std::string tool;
  std::string trouble;
};

// Puts captures together, within the limits of limits.h: what does not fit any more is left out, and counted. One
// thread.
class CaptureBuilder {
 public:
  CaptureBuilder();
  ~CaptureBuilder();
  CaptureBuilder(CaptureBuilder&&) noexcept;
  CaptureBuilder& operator=(CaptureBuilder&&) noexcept;

  void Add(const Origin& origin, std::span<const Thread> threads);
  void Add(const Capture& capture);  // whose number, time and reason are not taken

  const Capture& capture() const { return capture_; }
  Capture Take();  // it begins anew

 private:
  struct Index;

  TextIndex TextOf(std::string_view text);
  uint32_t FrameOf(const FrameRow& row);
  uint32_t StackOf(std::vector<uint32_t> stack);
  bool HasRoom(size_t texts, size_t frames, size_t stacks, size_t processes, size_t threads) const;

  Capture capture_;
  std::unique_ptr<Index> index_;
};

// Whether it is the thread that the program began with.
bool IsMainThread(const Thread& thread, uint32_t pid);

// The capture within so many bytes of FormatDocument. First go threads that wait and are not their process's main one,
// then all that are not, then processes that ranks have started; last, whole processes.
Capture Bounded(Capture capture, size_t document_max);

}  // namespace aimaster::stacks
