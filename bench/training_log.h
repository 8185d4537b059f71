// TrainingLog makes up what a rank of a training prints: the same bytes for the same seed, of any length.
//
// It is what scanners are measured on. Random bytes, or one line over and over, would flatter every one of them: a
// scanner is fast or slow by how near ordinary lines come to what it looks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace aimaster {

class TrainingLog {
 public:
  explicit TrainingLog(uint64_t seed) : random_(seed) {}

  // Whole lines, at least `bytes` of them.
  std::string Next(size_t bytes);

 private:
  void Start(std::string& out);
  void Step(std::string& out);
  void ProgressBar(std::string& out);
  void Occasional(std::string& out);
  void Trouble(std::string& out);

  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }
  double Around(double middle);

  std::mt19937_64 random_;
  uint64_t step_ = 0;
  bool has_started_ = false;
};

}  // namespace aimaster
