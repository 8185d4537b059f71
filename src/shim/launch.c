#include "shim/launch.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct Reader {
  char* next;
  char* end;
};

// The next string, or NULL at the end. Every string is ended by a NUL within the file: ParseLaunch looked at the last.
static char* NextString(struct Reader* reader) {
  if (reader->next == reader->end) return NULL;
  char* string = reader->next;
  reader->next += strlen(string) + 1;
  return string;
}

static const char* ValueOf(const char* string, const char* key) {
  const size_t length = strlen(key);
  return string && strncmp(string, key, length) == 0 && string[length] == '=' ? string + length + 1 : NULL;
}

static bool ParseNumber(const char* text, uint32_t max, uint32_t* number) {
  uint64_t value = 0;
  if (!text || !*text) return false;
  for (; *text; ++text) {
    if (*text < '0' || *text > '9') return false;
    value = value * 10 + (uint64_t)(*text - '0');
    if (value > max) return false;
  }
  *number = (uint32_t)value;
  return true;
}

static bool IsAbsolutePath(const char* path) { return path && *path == '/' && strlen(path) <= kLaunchMaxPathBytes; }

static const char* ParseHeader(struct Reader* reader, struct Launch* launch) {
  enum { kInstance = 1, kAttempt = 2, kGrace = 4, kLogDir = 8, kRanks = 16, kNeeded = 31, kLease = 32, kOrphan = 64 };
  const char* version = NextString(reader);
  if (!version || strcmp(version, AIMASTER_LAUNCH_VERSION) != 0)
    return "the first string is not " AIMASTER_LAUNCH_VERSION;
  unsigned seen = 0;
  while (reader->next != reader->end && !ValueOf(reader->next, "rank")) {
    const char* string = NextString(reader);
    const char* value;
    unsigned key = 0;
    if ((value = ValueOf(string, "instance"))) {
      key = kInstance;
      launch->instance = value;
      if (!*value || strlen(value) > kLaunchMaxInstanceBytes) return "instance is empty or too long";
    } else if ((value = ValueOf(string, "attempt"))) {
      key = kAttempt;
      if (!ParseNumber(value, kLaunchMaxNumber, &launch->attempt)) return "attempt is no number in range";
    } else if ((value = ValueOf(string, "stop_grace_ms"))) {
      key = kGrace;
      if (!ParseNumber(value, kLaunchMaxStopGraceMs, &launch->stop_grace_ms))
        return "stop_grace_ms is no number in range";
    } else if ((value = ValueOf(string, "log_dir"))) {
      key = kLogDir;
      launch->log_dir = value;
      if (!IsAbsolutePath(value)) return "log_dir is not an absolute path, or too long";
    } else if ((value = ValueOf(string, "ranks"))) {
      key = kRanks;
      if (!ParseNumber(value, kLaunchMaxRanks, &launch->rank_count) || launch->rank_count == 0) {
        return "ranks is no number in range";
      }
    } else if ((value = ValueOf(string, "lease"))) {
      key = kLease;
      launch->lease = value;
      if (!IsAbsolutePath(value)) return "lease is not an absolute path, or too long";
    } else if ((value = ValueOf(string, "orphan_timeout_ms"))) {
      key = kOrphan;
      if (!ParseNumber(value, LAUNCH_MAX_ORPHAN_TIMEOUT_MS, &launch->orphan_timeout_ms)) {
        return "orphan_timeout_ms is no number in range";
      }
    } else if (!strchr(string, '=')) {
      return "a header string is not key=value";
    }
    if (seen & key) return "a header key stands twice";
    seen |= key;
  }
  return (seen & kNeeded) == kNeeded ? NULL : "the header lacks instance, attempt, stop_grace_ms, log_dir or ranks";
}

static const char* ParseStrings(struct Reader* reader, const char* key, uint32_t min, char*** free_pointer,
                                char*** out) {
  uint32_t count;
  if (!ParseNumber(ValueOf(NextString(reader), key), kLaunchMaxStrings, &count) || count < min) {
    return "argc or envc of a rank is missing or no number in range";
  }
  *out = *free_pointer;
  for (uint32_t i = 0; i < count; ++i) {
    char* string = NextString(reader);
    if (!string) return "the file ends within a rank";
    *(*free_pointer)++ = string;
  }
  *(*free_pointer)++ = NULL;
  return NULL;
}

static const char* ParseRank(struct Reader* reader, struct LaunchRank* rank, char*** free_pointer) {
  if (!ParseNumber(ValueOf(NextString(reader), "rank"), kLaunchMaxNumber, &rank->rank)) {
    return "rank is missing or no number in range";
  }
  if (!ParseNumber(ValueOf(NextString(reader), "local"), kLaunchMaxNumber, &rank->local)) {
    return "local is missing or no number in range";
  }
  rank->cwd = ValueOf(NextString(reader), "cwd");
  if (!IsAbsolutePath(rank->cwd)) return "cwd is missing, not an absolute path, or too long";
  const char* problem = ParseStrings(reader, "argc", 1, free_pointer, &rank->argv);
  if (problem) return problem;
  if (!rank->argv[0][0]) return "a rank's command is empty";
  return ParseStrings(reader, "envc", 0, free_pointer, &rank->envp);
}

static const char* ParseRanks(struct Reader* reader, struct Launch* launch) {
  char** free_pointer = launch->pointers;
  for (uint32_t i = 0; i < launch->rank_count; ++i) {
    const char* problem = ParseRank(reader, &launch->ranks[i], &free_pointer);
    if (problem) return problem;
    for (uint32_t earlier = 0; earlier < i; ++earlier) {
      if (launch->ranks[earlier].local == launch->ranks[i].local) return "two ranks have the same local";
    }
  }
  const char* end = NextString(reader);
  if (!end || strcmp(end, AIMASTER_LAUNCH_END) != 0) return "the ranks are not followed by " AIMASTER_LAUNCH_END;
  return reader->next == reader->end ? NULL : "something follows " AIMASTER_LAUNCH_END;
}

const char* ParseLaunch(char* bytes, size_t size, struct Launch* launch) {
  memset(launch, 0, sizeof *launch);
  if (size == 0 || size > kLaunchMaxBytes) return "the file is empty or too long";
  if (bytes[size - 1] != '\0') return "the file does not end with a NUL";
  struct Reader reader = {bytes, bytes + size};
  const char* problem = ParseHeader(&reader, launch);
  if (!problem) {
    // Each rank ends two of its strings' lists with NULL, and spends more than two strings on its numbers; so as many
    // pointers as there are strings are always enough.
    size_t strings = 0;
    for (size_t i = 0; i < size; ++i) strings += bytes[i] == '\0';
    launch->pointers = calloc(strings, sizeof *launch->pointers);
    launch->ranks = calloc(launch->rank_count, sizeof *launch->ranks);
    problem = launch->pointers && launch->ranks ? ParseRanks(&reader, launch) : "no memory";
  }
  if (problem) FreeLaunch(launch);
  return problem;
}

void FreeLaunch(struct Launch* launch) {
  free(launch->pointers);
  free(launch->ranks);
  memset(launch, 0, sizeof *launch);
}
