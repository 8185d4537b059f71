// DurableMark: how far the journal was durable, kept outside of it. Think of the receipt book beside the cash box: a
// box from which something was taken looks as tidy as before, but the last receipt has a greater number.
//
// A journal whose write-ahead log was removed or cut short, or that was restored from an older copy, is a good journal
// of an earlier moment; nothing in it can say that there was more. A master that went on from there would take a former
// epoch for its own, and what it finds running for strays.
//
//   bytes  0 …  7    "AIMDURAB"
//          8 … 15    the greatest epoch that has taken the job over; little endian, as all
//         16 … 23    the number of the last input that was acknowledged as durable
//         24 … 31    FNV-1a of bytes 0 … 23
//
// It is written after the commit, in place and without a sync: whatever of it reaches the disk was durable in the
// journal before, so after a loss of power it may be behind, and never ahead. A half-written one is none. Writing the
// numbers into master.json was rejected: that file is replaced as a whole, which on a full disk can't be done.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/ids.h"

namespace aimaster {

struct Durable {
  Epoch epoch{};
  int64_t input = 0;
  bool operator==(const Durable&) const = default;
};

// One thread. Without a file it knows nothing, which is no error: it only ever helps.
class DurableMark {
 public:
  // `durable_mark` in the job's directory.
  explicit DurableMark(const std::filesystem::path& path);
  ~DurableMark();
  DurableMark(const DurableMark&) = delete;
  DurableMark& operator=(const DurableMark&) = delete;

  // What stands there now, whoever wrote it.
  Durable Read() const;
  void Write(const Durable& durable);

 private:
  int fd_ = -1;
};

}  // namespace aimaster
