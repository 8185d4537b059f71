// Ids: every number that names something has a type of its own, so that a rank can't be passed where an instance is
// expected. Plain integers were rejected: job, rank, local rank, node and instance indices meet in nearly every
// signature of this program, and the compiler is the only reader who never mixes them up.
#pragma once

#include <compare>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace aimaster {

enum class Rank : uint32_t {};           // a training process, 0 … world size − 1, stable over rounds
enum class LocalRank : uint32_t {};      // a rank's number among the job's ranks of one node
enum class InstanceIndex : uint32_t {};  // an instance among all instances of the job, in role order
enum class NodeIndex : uint32_t {};      // a node of the job; a replacement gets a new number
enum class Round : uint32_t {};          // a life of the whole job between two restarts, from 0
enum class Attempt : uint32_t {};        // a life of one instance, from 0
enum class Epoch : uint64_t {};          // a life of the job's master, from 1

// The number inside an id, for arithmetic, text and borders.
template <typename Id>
constexpr std::underlying_type_t<Id> Value(Id id) {
  return std::to_underlying(id);
}

template <typename Id>
constexpr Id Next(Id id) {
  return Id{static_cast<std::underlying_type_t<Id>>(Value(id) + 1)};
}

// The name of a job: "dlc" and 13 lowercase letters and digits. Only a valid text becomes a JobId, so a JobId is safe
// as a path component.
class JobId {
 public:
  JobId() = default;  // no job; text() is empty

  static Result<JobId> Parse(std::string_view text);
  // Makes an id out of 64 random bits; the caller brings the randomness.
  static JobId FromRandom(uint64_t random);

  const std::string& text() const { return text_; }
  auto operator<=>(const JobId&) const = default;

 private:
  explicit JobId(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace aimaster
