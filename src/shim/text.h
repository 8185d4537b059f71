// Text into a buffer of fixed size: the shim writes its files while the machine may be out of memory, so nothing here
// allocates. What does not fit is cut and remembered as such; callers choose buffers that their limits can't exceed.
#ifndef AIMASTER_SHIM_TEXT_H_
#define AIMASTER_SHIM_TEXT_H_

#include <stdbool.h>
#include <stddef.h>

struct Text {
  char* bytes;
  size_t capacity;
  size_t length;
  bool cut;
};

#define TEXT_OVER(array) {(array), sizeof(array), 0, false}

__attribute__((format(printf, 2, 3))) void Print(struct Text* text, const char* format, ...);

// Appends a JSON string with its quotes. At most `max_bytes` of `value` are used; bytes that are not UTF-8 become
// U+FFFD.
void PrintJsonString(struct Text* text, const char* value, size_t max_bytes);

#endif  // AIMASTER_SHIM_TEXT_H_
