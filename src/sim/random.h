// Random: the one source of chance in a simulated world. Everything that is not decided by the product is drawn here,
// so a seed is a story. std::uniform_int_distribution was rejected: libraries differ in it, and a seed that failed on
// one machine has to fail on all.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/time.h"

namespace aimaster::sim {

class Random {
 public:
  // Neighbouring seeds must not give neighbouring states: their stories would be each other's, a draw later.
  explicit Random(uint64_t seed) : state_(seed) { state_ = Next() ^ 0x632be59bd9b4e019; }

  uint64_t Next() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t end) { return Next() % end; }
  uint32_t Between(uint32_t first, uint32_t last) { return first + static_cast<uint32_t>(Below(last - first + 1)); }
  bool Chance(double probability) { return static_cast<double>(Next() >> 11) * 0x1p-53 < probability; }
  Duration Time(Duration least, Duration most) {
    return least + Duration(static_cast<int64_t>(Below(static_cast<uint64_t>((most - least).count()) + 1)));
  }
  // Mostly short, sometimes long: what delays are like.
  Duration Delay(Duration most) {
    for (int i = 0; i < 3 && !Chance(0.15); ++i) most /= 8;
    return Time(Duration::zero(), most);
  }
  template <typename T>
  T Pick(std::initializer_list<T> values) {
    return values.begin()[Below(values.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace aimaster::sim
