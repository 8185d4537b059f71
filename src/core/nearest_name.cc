#include "core/nearest_name.h"

#include <algorithm>
#include <vector>

namespace aimaster {
namespace {

constexpr size_t kNameMaxBytes = 64;  // a longer text is no name; the cost grows with its square

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

std::optional<std::string_view> NearestName(std::string_view written, std::span<const std::string_view> names) {
  if (written.size() > kNameMaxBytes) return std::nullopt;
  std::optional<std::string_view> nearest;
  size_t nearest_distance = 0;
  for (const std::string_view name : names) {
    const size_t distance = EditDistance(written, name);
    if (nearest && distance >= nearest_distance) continue;
    nearest = name;
    nearest_distance = distance;
  }
  // One wrong letter of three is a slip; half of a name is another name.
  if (!nearest || nearest_distance > std::max<size_t>(1, std::min(written.size(), nearest->size()) / 3)) {
    return std::nullopt;
  }
  return nearest;
}

std::string DidYouMean(std::string_view written, std::span<const std::string_view> names) {
  const std::optional<std::string_view> nearest = NearestName(written, names);
  return nearest ? "; did you mean " + std::string(*nearest) + "?" : "";
}

}  // namespace aimaster
