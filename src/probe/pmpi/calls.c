#include "probe/pmpi/pmpi.h"

struct Recorder* the_recorder;
__thread int the_depth;

RecorderTicket BeginOperation(uint16_t name, uint8_t function, uint64_t communicator, struct Amount amount, int peer,
                              uint32_t flags) {
  ++the_depth;
  const struct RecorderOperation operation = {
      .communicator = PlaceOf(communicator),
      .peer = peer < 0 ? RECORD_NONE : (uint32_t)peer,
      .bytes = amount.bytes,
      .flags = flags | (amount.varies ? kRecordSizeVaries : 0),
      .name = name,
      .function = function,
      .type = amount.type,
  };
  return RecorderBegin(the_recorder, &operation);
}

void EndOperation(RecorderTicket ticket) {
  RecorderEnd(the_recorder, ticket);
  --the_depth;
}
