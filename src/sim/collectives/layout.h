// Layout: which ranks train together, and the groups in which they talk.
//
// A training of three dimensions is a box of ranks: along one edge they share each layer (tensor), along another the
// batch (data), along the third the layers (pipeline). Each line through the box is a group. Besides, as large jobs
// have them: pieces of the data lines (the instances of the optimizer, and those at the same place of each piece;
// experts), and one group of all.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace aimaster::sim::collectives {

// What a group is for. A rank is in one of each at most.
enum class Part : uint8_t { kWorld, kTensor, kPipeline, kData, kInstance, kAcross, kExpert };
inline constexpr size_t kParts = 7;
inline constexpr uint32_t kNone = UINT32_MAX;
std::string_view Name(Part part);  // "TENSOR_MODEL_PARALLEL_GROUP"

struct Dimensions {
  uint32_t tensor = 1, data = 1, pipeline = 1;
  uint32_t instances = 1;  // of the optimizer; divides data
  uint32_t experts = 1;    // ranks of one expert group; divides data
  uint32_t ranks() const { return tensor * data * pipeline; }
};

struct Group {
  Part part{};
  std::vector<uint32_t> members;  // ranks, ascending
};

struct Place {
  uint32_t tensor = 0, data = 0, pipeline = 0;
};

class Layout {
 public:
  explicit Layout(const Dimensions& dimensions);

  const Dimensions& dimensions() const { return dimensions_; }
  uint32_t ranks() const { return dimensions_.ranks(); }
  const std::vector<Group>& groups() const { return groups_; }
  // kNone where it would be alone.
  uint32_t GroupOf(uint32_t rank, Part part) const { return groups_of_[rank][static_cast<size_t>(part)]; }
  uint32_t PositionOf(uint32_t rank, uint32_t group) const;
  bool IsMember(uint32_t rank, uint32_t group) const { return GroupOf(rank, groups_[group].part) == group; }
  Place PlaceOf(uint32_t rank) const;
  uint32_t RankAt(const Place& place) const;
  std::string NameOf(uint32_t group) const;

 private:
  void Add(Part part, std::vector<uint32_t> members);

  Dimensions dimensions_;
  std::vector<Group> groups_;
  std::vector<std::array<uint32_t, kParts>> groups_of_;
};

}  // namespace aimaster::sim::collectives
