// The words of the verdicts on hangs: sentences for somebody who was woken by them. Each says what was counted, and
// where.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "c4d/places.h"

namespace aimaster::c4d {

// "rank 5", "ranks 0-3,7"; of more runs than fit a sentence, how many there are: "ranks 0,2,4,… (812)". Ascending.
std::string RanksText(std::span<const uint32_t> ranks);
inline std::string RankText(uint32_t rank) { return "rank " + std::to_string(rank); }

std::string Capital(std::string text);  // for the beginning of a sentence

// "EXPERT_MODEL_PARALLEL_GROUP 73"
std::string GroupText(const Observation& observation, uint32_t communicator);
// "AllGather of 4096 BFloat16"; of an operation that no source has kept, "a collective".
std::string OperationText(const Observation& observation, uint32_t operation);
// "AllGather 42806 in TENSOR_MODEL_PARALLEL_GROUP 41"
std::string WhichText(const Observation& observation, const Rung& rung);

// "Rank 3 has completed all of the 20946 collectives that it has issued there, and has nothing outstanding ..."
std::string OutsideSentence(const Observation& observation, uint32_t communicator, const Places& places, uint32_t rank);
// "The device of rank 3 has begun nothing of what its program has issued: it is stuck in something before."
std::string BeforeSentence(uint32_t rank);
// "The process of rank 3 is stopped, by a signal or a debugger."
std::string HeldSentence(uint32_t rank, Hold hold);
std::string QuietSentence(uint32_t rank, Duration quiet);
std::string WaitingSentence(std::span<const Rank> waiting);

}  // namespace aimaster::c4d
