// The dumps of real incidents, for the other tests.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "c4d/dump_test_support.h"

namespace aimaster::c4d {

std::map<std::string, std::string> ReadIncident(const std::string& name) {
  const char* source = std::getenv("AIMASTER_SOURCE");
  EXPECT_NE(source, nullptr) << "run by ctest, or set AIMASTER_SOURCE to the repository's root";
  std::map<std::string, std::string> files;
  if (source == nullptr) return files;
  const std::filesystem::path folder = std::filesystem::path(source) / "tests/data/c4d" / name;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".pickle") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().stem().string()] = std::string((std::istreambuf_iterator<char>(file)), {});
  }
  EXPECT_EQ(files.size(), 16) << folder;
  return files;
}

}  // namespace aimaster::c4d
