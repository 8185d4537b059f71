#include "probe/nccl/words.h"

#include <stddef.h>
#include <string.h>

#include "probe/record.h"

// The frequent ones first.
const struct FunctionWord kFunctionWord[kFunctionWords] = {
    {"AllReduce", "ncclAllReduce", kRecordAllReduce, false},
    {"AllGather", "ncclAllGather", kRecordAllGather, false},
    {"ReduceScatter", "ncclReduceScatter", kRecordReduceScatter, false},
    {"Send", "ncclSend", kRecordSend, false},
    {"Recv", "ncclRecv", kRecordReceive, false},
    {"Broadcast", "ncclBroadcast", kRecordBroadcast, true},
    {"Reduce", "ncclReduce", kRecordReduce, true},
    {"AlltoAll", "ncclAlltoAll", kRecordAllToAll, false},
    {"AllGatherV", "ncclAllGatherV", kRecordOtherCollective, false},
    {"Gather", "ncclGather", kRecordGather, true},
    {"Scatter", "ncclScatter", kRecordScatter, true},
    {"", "another collective of NCCL", kRecordOtherCollective, false},
};

static bool Equals(const char* left, const char* right) { return left[0] == right[0] && strcmp(left, right) == 0; }

uint16_t FunctionNumber(const char* text) {
  uint16_t number = 0;
  while (text && number < kFunctionWords - 1 && !Equals(text, kFunctionWord[number].text)) ++number;
  return text ? number : kFunctionWords - 1;
}

struct TypeWord TypeOf(const char* text) {
  static const struct TypeWord kTypes[] = {
      {"Bfloat16", kRecordBFloat16, 2}, {"Float32", kRecordFloat32, 4},       {"Float16", kRecordFloat16, 2},
      {"Int8", kRecordInt8, 1},         {"Uint8", kRecordUint8, 1},           {"Int32", kRecordInt32, 4},
      {"Int64", kRecordInt64, 8},       {"Uint32", kRecordUint32, 4},         {"Uint64", kRecordUint64, 8},
      {"Float64", kRecordFloat64, 8},   {"Float8e4m3", kRecordFloat8E4M3, 1}, {"Float8e5m2", kRecordFloat8E5M2, 1},
  };
  const struct TypeWord other = {"", kRecordOtherType, 0};
  if (!text) return other;
  if (strncmp(text, "nccl", 4) == 0) text += 4;
  for (size_t i = 0; i < sizeof kTypes / sizeof *kTypes; ++i) {
    if (Equals(text, kTypes[i].text)) return kTypes[i];
  }
  return other;
}
