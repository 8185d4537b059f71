#include "core/file_name.h"

namespace aimaster {

bool IsFileName(std::string_view name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= kFileNameMaxBytes &&
         name.find_first_not_of(kAllowed) == std::string_view::npos &&
         name.find_first_not_of('.') != std::string_view::npos;
}

}  // namespace aimaster
