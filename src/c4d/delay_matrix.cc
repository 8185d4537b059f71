#include "c4d/delay_matrix.h"

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>

namespace aimaster::c4d {
namespace {

struct Heat {
  double sum = 0;
  uint32_t cells = 0, hot = 0;
  double average() const { return sum / cells; }
};

std::string TimesText(double factor) {
  const std::string text = std::to_string(factor);
  return text.substr(0, text.find('.') + 2) + " times";
}

bool IsHotLine(const Heat& line, const DelayLimits& limits) {
  return line.cells >= 2 && line.hot >= 2 && line.hot >= limits.most_of * line.cells;
}

Verdict SlowSide(uint32_t rank, const Heat& line, bool is_sender) {
  Verdict verdict{.kind = VerdictKind::kRankCommSlow, .level = Level::kInfo, .ranks = {Rank{rank}}};
  verdict.evidence.push_back("What rank " + std::to_string(rank) + (is_sender ? " sends" : " receives") + " takes " +
                             TimesText(line.average()) + " as long as usual, " + (is_sender ? "to " : "from ") +
                             std::to_string(line.hot) + " of " + std::to_string(line.cells) +
                             " others: its side is slow.");
  return verdict;
}

}  // namespace

void DelayMatrix::Add(Rank from, Rank to, uint64_t bytes, Duration delay) {
  const Key key{Value(from), Value(to), static_cast<uint8_t>(std::bit_width(bytes))};
  auto found = cells_.find(key);
  if (found == cells_.end()) {
    if (cells_.size() >= limits_.cells_max || delay < Duration::zero()) {
      ++dropped_;
      return;
    }
    found = cells_.emplace(key, Cell{}).first;
  }
  ++found->second.count;
  found->second.total += delay;
}

std::vector<Verdict> DelayMatrix::CloseWindow() {
  std::map<uint8_t, std::vector<double>> of_size;
  for (const auto& [key, cell] : cells_) {
    if (cell.count < limits_.transfers_min) continue;
    of_size[std::get<2>(key)].push_back(static_cast<double>(cell.total.count()) / static_cast<double>(cell.count));
  }
  std::map<uint8_t, double> usual;
  for (auto& [size, delays] : of_size) {
    if (delays.size() < 3) continue;  // of two nobody knows which one is slow
    const auto middle = delays.begin() + static_cast<ptrdiff_t>((delays.size() - 1) / 2);
    std::ranges::nth_element(delays, middle);
    usual[size] = *middle;
  }

  std::map<std::pair<uint32_t, uint32_t>, Heat> pairs;
  for (const auto& [key, cell] : cells_) {
    const auto [from, to, size] = key;
    const auto known = usual.find(size);
    if (cell.count < limits_.transfers_min || known == usual.end() || known->second <= 0) continue;
    Heat& heat = pairs[{from, to}];
    heat.sum += static_cast<double>(cell.total.count()) / static_cast<double>(cell.count) / known->second;
    ++heat.cells;
  }
  cells_.clear();

  std::map<uint32_t, Heat> rows, columns;
  for (const auto& [ends, heat] : pairs) {
    for (Heat* line : {&rows[ends.first], &columns[ends.second]}) {
      line->sum += heat.average();
      ++line->cells;
      line->hot += heat.average() >= limits_.hot ? 1 : 0;
    }
  }
  std::vector<std::tuple<bool, double, Verdict>> found;  // a single cell, how hot, the verdict
  for (const bool is_sender : {true, false}) {
    for (const auto& [rank, line] : is_sender ? rows : columns) {
      if (IsHotLine(line, limits_)) found.emplace_back(false, -line.average(), SlowSide(rank, line, is_sender));
    }
  }
  for (const auto& [ends, heat] : pairs) {
    const auto& [from, to] = ends;
    if (heat.average() < limits_.hot || IsHotLine(rows[from], limits_) || IsHotLine(columns[to], limits_)) continue;
    Verdict verdict{.kind = VerdictKind::kRankCommSlow, .level = Level::kInfo, .ranks = {Rank{from}, Rank{to}}};
    std::ranges::sort(verdict.ranks);
    verdict.is_group = true;
    verdict.evidence.push_back("The connection from rank " + std::to_string(from) + " to rank " + std::to_string(to) +
                               " takes " + TimesText(heat.average()) +
                               " as long as usual; with others both are as fast as anybody.");
    found.emplace_back(true, -heat.average(), std::move(verdict));
  }
  std::ranges::sort(found, {}, [](const auto& one) {
    return std::tuple(std::get<0>(one), std::get<1>(one), std::get<2>(one).ranks.front(),
                      std::get<2>(one).ranks.back());
  });
  std::vector<Verdict> verdicts;
  for (auto& one : found) {
    if (verdicts.size() < limits_.verdicts_max) verdicts.push_back(std::move(std::get<2>(one)));
  }
  return verdicts;
}

}  // namespace aimaster::c4d
