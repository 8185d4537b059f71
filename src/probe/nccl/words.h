// The texts in which NCCL names functions and types, as numbers of the record.
#ifndef AIMASTER_PROBE_NCCL_WORDS_H_
#define AIMASTER_PROBE_NCCL_WORDS_H_

#include <stdbool.h>
#include <stdint.h>

struct FunctionWord {
  const char* text;
  const char* name;  // in the record
  uint8_t function;  // RecordFunction
  bool has_root;
};
enum { kFunctionWords = 12 };
extern const struct FunctionWord kFunctionWord[kFunctionWords];  // the last: any other
uint16_t FunctionNumber(const char* text);                       // in them

struct TypeWord {
  const char* text;
  uint8_t type;   // RecordType
  uint8_t bytes;  // of an element; 0: not known
};
struct TypeWord TypeOf(const char* text);

#endif  // AIMASTER_PROBE_NCCL_WORDS_H_
