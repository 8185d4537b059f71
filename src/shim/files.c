#include "shim/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/launch_format.h"

void Say(const char* format, ...) {
  char line[1024];
  const int saved = errno;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  dprintf(STDERR_FILENO, "aimaster-shim: %s\n", line);
  errno = saved;
}

bool WriteAll(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes += written;
    size -= (size_t)written;
  }
  return true;
}

static bool WriteFileAt(int directory, const char* name, int flags, const char* bytes, size_t size) {
  const int fd = openat(directory, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (fd < 0) return false;
  bool ok = WriteAll(fd, bytes, size);
  const int saved = errno;
  ok = close(fd) == 0 && ok;  // a network file system may report a full disk only here
  if (!ok && saved) errno = saved;
  return ok;
}

bool PutFile(int directory, const char* name, const struct Text* text) {
  char beside[64];
  snprintf(beside, sizeof beside, "%s.new", name);
  errno = 0;
  if (WriteFileAt(directory, beside, O_CREAT | O_TRUNC, text->bytes, text->length) &&
      renameat(directory, beside, directory, name) == 0) {
    return true;
  }
  const int saved = errno;
  unlinkat(directory, beside, 0);
  errno = saved;
  return false;
}

static void ReservedName(const char* name, char* out, size_t capacity) {
  const char* dot = strrchr(name, '.');
  snprintf(out, capacity, "%.*s.tmp", (int)(dot ? (size_t)(dot - name) : strlen(name)), name);
}

bool ReserveFile(int directory, const char* name) {
  char blanks[kShimExitFileBytes];
  char reserved[64];
  memset(blanks, ' ', sizeof blanks);
  ReservedName(name, reserved, sizeof reserved);
  errno = 0;
  return WriteFileAt(directory, reserved, O_CREAT | O_TRUNC, blanks, sizeof blanks);
}

void UnreserveFile(int directory, const char* name) {
  char reserved[64];
  ReservedName(name, reserved, sizeof reserved);
  unlinkat(directory, reserved, 0);
}

bool PutReservedFile(int directory, const char* name, const struct Text* text) {
  char page[kShimExitFileBytes];
  char reserved[64];
  const size_t length = text->length < sizeof page - 1 ? text->length : sizeof page - 1;
  memset(page, ' ', sizeof page);
  memcpy(page, text->bytes, length);
  page[sizeof page - 1] = '\n';
  ReservedName(name, reserved, sizeof reserved);
  errno = 0;
  return WriteFileAt(directory, reserved, O_CREAT, page, sizeof page) &&
         renameat(directory, reserved, directory, name) == 0;
}

char* ReadFileAt(int directory, const char* name, size_t max, size_t* size) {
  const int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  struct stat status;
  char* bytes = NULL;
  if (fstat(fd, &status) == 0) {
    if ((uint64_t)status.st_size > max) {
      errno = EFBIG;
    } else {
      bytes = malloc((size_t)status.st_size + 1);
    }
  }
  *size = 0;
  while (bytes && *size < (size_t)status.st_size) {
    const ssize_t got = read(fd, bytes + *size, (size_t)status.st_size - *size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      free(bytes);
      bytes = NULL;
    }
    if (got <= 0) break;
    *size += (size_t)got;
  }
  const int saved = errno;
  close(fd);
  errno = saved;
  return bytes;
}

bool ReadSmallFile(const char* path, char* buffer, size_t capacity) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = read(fd, buffer, capacity - 1);
  close(fd);
  if (got < 0) return false;
  buffer[got] = '\0';
  return true;
}
