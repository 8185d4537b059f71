// Every bound on the diagnosis of communication. A dump is a foreign file, perhaps a torn or a hostile one: reading it
// costs a known amount of memory and no recursion.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aimaster::c4d {

// Of one dump. 20,000 operations with the Python frames of each are some 60 MB.
inline constexpr size_t kDumpMaxBytes = 128 << 20;
inline constexpr size_t kNodesMax = 4'000'000;   // values of a dump: dicts, lists, texts, numbers
inline constexpr size_t kItemsMax = 16'000'000;  // what dicts and lists hold, together
inline constexpr size_t kDepthMax = 200;         // of lists in lists
inline constexpr size_t kMemoMax = kNodesMax;
inline constexpr size_t kGroupsPerDumpMax = 100'000;
inline constexpr size_t kEntriesPerDumpMax = 1'000'000;
inline constexpr size_t kDimensionsMax = 64;  // of a tensor
inline constexpr size_t kNameMaxBytes = 240;  // of a group, an operation, a type

// Of all dumps of a job.
inline constexpr uint32_t kRanksMax = 1 << 20;
inline constexpr size_t kMembersMax = 64 << 20;  // of all groups together
inline constexpr size_t kOperationsMax = 64 << 20;
inline constexpr size_t kTextsMax = UINT16_MAX;

static_assert(kNodesMax < UINT32_MAX && kItemsMax < UINT32_MAX, "nodes are named by 32 bits");

}  // namespace aimaster::c4d
