#include "shim/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

void Print(struct Text* text, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t room = text->capacity - text->length;
  const int wanted = vsnprintf(text->bytes + text->length, room, format, arguments);
  va_end(arguments);
  if (wanted < 0 || (size_t)wanted >= room) {
    text->cut = true;
    text->length = room > 0 ? text->capacity - 1 : text->capacity;
  } else {
    text->length += (size_t)wanted;
  }
}

// The length of the UTF-8 sequence at `bytes`, or 0 where there is none within `size`.
static size_t SequenceLength(const unsigned char* bytes, size_t size) {
  static const uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char first = bytes[0];
  const size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (length <= 1 || length > size) return length > size ? 0 : length;
  uint32_t point = first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (bytes[i] >> 6 != 2) return 0;
    point = point << 6 | (bytes[i] & 0x3fu);
  }
  const bool valid = point >= kSmallest[length] && point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
  return valid ? length : 0;
}

void PrintJsonString(struct Text* text, const char* value, size_t max_bytes) {
  const unsigned char* bytes = (const unsigned char*)value;
  size_t size = 0;
  while (size < max_bytes && bytes[size]) ++size;
  Print(text, "\"");
  for (size_t i = 0; i < size;) {
    const size_t length = SequenceLength(bytes + i, size - i);
    if (length == 0) {
      Print(text, "\\ufffd");
    } else if (length == 1 && (bytes[i] == '"' || bytes[i] == '\\')) {
      Print(text, "\\%c", bytes[i]);
    } else if (length == 1 && (bytes[i] < 0x20 || bytes[i] == 0x7f)) {
      Print(text, "\\u%04x", bytes[i]);
    } else {
      Print(text, "%.*s", (int)length, value + i);
    }
    i += length ? length : 1;
  }
  Print(text, "\"");
}
