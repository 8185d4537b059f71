#include "stacks/tree.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace aimaster::stacks {

Tree MakeTree(const Capture& capture, const Grouping& grouping, bool all) {
  Tree tree;
  tree.nodes.emplace_back();
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> child_of;  // (node, frame) → node
  std::vector<std::vector<uint32_t>> ranks(1);                 // of each node, as they come
  const auto pass = [&](uint32_t node, const Group& group) {
    tree.nodes[node].threads += group.threads.size();
    for (const auto& [first, last] : group.ranks.runs()) {
      for (uint32_t rank = first; rank <= last; ++rank) ranks[node].push_back(rank);
    }
  };
  for (const Group& group : grouping.groups) {
    if (group.folded && !all) continue;
    uint32_t node = 0;
    pass(node, group);
    for (const uint32_t frame : capture.stacks[group.stack]) {
      const auto next = static_cast<uint32_t>(tree.nodes.size());
      const auto [entry, is_new] = child_of.try_emplace({node, frame}, next);
      if (is_new) {
        tree.nodes.push_back({.frame = frame, .ranks = {}, .threads = 0, .children = {}});
        tree.nodes[node].children.push_back(next);
        ranks.emplace_back();
      }
      node = entry->second;
      pass(node, group);
    }
  }
  for (size_t i = 0; i < tree.nodes.size(); ++i) tree.nodes[i].ranks = RankSet(std::move(ranks[i]));
  for (TreeNode& node : tree.nodes) {
    std::ranges::sort(node.children, {}, [&](uint32_t child) {
      return std::tuple(tree.nodes[child].ranks.size(), tree.nodes[child].threads, child);
    });
  }
  return tree;
}

}  // namespace aimaster::stacks
