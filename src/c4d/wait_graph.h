// WaitGraph: who waits for whom, as nodes and arrows. What a node stands for, a rank or an operation at which several
// stand, is its caller's affair.
//
// All is flat: a job of 100,000 ranks has half a million arrows, and a list for each node would cost more than the
// search.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aimaster::c4d {

class WaitGraph {
 public:
  explicit WaitGraph(uint32_t nodes) : nodes_(nodes) {}

  void Reserve(size_t arrows) { arrows_.reserve(arrows); }
  void Add(uint32_t from, uint32_t to) { arrows_.push_back({from, to}); }
  // Once, after all arrows; only then may the rest be asked.
  void Finish();

  uint32_t nodes() const { return nodes_; }
  std::span<const uint32_t> From(uint32_t node) const {
    return std::span(targets_).subspan(begins_[node], begins_[node + 1] - begins_[node]);
  }

  // For each node, whether it is in `goals` or a way leads from it to one of them.
  std::vector<bool> Reaching(std::span<const uint32_t> goals) const;

 private:
  struct Arrow {
    uint32_t from, to;
  };
  uint32_t nodes_;
  std::vector<Arrow> arrows_;
  std::vector<uint32_t> begins_;
  std::vector<uint32_t> targets_;
};

// The strongly connected components: nodes from each of which a way leads to each other. Every arrow between two goes
// from a higher number to a lower one, so to go through them in their order is to meet whom a node waits for before it.
struct Components {
  std::vector<uint32_t> of;      // of each node
  std::vector<uint32_t> nodes;   // by component
  std::vector<uint32_t> begins;  // of each component in nodes, and the end
  std::vector<bool> is_end;      // no way leads out

  uint32_t size() const { return static_cast<uint32_t>(is_end.size()); }
  std::span<const uint32_t> Nodes(uint32_t component) const {
    return std::span(nodes).subspan(begins[component], begins[component + 1] - begins[component]);
  }
};
Components FindComponents(const WaitGraph& graph);

}  // namespace aimaster::c4d
