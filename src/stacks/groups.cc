#include "stacks/groups.h"

#include <algorithm>
#include <tuple>

#include "core/count.h"

namespace aimaster::stacks {
namespace {

// Of what is equally rare, what comes first.
int Weight(const Group& group) {
  switch (group.waits) {
    case Waits::kKernel:
      return 0;
    case Waits::kNot:
      return group.holds_gil ? 1 : group.has_main ? 2 : 3;
    case Waits::kChild:
      return 4;
    case Waits::kLoader:
      return 5;
    case Waits::kPeers:
      return 6;
    case Waits::kWork:
      return 7;
  }
  return 8;
}

bool IsInBackground(const Capture& capture, const Group& group, bool is_at_rest) {
  if (group.waits == Waits::kKernel) return false;
  if (group.waits == Waits::kWork || group.waits == Waits::kChild) return true;
  if (group.has_main || group.holds_gil) return false;
  return is_at_rest || std::ranges::all_of(group.threads, [&](uint32_t t) { return capture.threads[t].is_waiting; });
}

}  // namespace

std::vector<Frame> FramesOf(const Capture& capture, uint32_t stack) {
  std::vector<Frame> frames;
  frames.reserve(capture.stacks[stack].size());
  for (const uint32_t index : capture.stacks[stack]) {
    const FrameRow& row = capture.frames[index];
    frames.push_back({.function = capture.Text(row.function),
                      .file = capture.Text(row.file),
                      .line = row.line,
                      .language = row.language});
  }
  return frames;
}

Grouping GroupStacks(const Capture& capture) {
  Grouping grouping;
  std::vector<uint32_t> asked, answered;
  std::vector<bool> has_stack(capture.processes.size());
  std::vector<std::vector<uint32_t>> threads_of(capture.stacks.size());
  for (uint32_t i = 0; i < capture.threads.size(); ++i) {
    threads_of[capture.threads[i].stack].push_back(i);
    has_stack[capture.threads[i].process] = true;
  }
  for (uint32_t i = 0; i < capture.processes.size(); ++i) {
    const ProcessRow& process = capture.processes[i];
    if (!has_stack[i]) grouping.without_stacks.push_back(i);
    if (process.rank == kNone) continue;
    asked.push_back(process.rank);
    if (has_stack[i]) answered.push_back(process.rank);
  }
  grouping.asked = RankSet(std::move(asked));
  grouping.answered = RankSet(std::move(answered));

  const auto place_of = [&](uint32_t thread) {
    const ThreadRow& row = capture.threads[thread];
    const ProcessRow& process = capture.processes[row.process];
    return std::tuple(process.rank, process.is_child, row.process, row.id, thread);
  };
  for (uint32_t stack = 0; stack < capture.stacks.size(); ++stack) {
    if (threads_of[stack].empty()) continue;
    Group& group = grouping.groups.emplace_back();
    group.stack = stack;
    group.threads = std::move(threads_of[stack]);
    std::ranges::sort(group.threads, {}, place_of);
    std::vector<uint32_t> ranks;
    for (const uint32_t thread : group.threads) {
      const ThreadRow& row = capture.threads[thread];
      if (const uint32_t rank = capture.processes[row.process].rank; rank != kNone) ranks.push_back(rank);
      group.has_main = group.has_main || row.is_main;
      group.holds_gil = group.holds_gil || row.holds_gil;
    }
    group.ranks = RankSet(std::move(ranks));
    const std::vector<Frame> frames = FramesOf(capture, stack);
    group.waits = WhatItWaitsFor(frames);
    group.in_background = IsInBackground(capture, group, IsAtRest(frames));
    group.folded = group.in_background && grouping.answered.size() > 1 && group.ranks == grouping.answered;
  }
  // At last by where it was first: as good as any, and the same each time.
  std::ranges::sort(grouping.groups, {}, [&](const Group& group) {
    const size_t rarity = group.ranks.empty() ? group.threads.size() : group.ranks.size();
    return std::tuple(group.in_background, rarity, Weight(group), group.threads.size(),
                      place_of(group.threads.front()));
  });
  return grouping;
}

std::optional<Outlier> FindOutlier(const Capture& capture, const Grouping& grouping) {
  const size_t all = grouping.answered.size();
  const Group* busy = nullptr;     // the rarest that does not wait for others
  bool is_tie = false;             // another one is as rare
  const Group* waiting = nullptr;  // the rarest that does
  for (const Group& group : grouping.groups) {
    if (group.in_background || group.ranks.empty()) continue;
    if (!group.has_main && group.waits != Waits::kKernel) continue;
    const Group*& rarest = group.waits == Waits::kPeers ? waiting : busy;
    if (rarest == nullptr) {
      rarest = &group;
    } else if (rarest == busy && group.ranks.size() == busy->ranks.size() && group.ranks != busy->ranks) {
      is_tie = true;
    }
  }
  const Group* found = busy != nullptr ? busy : waiting;
  if (found == nullptr) return std::nullopt;
  const bool stands_out =
      found == busy ? (found->ranks.size() * 2 <= all && !is_tie) || all == 1 : found->ranks.size() * 2 < all;
  if (!stands_out) return std::nullopt;
  const std::vector<Frame> frames = FramesOf(capture, found->stack);
  const Frame* place = PlaceOf(frames);
  Outlier outlier{
      .ranks = found->ranks, .processes = {}, .where = place == nullptr ? "an unknown place" : Describe(*place)};
  for (const uint32_t thread : found->threads) outlier.processes.push_back(capture.threads[thread].process);
  return outlier;
}

std::string OneLine(const Capture& capture, const Grouping& grouping) {
  if (grouping.groups.empty()) return "no stack could be taken";
  const Group& first = grouping.groups.front();
  const std::vector<Frame> frames = FramesOf(capture, first.stack);
  const Frame* place = PlaceOf(frames);
  const std::string where = place == nullptr ? "an unknown place" : Describe(*place);
  const bool is_child = capture.processes[capture.threads[first.threads.front()].process].is_child;
  const std::string whose = is_child ? "a process of " : "";
  const size_t all = grouping.answered.size();
  std::string text;
  if (first.waits == Waits::kKernel) {
    const bool has_place = place->language != Language::kKernel;
    text = whose + (first.ranks.size() == 1 ? "rank " : "ranks ") + first.ranks.Text(8) +
           (first.ranks.size() == 1 ? " does not run: " : " do not run: ") + frames.back().function +
           (has_place ? ", in " + where : "");
  } else if (first.ranks.empty()) {
    text = Count(first.threads.size(), "thread") + " at " + where;
  } else if (first.ranks.size() == all && all > 1) {
    text = "all " + std::to_string(all) + " ranks are at " + where;
  } else if (all > 1 && !FindOutlier(capture, grouping)) {
    const auto places = std::ranges::count_if(grouping.groups, [](const Group& group) { return group.has_main; });
    text = std::to_string(all) + " ranks are in " + Count(static_cast<size_t>(places), "place") +
           ", and none stands out: " + whose + (first.ranks.size() == 1 ? "rank " : "ranks ") + first.ranks.Text(8) +
           (first.ranks.size() == 1 ? " is at " : " are at ") + where;
  } else if (first.ranks.size() == 1) {
    text = whose + "rank " + first.ranks.Text() + (all > 1 ? " is alone at " : " is at ") + where;
  } else {
    text = whose + "ranks " + first.ranks.Text(8) + " are at " + where;
  }
  std::vector<uint32_t> waiting;
  for (const Group& group : grouping.groups) {
    if (group.waits != Waits::kPeers || !group.has_main) continue;
    for (const auto& [from, to] : group.ranks.runs()) {
      for (uint32_t rank = from; rank <= to; ++rank) waiting.push_back(rank);
    }
  }
  const RankSet victims(std::move(waiting));
  if (first.waits != Waits::kPeers && !victims.empty()) {
    text += "; " + std::to_string(victims.size()) + " of " + Count(all, "rank") +
            (victims.size() == 1 ? " waits for others" : " wait for others");
  }
  if (const TextIndex trouble = capture.processes[capture.threads[first.threads.front()].process].trouble;
      trouble != 0) {
    text += "; " + capture.Text(trouble);
  }
  return text;
}

}  // namespace aimaster::stacks
