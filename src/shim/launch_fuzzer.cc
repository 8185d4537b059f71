// Any bytes are either refused or give ranks whose every string can be read.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "shim/launch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<char> bytes(data, data + size);
  Launch launch;
  size_t total = 0;
  if (ParseLaunch(bytes.data(), bytes.size(), &launch) == nullptr) {
    for (uint32_t i = 0; i < launch.rank_count; ++i) {
      for (char** string = launch.ranks[i].argv; *string; ++string) total += std::strlen(*string);
      for (char** string = launch.ranks[i].envp; *string; ++string) total += std::strlen(*string);
    }
    if (total > size) __builtin_trap();
  }
  FreeLaunch(&launch);
  return 0;
}
