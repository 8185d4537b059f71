#include "c4d/wait_graph.h"

#include <algorithm>

#include "c4d/analysis_limits.h"

namespace aimaster::c4d {

void WaitGraph::Finish() {
  begins_.assign(nodes_ + 1, 0);
  for (const Arrow& arrow : arrows_) ++begins_[arrow.from + 1];
  for (uint32_t node = 0; node < nodes_; ++node) begins_[node + 1] += begins_[node];
  targets_.resize(arrows_.size());
  std::vector<uint32_t> next(begins_.begin(), begins_.end() - 1);
  for (const Arrow& arrow : arrows_) targets_[next[arrow.from]++] = arrow.to;
}

std::vector<bool> WaitGraph::Reaching(std::span<const uint32_t> goals) const {
  std::vector<uint32_t> begins(nodes_ + 1, 0);
  for (const Arrow& arrow : arrows_) ++begins[arrow.to + 1];
  for (uint32_t node = 0; node < nodes_; ++node) begins[node + 1] += begins[node];
  std::vector<uint32_t> sources(arrows_.size());
  std::vector<uint32_t> next(begins.begin(), begins.end() - 1);
  for (const Arrow& arrow : arrows_) sources[next[arrow.to]++] = arrow.from;

  std::vector<bool> reaches(nodes_);
  std::vector<uint32_t> open;
  const auto reach = [&](uint32_t node) {
    if (reaches[node]) return;
    reaches[node] = true;
    open.push_back(node);
  };
  for (const uint32_t goal : goals) reach(goal);
  while (!open.empty()) {
    const uint32_t node = open.back();
    open.pop_back();
    for (uint32_t i = begins[node]; i < begins[node + 1]; ++i) reach(sources[i]);
  }
  return reaches;
}

// Tarjan's algorithm. With a stack of its own: a pipeline of 100,000 that wait one for the next is as deep.
Components FindComponents(const WaitGraph& graph) {
  const uint32_t nodes = graph.nodes();
  Components found;
  found.of.assign(nodes, kNone);
  found.nodes.reserve(nodes);
  found.begins.push_back(0);

  struct Visit {
    uint32_t node, next;
  };
  std::vector<uint32_t> number(nodes, kNone), lowest(nodes, kNone), pending;
  std::vector<Visit> visits;
  uint32_t count = 0;
  const auto enter = [&](uint32_t node) {
    number[node] = lowest[node] = count++;
    pending.push_back(node);
    visits.push_back({node, 0});
  };
  for (uint32_t start = 0; start < nodes; ++start) {
    if (number[start] == kNone) enter(start);
    while (!visits.empty()) {
      Visit& visit = visits.back();
      const uint32_t node = visit.node;
      const std::span<const uint32_t> targets = graph.From(node);
      if (visit.next < targets.size()) {
        const uint32_t target = targets[visit.next++];
        if (number[target] == kNone) {
          enter(target);
        } else if (found.of[target] == kNone) {
          lowest[node] = std::min(lowest[node], number[target]);
        }
        continue;
      }
      visits.pop_back();
      if (!visits.empty()) lowest[visits.back().node] = std::min(lowest[visits.back().node], lowest[node]);
      if (lowest[node] != number[node]) continue;
      const auto component = static_cast<uint32_t>(found.begins.size() - 1);
      uint32_t member;
      do {
        member = pending.back();
        pending.pop_back();
        found.of[member] = component;
        found.nodes.push_back(member);
      } while (member != node);
      found.begins.push_back(static_cast<uint32_t>(found.nodes.size()));
    }
  }

  found.is_end.assign(found.begins.size() - 1, true);
  for (uint32_t node = 0; node < nodes; ++node) {
    for (const uint32_t target : graph.From(node)) {
      if (found.of[target] != found.of[node]) found.is_end[found.of[node]] = false;
    }
  }
  return found;
}

}  // namespace aimaster::c4d
