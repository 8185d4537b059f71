// ArgvOf: words as exec and posix_spawn want them.
#pragma once

#include <string>
#include <vector>

namespace aimaster {

// Pointers into `words`, which have to stay as they are, and a null pointer at the end.
inline std::vector<char*> ArgvOf(std::vector<std::string>& words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

}  // namespace aimaster
