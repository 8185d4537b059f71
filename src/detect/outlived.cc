#include "detect/outlived.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "detect/line_text.h"

namespace aimaster {
namespace {

constexpr size_t kToldMax = 4;  // events, in words
constexpr size_t kQuotedTextMaxBytes = 200;

// What the machine or the other ranks may have had a hand in.
bool SpeaksOfTheMachine(std::string_view line) {
  constexpr std::array<std::string_view, 24> kWords{"CUDA", "cuda",  "NCCL",    "nccl",  "cuDNN",      "cublas",
                                                    "HIP",  "HCCL",  "NPU ",    "ECC",   "GPU",        "Horovod",
                                                    "gloo", "Gloo",  "onnecti", "ocket", "imed out",   "imeout",
                                                    "eer ", "evice", "NaN",     " nan",  "orker (pid", "ank "};
  return std::any_of(kWords.begin(), kWords.end(),
                     [line](std::string_view word) { return line.find(word) != std::string_view::npos; });
}

bool IsOwnException(const LineMatch& match, const RuleTable& rules) {
  const std::optional<RuleIndex> rule = rules.Find(match.rule);
  return rule && rules.rule(*rule).category == Category::kUser && rules.rule(*rule).role == RuleRole::kRoot &&
         !SpeaksOfTheMachine(match.line);
}

std::string Quote(std::string_view text) { return "'" + OneLine(text, kQuotedTextMaxBytes) + "'"; }

}  // namespace

bool SaysItWentOn(std::span<const LineMatch> matches) {
  return std::ranges::any_of(matches, [](const LineMatch& match) { return match.rule == kWentOn; });
}

std::vector<std::string> SetAsideOutlived(std::span<std::vector<LineMatch>* const> ranks, const RuleTable& rules) {
  std::map<std::string, LineMatch> signs;  // by file, the last one
  for (std::vector<LineMatch>* matches : ranks) {
    for (const LineMatch& match : *matches) {
      if (match.rule != kWentOn) continue;
      const auto [sign, is_new] = signs.emplace(match.file, match);
      if (!is_new && match.offset > sign->second.offset) sign->second = match;
    }
    std::erase_if(*matches, [](const LineMatch& match) { return match.rule == kWentOn; });
  }
  const auto sign_before = [&](const LineMatch& match) -> const LineMatch* {
    const auto sign = signs.find(match.file);
    return sign == signs.end() ? nullptr : &sign->second;
  };
  std::map<std::string, LineMatch> died_of;  // by file, the exception
  for (const std::vector<LineMatch>* matches : ranks) {
    for (const LineMatch& match : *matches) {
      const LineMatch* sign = sign_before(match);
      if (sign && match.offset > sign->offset && IsOwnException(match, rules)) died_of.emplace(match.file, match);
    }
  }
  std::vector<std::string> told;
  for (std::vector<LineMatch>* matches : ranks) {
    std::erase_if(*matches, [&](const LineMatch& match) {
      if (!died_of.contains(match.file) || match.offset >= sign_before(match)->offset) return false;
      if (told.size() < kToldMax) {
        told.push_back(Quote(match.line) + " was outlived: the job went on (" + Quote(sign_before(match)->line) +
                       ") and then failed of its own: " + Quote(died_of.at(match.file).line));
      }
      return true;
    });
  }
  return told;
}

std::vector<std::string> SetAsideOutlived(std::vector<RankFailure>& failures, const RuleTable& rules) {
  std::vector<std::vector<LineMatch>*> ranks;
  for (RankFailure& failure : failures) ranks.push_back(&failure.matches);
  return SetAsideOutlived(ranks, rules);
}

}  // namespace aimaster
