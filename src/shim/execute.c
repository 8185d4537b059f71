#include "shim/execute.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

const char* PathOf(char* const* envp) {
  for (; *envp; ++envp) {
    if (strncmp(*envp, "PATH=", 5) == 0) return *envp + 5;
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

int Execute(char* const* argv, char* const* envp) {
  const char* file = argv[0];
  if (strchr(file, '/')) {
    execve(file, argv, envp);
    return errno;
  }
  char candidate[PATH_MAX];
  const size_t file_length = strlen(file);
  int told = ENOENT;
  for (const char* path = PathOf(envp);; ++path) {
    const size_t length = strcspn(path, ":");
    if (length + 1 + file_length < sizeof candidate) {
      memcpy(candidate, path, length);
      candidate[length] = '/';
      // An empty entry means the working directory.
      strcpy(length ? candidate + length + 1 : candidate, file);
      execve(candidate, argv, envp);
      if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) return errno;
      if (errno == EACCES) told = EACCES;
    }
    path += length;
    if (!*path) return told;
  }
}

int ExecuteExitCode(int error) { return error == ENOENT ? 127 : 126; }
