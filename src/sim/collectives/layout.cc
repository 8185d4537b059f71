#include "sim/collectives/layout.h"

#include <algorithm>
#include <utility>

namespace aimaster::sim::collectives {

std::string_view Name(Part part) {
  switch (part) {
    case Part::kWorld:
      return "default_pg";
    case Part::kTensor:
      return "TENSOR_MODEL_PARALLEL_GROUP";
    case Part::kPipeline:
      return "PIPELINE_MODEL_PARALLEL_GROUP";
    case Part::kData:
      return "DATA_PARALLEL_GROUP";
    case Part::kInstance:
      return "INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP";
    case Part::kAcross:
      return "INTER_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP";
    case Part::kExpert:
      return "EXPERT_MODEL_PARALLEL_GROUP";
  }
  return "group";
}

Layout::Layout(const Dimensions& dimensions) : dimensions_(dimensions) {
  const auto& [tensor, data, pipeline, instances, experts] = dimensions_;
  groups_of_.resize(ranks());
  for (auto& groups : groups_of_) groups.fill(kNone);

  std::vector<uint32_t> all(ranks());
  for (uint32_t rank = 0; rank < ranks(); ++rank) all[rank] = rank;
  Add(Part::kWorld, std::move(all));
  for (uint32_t p = 0; p < pipeline; ++p) {
    for (uint32_t d = 0; d < data; ++d) {
      std::vector<uint32_t> line;
      for (uint32_t t = 0; t < tensor; ++t) line.push_back(RankAt({t, d, p}));
      Add(Part::kTensor, std::move(line));
    }
  }
  for (uint32_t d = 0; d < data; ++d) {
    for (uint32_t t = 0; t < tensor; ++t) {
      std::vector<uint32_t> line;
      for (uint32_t p = 0; p < pipeline; ++p) line.push_back(RankAt({t, d, p}));
      Add(Part::kPipeline, std::move(line));
    }
  }
  const uint32_t piece = data / instances;
  for (uint32_t p = 0; p < pipeline; ++p) {
    for (uint32_t t = 0; t < tensor; ++t) {
      std::vector<uint32_t> line;
      for (uint32_t d = 0; d < data; ++d) line.push_back(RankAt({t, d, p}));
      for (uint32_t first = 0; experts > 1 && first < data; first += experts) {
        Add(Part::kExpert, {line.begin() + first, line.begin() + first + experts});
      }
      if (instances > 1) {
        for (uint32_t i = 0; i < instances; ++i) {
          Add(Part::kInstance, {line.begin() + i * piece, line.begin() + (i + 1) * piece});
        }
        for (uint32_t d = 0; d < piece; ++d) {
          std::vector<uint32_t> across;
          for (uint32_t i = 0; i < instances; ++i) across.push_back(line[i * piece + d]);
          Add(Part::kAcross, std::move(across));
        }
      }
      Add(Part::kData, std::move(line));
    }
  }
}

void Layout::Add(Part part, std::vector<uint32_t> members) {
  if (members.size() < 2) return;
  for (const uint32_t rank : members)
    groups_of_[rank][static_cast<size_t>(part)] = static_cast<uint32_t>(groups_.size());
  groups_.push_back({part, std::move(members)});
}

uint32_t Layout::PositionOf(uint32_t rank, uint32_t group) const {
  const Place place = PlaceOf(rank);
  const uint32_t piece = dimensions_.data / dimensions_.instances;
  switch (groups_[group].part) {
    case Part::kWorld:
      return rank;
    case Part::kTensor:
      return place.tensor;
    case Part::kPipeline:
      return place.pipeline;
    case Part::kData:
      return place.data;
    case Part::kInstance:
      return place.data % piece;
    case Part::kAcross:
      return place.data / piece;
    case Part::kExpert:
      return place.data % dimensions_.experts;
  }
  return 0;
}

Place Layout::PlaceOf(uint32_t rank) const {
  const uint32_t plane = dimensions_.tensor * dimensions_.data;
  return {rank % dimensions_.tensor, rank % plane / dimensions_.tensor, rank / plane};
}

uint32_t Layout::RankAt(const Place& place) const {
  return place.tensor + dimensions_.tensor * (place.data + dimensions_.data * place.pipeline);
}

std::string Layout::NameOf(uint32_t group) const {
  return std::string(Name(groups_[group].part)) + ":" + std::to_string(groups_[group].members.front());
}

}  // namespace aimaster::sim::collectives
