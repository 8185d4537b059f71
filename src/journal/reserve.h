// Reserve: disk space that a job keeps for its own end. Think of the last match in the box: while the disk is full,
// decisions wait, but that a job was stopped or has ended can still be written.
//
// Giving it back at the first full disk was considered and rejected: ordinary inputs would eat it within seconds, and
// nothing would be left when somebody says stop. A master that starts on a full disk breaks it all the same, since
// without a master nobody hears the stop; it takes what it can back at once.
#pragma once

#include <cstdint>
#include <filesystem>

namespace aimaster {

// One thread.
class Reserve {
 public:
  // The file of a job's directory. Takes over one that is there.
  explicit Reserve(std::filesystem::path path);

  // Enough for the stop and the end of a job of so many instances, each in a commit of its own.
  static uint64_t BytesFor(uint64_t instances) { return (uint64_t{2} << 20) + instances * 4096; }

  bool is_held() const { return is_held_; }
  // Takes the space where there is much more than that; a disk that is nearly full is left to those who need it now.
  // False: not held.
  bool TakeIfThereIsRoom(uint64_t bytes);
  // The largest half, quarter, … of `bytes` that there is room for.
  void TakeWhatThereIs(uint64_t bytes);
  // Its blocks and its inode are free when this returns.
  void GiveBack();

 private:
  bool Take(uint64_t bytes);

  std::filesystem::path path_;
  bool is_held_ = false;
};

}  // namespace aimaster
