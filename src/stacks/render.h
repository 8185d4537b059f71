// Captures as text, for a person at a terminal and for other people's tools. Pure: a capture in, text out.
#pragma once

#include <string>

#include "stacks/tree.h"

namespace aimaster::stacks {

struct TextOptions {
  bool colours = false;
  int width = 0;           // columns; 0: no limit
  bool all = false;        // folded groups too, and every frame
  size_t groups_max = 12;  // without `all`
  size_t frames_max = 14;  // of each, the innermost ones
  size_t threads_max = 4;  // of each
};

// Who is where, the likeliest culprit first: its rank, file and line are in the first line.
std::string FormatText(const Capture& capture, const TextOptions& options);
// The tree of tree.h, one frame a line, indented only where ranks part.
std::string FormatTree(const Capture& capture, const TextOptions& options);
// Frames from the outermost to the innermost, joined by semicolons, and a number of threads: what flame graphs are made
// of.
std::string FormatFolded(const Capture& capture, bool all);
// The tree for Graphviz.
std::string FormatDot(const Capture& capture, bool all);

}  // namespace aimaster::stacks
