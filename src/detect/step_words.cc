#include "detect/step_words.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "detect/byte_vector.h"
#include "detect/line_text.h"

namespace aimaster {
namespace {

constexpr size_t kLookedAtBytes = 400;
constexpr size_t kWayMaxBytes = 96;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Where the number of steps begins, as it is called; npos where nothing calls one.
size_t CalledStep(std::string_view line) {
  constexpr std::array<std::string_view, 6> kNames{"step", "Step", "STEP", "iter", "Iter", "batch"};
  constexpr std::string_view kAround = " :=[#\"'/(";
  for (std::string_view name : kNames) {
    for (size_t at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
      if (at > 0 && IsLetter(line[at - 1])) continue;
      size_t end = at + name.size();
      for (std::string_view rest : {"ation", "s"}) {
        if (line.substr(end).starts_with(rest)) end += rest.size();
      }
      const size_t number = std::min(line.find_first_not_of(kAround, end), line.size());
      if (number > end && number < line.size() && IsDigit(line[number])) return number;
    }
  }
  return std::string_view::npos;
}

// " 47%|██▋ | 47/100 [00:12<"
size_t InProgressBar(std::string_view line) {
  const size_t percent = line.find("%|");
  const size_t bar = percent == std::string_view::npos ? percent : line.find("| ", percent + 2);
  if (bar == std::string_view::npos) return bar;
  const size_t number = line.find_first_not_of(' ', bar + 1);
  return number != std::string_view::npos && IsDigit(line[number]) ? number : std::string_view::npos;
}

}  // namespace

std::optional<StepWord> StepIn(std::string_view line) {
  line = line.substr(0, kLookedAtBytes);
  size_t begin = InProgressBar(line);
  const bool is_bar = begin != std::string_view::npos;
  if (!is_bar) begin = CalledStep(line);
  if (begin == std::string_view::npos) return std::nullopt;
  StepWord step;
  const auto [end, error] = std::from_chars(line.data() + begin, line.data() + line.size(), step.number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view before = line.substr(0, is_bar ? line.find('%') : begin);
  const std::string_view near = before.substr(before.size() - std::min(before.size(), kWayMaxBytes));
  for (char c : near) {
    if (!IsDigit(c) && c != ' ') step.way += c;
  }
  return step;
}

// "%|", and three letters that stand in each of the names, in whichever case.
bool MayTellStep(std::string_view line) {
  constexpr size_t kReach = sizeof(ByteVector) + 2;
  if (line.size() < kReach) return true;
  const auto is_at = [&](size_t at) {
    const char* text = line.data() + at;
    const ByteVector plain = LoadBytes(text), next = LoadBytes(text + 1);
    const ByteVector first = plain | 0x20, second = next | 0x20, third = LoadBytes(text + 2) | 0x20;
    const auto name =
        (second == 't') & ((((first == 's') | (first == 'i')) & (third == 'e')) | ((first == 'a') & (third == 'c')));
    return IsAnySet(reinterpret_cast<ByteVector>(name | ((plain == '%') & (next == '|'))));
  };
  for (size_t at = 0; at + kReach <= line.size(); at += sizeof(ByteVector)) {
    if (is_at(at)) return true;
  }
  return is_at(line.size() - kReach);
}

}  // namespace aimaster
