// Seeds that failed once: a number and a word about it per line, "#" begins a remark.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace aimaster::sim {

// None where the file can't be read.
inline std::optional<std::vector<uint64_t>> ReadSeedFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::vector<uint64_t> seeds;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') seeds.push_back(std::strtoull(line.c_str(), nullptr, 10));
  }
  return seeds;
}

}  // namespace aimaster::sim
