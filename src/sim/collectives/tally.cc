#include "sim/collectives/tally.h"

#include <cstdio>

namespace aimaster::sim::collectives {

void Tally::Add(const SeedResult& result) {
  const bool hangs = result.scenario.expects_hang;
  const auto count = [&](Row& row) {
    ++row.seeds;
    const bool demands = result.judgement.required > 0 || !result.judgement.misses.empty();
    row.demanding += demands;
    row.right += demands && result.judgement.is_right();
    row.missed += !result.judgement.misses.empty();
    row.accused += !result.judgement.false_accusations.empty();
  };
  count(hangs ? hangs_ : calm_);
  if (!result.scenario.faults.empty()) count(by_kind_[static_cast<size_t>(result.scenario.faults.front().kind)]);
  events_ += result.events;
  observations_ += result.observations;
  analysed_ += result.analysed;
}

bool Tally::is_good() const {
  return calm_.accused == 0 &&
         static_cast<double>(hangs_.right) >= kRightAtLeast * static_cast<double>(hangs_.demanding) &&
         // Where nobody has to be named, nobody may be accused wrongly either.
         static_cast<double>(hangs_.accused) <= (1 - kRightAtLeast) * static_cast<double>(hangs_.seeds);
}

std::string Tally::Table() const {
  std::string text;
  char line[160];
  std::snprintf(line, sizeof line, "%-14s %7s %9s %7s %7s %7s %7s\n", "", "seeds", "to name", "right", "", "missed",
                "false");
  text += line;
  const auto add = [&](const char* name, const Row& row) {
    char share[16] = "";
    if (row.demanding > 0) {
      std::snprintf(share, sizeof share, "%.1f %%",
                    100 * static_cast<double>(row.right) / static_cast<double>(row.demanding));
    }
    std::snprintf(line, sizeof line, "%-14s %7llu %9llu %7llu %7s %7llu %7llu\n", name,
                  static_cast<unsigned long long>(row.seeds), static_cast<unsigned long long>(row.demanding),
                  static_cast<unsigned long long>(row.right), share, static_cast<unsigned long long>(row.missed),
                  static_cast<unsigned long long>(row.accused));
    text += line;
  };
  for (size_t i = 0; i < kFaultKinds; ++i) {
    if (by_kind_[i].seeds > 0) add(std::string(Name(static_cast<FaultKind>(i))).c_str(), by_kind_[i]);
  }
  add("all that hang", hangs_);
  add("all others", calm_);
  std::snprintf(line, sizeof line, "%llu events, %llu observations, analysed in %.2f ms each\n",
                static_cast<unsigned long long>(events_), static_cast<unsigned long long>(observations_),
                observations_ == 0 ? 0.0
                                   : std::chrono::duration<double, std::milli>(analysed_).count() /
                                         static_cast<double>(observations_));
  return text + line;
}

}  // namespace aimaster::sim::collectives
