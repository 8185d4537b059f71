// FileName: a name from outside that becomes a part of a path. What passes here stays where it is put: it names no
// directory above, hides nothing behind a NUL, and can be printed. Listing what is forbidden was rejected: somebody
// always knows one character more.
#pragma once

#include <cstddef>
#include <string_view>

namespace aimaster {

inline constexpr size_t kFileNameMaxBytes = 200;  // NAME_MAX less what we append

// Letters, digits, '.', '_' and '-'; not empty, not too long, and more than dots.
bool IsFileName(std::string_view name);

}  // namespace aimaster
