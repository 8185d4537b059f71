// SlowRun: trainings that do not hang but lose time, and what SlowWatch says of them.
//
// Seeds take turns: healthy, one rank that computes 1.3 times as long, one rank whose transfers take five times as long
// in all of its groups, from some moment on. What operations took is told to the watch as each rank saw it, in windows.
//
// Required in at least one of the windows after the first ones: RankNonCommSlow of the slow rank; RankCommSlow with the
// rank of the slow link among its ranks. Nobody else may be named as slow outside, and no group without the slow link
// as slow in communication. A slow rank need not be found where nothing tells it from others: where it is in no group
// but that of all and its pipeline, where sequences are so unequal that another one is late each time, or where a
// window has too few operations to count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace aimaster::sim::collectives {

enum class Slowness : uint8_t { kHealthy, kRank, kLink };

struct SlowResult {
  uint64_t seed = 0;
  Slowness slowness{};
  uint32_t rank = 0;
  bool has_to_be_named = false;
  bool is_named = false;
  std::vector<std::string> false_accusations;
  std::string story;  // all that was said
};

SlowResult RunSlowSeed(uint64_t seed);

}  // namespace aimaster::sim::collectives
