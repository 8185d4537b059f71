#include "agent/program_memory.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>

namespace aimaster::agent {
namespace {

// Relocations in read-only segments: their pages were written to, and the file doesn't have what they hold.
bool HasTextRelocations(const dl_phdr_info& object) {
  for (const ElfW(Phdr) & header : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    if (header.p_type != PT_DYNAMIC) continue;
    for (auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + header.p_vaddr); entry->d_tag != DT_NULL;
         ++entry) {
      if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0))
        return true;
    }
  }
  return false;
}

int GiveBackSegments(dl_phdr_info* object, size_t, void*) {
  if (HasTextRelocations(*object)) return 0;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const ElfW(Phdr) & header : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) != 0) continue;
    // Whole pages only: what shares one with a segment that is written to stays.
    const uintptr_t begin = (object->dlpi_addr + header.p_vaddr + page - 1) / page * page;
    const uintptr_t end = (object->dlpi_addr + header.p_vaddr + header.p_filesz) / page * page;
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void GiveBackReadOnlyPages() { ::dl_iterate_phdr(GiveBackSegments, nullptr); }

}  // namespace aimaster::agent
