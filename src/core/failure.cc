#include "core/failure.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace aimaster {

std::optional<Wall> BeganAt(const RankFailure& failure) {
  std::optional<Wall> time;
  const auto earlier = [&time](Wall other) { time = time ? std::min(*time, other) : other; };
  if (failure.exit) earlier(failure.exit->time);
  if (failure.dump_start) earlier(*failure.dump_start);
  if (failure.error_file_time) earlier(*failure.error_file_time);
  return time;
}

std::vector<const LineMatch*> FreshMatches(const RankFailure& failure) {
  std::map<std::string_view, uint64_t> last_offsets;
  for (const LineMatch& match : failure.matches) {
    uint64_t& last = last_offsets[match.file];
    last = std::max(last, match.offset);
  }
  std::vector<const LineMatch*> fresh;
  for (const LineMatch& match : failure.matches) {
    if (!IsOldNews(match.offset, last_offsets[match.file])) fresh.push_back(&match);
  }
  return fresh;
}

}  // namespace aimaster
