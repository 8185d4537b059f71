#include "cli/rank_grid.h"

#include <algorithm>
#include <array>
#include <utility>

namespace aimaster::cli {
namespace {

constexpr size_t kRanksMin = 8;  // fewer are told more shortly in words
constexpr size_t kRanksMax = 1 << 20;
constexpr size_t kRanksPerBlock = 8;
constexpr size_t kShortRow = 32, kLongRow = 64;
constexpr size_t kLongRowWidth = 90;  // columns of a terminal, with what stands before the row
constexpr size_t kLinesMax = 64;
constexpr size_t kNumberWidth = 8;

struct SignLook {
  char letter;
  Colour colour;
  std::string_view meaning;
};
constexpr std::array<SignLook, 9> kLooks = {{
    {'.', Colour::kNone, "nothing found"},
    {'?', Colour::kDim, "not seen"},
    {'w', Colour::kNone, "waits for them"},
    {'s', Colour::kBlue, "slow outside communication"},
    {'S', Colour::kBlue, "slow in communication"},
    {'g', Colour::kYellow, "one or more of these"},
    {'m', Colour::kRed, "its calls don't fit together with others'"},
    {'h', Colour::kRed, "hangs outside communication"},
    {'H', Colour::kRed, "hangs in communication"},
}};
static_assert(kLooks.size() == std::to_underlying(RankSign::kHangsInside) + 1u);

const SignLook& LookOf(RankSign sign) { return kLooks[std::to_underlying(sign)]; }

std::string Before(std::string number) {
  if (number.size() < kNumberWidth) number.insert(0, kNumberWidth - number.size(), ' ');
  return number + "  ";
}

}  // namespace

RankSign SignOf(std::string_view kind, bool is_group) {
  if (kind == "NoProbeData") return RankSign::kNotSeen;
  if (kind == "CollectiveMismatch" || kind == "CyclicWait") return RankSign::kWrongCall;
  if (kind == "RankCommSlow") return RankSign::kSlowInside;
  if (kind == "RankNonCommSlow") return RankSign::kSlowOutside;
  if (kind == "RankNonCommHang") return RankSign::kHangsOutside;
  if (kind == "RankCommHang") return is_group ? RankSign::kOfGroup : RankSign::kHangsInside;
  return RankSign::kNothing;
}

void RankGrid::Mark(std::span<const Rank> ranks, RankSign sign) {
  for (const Rank rank : ranks) {
    const size_t number = Value(rank);
    if (number >= kRanksMax) continue;
    if (number >= signs_.size()) signs_.resize(number + 1, RankSign::kNothing);
    signs_[number] = std::max(signs_[number], sign);
  }
}

std::string RankGrid::Legend() const {
  std::string text = "Ranks: ";
  for (size_t i = kLooks.size(); i-- > 0;) {
    if (std::ranges::find(signs_, static_cast<RankSign>(i)) == signs_.end()) continue;
    if (text.size() > 7) text += ", ";
    text += std::string(1, kLooks[i].letter) + " " + std::string(kLooks[i].meaning);
  }
  return text + "\n";
}

std::string RankGrid::Row(size_t first, size_t count, const Terminal& terminal) const {
  std::string text = Before(std::to_string(first));
  for (size_t at = first; at < first + count;) {
    if (at > first && (at - first) % kRanksPerBlock == 0) text += ' ';
    // As many of one colour as stand together.
    const RankSign sign = signs_[at];
    std::string run;
    do {
      run += LookOf(sign).letter;
      ++at;
    } while (at < first + count && (at - first) % kRanksPerBlock != 0 && signs_[at] == sign);
    text += terminal.Paint(LookOf(sign).colour, run);
  }
  return text + "\n";
}

std::string RankGrid::Draw(const Terminal& terminal) const {
  if (signs_.size() < kRanksMin || std::ranges::all_of(signs_, [](RankSign s) { return s == RankSign::kNothing; })) {
    return {};
  }
  const bool is_wide = terminal.width == 0 || static_cast<size_t>(terminal.width) >= kLongRowWidth;
  const size_t row = is_wide && signs_.size() > kShortRow ? kLongRow : kShortRow;
  std::string text = Legend();
  size_t lines = 0;
  for (size_t first = 0; first < signs_.size();) {
    if (++lines > kLinesMax) return text + Before("…") + "and more; --json names all\n";
    const auto begin = signs_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto other = std::find_if(begin, signs_.end(), [&](RankSign sign) { return sign != *begin; });
    const size_t same = static_cast<size_t>(other - begin);
    const size_t rows = other == signs_.end() ? (same + row - 1) / row : same / row;
    if (rows > 1) {
      const size_t end = std::min(first + rows * row, signs_.size());
      const SignLook& look = LookOf(*begin);
      text += Before(std::to_string(first)) + "to " + std::to_string(end - 1) + " all " +
              terminal.Paint(look.colour, std::string(1, look.letter)) + "\n";
      first = end;
      continue;
    }
    const size_t count = std::min(row, signs_.size() - first);
    text += Row(first, count, terminal);
    first += count;
  }
  return text;
}

}  // namespace aimaster::cli
