#include "agent/rule_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>

#include "detect/built_in_rules.h"

namespace aimaster::agent {
namespace {

// Whole pages only: what shares one with others stays.
void GiveBack(std::span<const char> bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  // They are constants without relocations in a private mapping of a file: nothing of them was ever written.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

void GiveBackBuiltInDatabases() {
  const BuiltInDatabases databases = BuiltInPatterns();
  for (const std::span<const char> each : {databases.lines, databases.words, databases.short_words}) GiveBack(each);
}

}  // namespace aimaster::agent
