// What the writer and the reader of the document agree on (document.h has its form).
#pragma once

#include <cstdint>

namespace aimaster::stacks {

inline constexpr uint32_t kFormatVersion = 1;
inline constexpr uint32_t kChild = 1;                         // flags of a process
inline constexpr uint32_t kMain = 1, kWaiting = 2, kGil = 4;  // of a thread

}  // namespace aimaster::stacks
