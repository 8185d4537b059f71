// Which operations of a communicator are told, where all would be too many. All members have to choose the same ones,
// without asking each other; so an operation's number says it. One in four contains one in eight: members whose rates
// seem a little different choose alike.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace aimaster::c4d {

inline constexpr uint32_t kOneInMax = 1 << 16;

// A power of two. Numbers are stirred: of a step with eight operations not always the same one would be taken.
inline bool IsInSample(uint64_t sequence, uint32_t one_in) {
  uint64_t stirred = sequence * 0x9e3779b97f4a7c15;
  stirred ^= stirred >> 32;
  stirred *= 0xd6e8feb86659fd93;
  return (stirred >> 32 & (one_in - 1)) == 0;
}

// So that of so many there remain at most `wanted`, give or take.
inline uint32_t OneIn(uint64_t operations, uint64_t wanted) {
  const uint64_t times = (operations + wanted - 1) / std::max<uint64_t>(wanted, 1);
  return std::bit_ceil(static_cast<uint32_t>(std::clamp<uint64_t>(times, 1, kOneInMax)));
}

}  // namespace aimaster::c4d
