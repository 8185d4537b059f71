// CrashMark: at which input the last masters died. Think of the finger on a line of a book: it costs nothing to keep it
// there, and whoever finds the reader asleep knows how far he got.
//
// Only our own bug stops a master inside a step, and the same input would stop the next one too. Agents repeat reports
// that were not acknowledged, so a supervisor alone would start masters for ever. After the second crash at the same
// input a master should come up without stepping anything, say so, and leave training alone.
//
//   bytes  0 … 7    "AIMMARK1"
//          8 … 11   how often in a row a master died at this input, before this one; little endian, as all
//         12 … 15   1: a step is under way
//         16 … 23   FNV-1a of the input without its time
//         24 … 31   when it was first stepped, wall clock, nanoseconds
//         32 … 63   its kind, filled up with zeros
//
// The bytes are for the next process, not for the next boot: they are never synced, since a machine that loses power is
// no bug of ours. One pwrite of a few bytes costs about a microsecond. Signal handlers that would tell crashes from
// kills were rejected: the kernel's OOM killer, too, may be what an input leads to, and two kills from outside that hit
// the same input within its microseconds are too rare to matter.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/input.h"

namespace aimaster {

// One thread. Without a file it remembers nothing, which is no error: it only ever helps.
class CrashMark {
 public:
  // `crash_mark` in the job's directory.
  explicit CrashMark(const std::filesystem::path& path);
  ~CrashMark();
  CrashMark(CrashMark&& other) noexcept;
  CrashMark& operator=(CrashMark&&) = delete;

  // Where the last master died, if it died over an input.
  struct Crash {
    std::string kind;    // "RankFailed"
    uint64_t input = 0;  // which one, of this kind
    uint32_t times = 0;  // how many masters in a row
    Wall first;
  };
  const std::optional<Crash>& crash() const { return crash_; }
  // After so many a master should not step anything.
  static constexpr uint32_t kCrashesMax = 2;
  // One sentence: what happened, and what to do.
  static std::string Explain(const Crash& crash);

  // Around every Engine::Step.
  void Enter(const Input& input);
  void Leave();

 private:
  void Write(uint32_t times, uint32_t under_way, uint64_t hash, Wall first, std::string_view kind);
  int fd_ = -1;
  std::optional<Crash> crash_;
};

}  // namespace aimaster
