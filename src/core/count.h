// Count: "1 node", "2 nodes".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace aimaster {

inline std::string Count(uint64_t number, std::string_view noun) {
  return std::to_string(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

}  // namespace aimaster
