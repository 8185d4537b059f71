#include "core/ids.h"

#include <algorithm>

namespace aimaster {
namespace {

constexpr std::string_view kPrefix = "dlc";
constexpr size_t kLetters = 13;
constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";

}  // namespace

Result<JobId> JobId::Parse(std::string_view text) {
  const bool valid = text.size() == kPrefix.size() + kLetters && text.starts_with(kPrefix) &&
                     std::ranges::all_of(text, [](char c) { return kAlphabet.contains(c); });
  if (!valid) {
    return Fail(ErrorKind::kUsage, "'" + std::string(text.substr(0, 64)) +
                                       "' is not a job id; one looks like dlc1a2b3c4d5e6f7, see `aimaster list`");
  }
  return JobId(std::string(text));
}

JobId JobId::FromRandom(uint64_t random) {
  std::string text(kPrefix);
  for (size_t i = 0; i < kLetters; ++i) {
    text.push_back(kAlphabet[random % kAlphabet.size()]);
    random /= kAlphabet.size();
  }
  return JobId(std::move(text));
}

}  // namespace aimaster
