// Tree: all stacks as one tree of frames, each with the ranks that are there. Where it branches, ranks part: the small
// branch is the one to look at.
#pragma once

#include <cstdint>
#include <vector>

#include "stacks/groups.h"

namespace aimaster::stacks {

struct TreeNode {
  uint32_t frame = 0;  // of the capture; of the root: none
  RankSet ranks;
  size_t threads = 0;
  std::vector<uint32_t> children;  // into Tree::nodes; the rarest first
};

struct Tree {
  std::vector<TreeNode> nodes;  // the first is the root, which is no frame
};

// Of the groups that are not folded; of all with `all`.
Tree MakeTree(const Capture& capture, const Grouping& grouping, bool all);

}  // namespace aimaster::stacks
