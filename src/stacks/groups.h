// Groups: which threads are in the same place. In a job that hangs, most ranks are where all others are, and the one
// that is alone is the likeliest culprit: so the rarest come first.
//
// Counting threads alone was tried on real dumps and rejected: the rank that hosts the rendezvous store has a few
// threads that nobody else has, and would always come first. So threads in the background that wait come after all
// others; and of places that are equally rare, those come last that only wait for somebody else (waiting.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/rank_set.h"
#include "stacks/capture.h"
#include "stacks/waiting.h"

namespace aimaster::stacks {

struct Group {
  uint32_t stack = 0;             // of the capture
  std::vector<uint32_t> threads;  // of the capture, by rank, then process, then thread
  RankSet ranks;
  Waits waits = Waits::kNot;
  bool has_main = false;       // a process's main thread is among them
  bool holds_gil = false;      // one of them holds its interpreter's lock
  bool in_background = false;  // none of them is about the training itself, by the looks of it
  bool folded = false;         // idle, in the background, and every rank has it: of no help
};

struct Grouping {
  std::vector<Group> groups;             // in the order in which people should look at them
  std::vector<uint32_t> without_stacks;  // processes of which nothing was got
  RankSet asked;                         // all ranks of the capture
  RankSet answered;                      // those of which at least one stack was got
};

Grouping GroupStacks(const Capture& capture);

// The frames of a stack as values, the outermost first.
std::vector<Frame> FramesOf(const Capture& capture, uint32_t stack);

// The capture in one line: who is where nobody else is. "rank 2 is alone at load (train.py:7); 3 of 4 ranks wait for
// other ranks".
std::string OneLine(const Capture& capture, const Grouping& grouping);

// Who holds the others up, where the stacks say it.
struct Outlier {
  RankSet ranks;                    // half of the job's at most, unless it has one only
  std::vector<uint32_t> processes;  // of the capture, that are there
  std::string where;                // the innermost frame that says something: "load (data.py:12)"
};

// The rarest place in which ranks do something else than wait for others; where all wait, the place of a minority that
// waits somewhere else. None where nobody stands out: most ranks are not to blame for what the rest waits for, as what
// they do may be a way of waiting that waiting.h does not know.
std::optional<Outlier> FindOutlier(const Capture& capture, const Grouping& grouping);

}  // namespace aimaster::stacks
