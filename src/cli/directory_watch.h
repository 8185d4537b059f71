// DirectoryWatch: wakes a follower when files of a directory change. Only a hint: where the kernel has no watch left,
// or the file system tells nothing (NFS), the follower looks again after a short while anyway.
#pragma once

#include <filesystem>

namespace aimaster::cli {

class DirectoryWatch {
 public:
  explicit DirectoryWatch(const std::filesystem::path& directory);
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

  int descriptor() const { return descriptor_; }  // readable after a change; −1: no watch
  void Clear();                                   // forgets the changes up to now
  void Await(int milliseconds) const;             // until a change, or no longer than that

 private:
  int descriptor_ = -1;
};

}  // namespace aimaster::cli
