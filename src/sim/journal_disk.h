// JournalDisk: the journal of a job, on a disk that can be full, slow, or in the middle of a commit when its writer
// dies. It does what journal/journal.cc does with SQLite: one writer's epoch counts, a commit is whole or absent. Every
// input goes through the real codec into bytes and back; readers get what came back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/journal.h"
#include "sim/break.h"

namespace aimaster::sim {

class JournalDisk {
 public:
  struct Entry {
    uint64_t epoch = 0;
    std::string input;                   // as encoded
    std::vector<std::string> decisions;  // what was decided on it
    Input decoded;
  };

  explicit JournalDisk(Break broken) : broken_(broken) {}

  // Takes the job over.
  Result<Epoch> Open();
  bool IsOwnedBy(Epoch epoch) const { return Value(epoch) == epoch_; }
  // In one piece, or not at all. Returns the entries that were added.
  Result<std::vector<const Entry*>> Append(Epoch epoch, const JournalBatch& batch);

  const std::vector<std::unique_ptr<Entry>>& entries() const { return entries_; }
  bool is_full = false;
  uint64_t Digest() const;

 private:
  const Break broken_;
  uint64_t epoch_ = 0;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace aimaster::sim
