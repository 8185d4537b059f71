// The next function of a name: of another tool that was loaded after us, or of the MPI library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#include "probe/pmpi/pmpi.h"

// As they were called before glibc 2.34, which has both.
#if defined(__x86_64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.17");
__asm__(".symver dlopen, dlopen@GLIBC_2.17");
#endif

// For what can't be found, which nobody could have called. The type does not matter: it looks at no argument.
static int Missing(void) { return MPI_ERR_INTERN; }

static void* FindIn(void* scope, const char* name) {
  void* found = dlsym(scope, name);
  // Where an interpreter has loaded the library for itself alone.
  static const char* const kLibraries[] = {"libmpi.so.40", "libmpi.so.12",       "libmpich.so.12",
                                           "libmpi.so",    "libmpi_mpifh.so.40", "libmpichfort.so.12"};
  for (size_t i = 0; !found && i < sizeof kLibraries / sizeof *kLibraries; ++i) {
    void* library = dlopen(kLibraries[i], RTLD_LAZY | RTLD_NOLOAD);
    if (library) found = dlsym(library, name);
  }
  return found;
}

void* FindReal(void** place, const char* name) {
  void* found = FindIn(RTLD_NEXT, name);
  if (!found) found = (void*)&Missing;
  __atomic_store_n(place, found, __ATOMIC_RELAXED);
  return found;
}

// Not the next one: the program itself may hold the only copy that counts.
void* FindConstant(const char* name) { return FindIn(RTLD_DEFAULT, name); }
