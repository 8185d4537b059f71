// StepWords: how far a training says it is, in a line of its output: "step 9000 loss 1.1", "iteration 120/ 5000",
// "{'loss': 2.1, 'global_step': 300}", " 47%|██▋ | 47/100 [00:12<00:13, 4.1it/s]". Each program prints it in its own
// way; what it calls the number is enough, and the same way stands before it in all its lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace aimaster {

struct StepWord {
  uint64_t number = 0;
  std::string way;  // what stands before it, without numbers: what counts is told the same way
};
std::optional<StepWord> StepIn(std::string_view line);
// False: nothing can be in it for StepIn, whatever is taken off its beginning. Fast.
bool MayTellStep(std::string_view line);

}  // namespace aimaster
