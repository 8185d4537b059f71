#include "probe/recorder_words.h"

RecorderTicket RecorderBeginWords(struct Recorder* recorder, uint32_t communicator, uint32_t peer, uint64_t bytes,
                                  uint64_t what) {
  const struct RecorderOperation operation = {.communicator = communicator,
                                              .peer = peer,
                                              .bytes = bytes,
                                              .flags = (uint32_t)(what >> 32),
                                              .name = (uint16_t)what,
                                              .function = (uint8_t)(what >> 16),
                                              .type = (uint8_t)(what >> 24)};
  return RecorderBegin(recorder, &operation);
}

void RecorderBeginWait(struct Recorder* recorder, RecorderTicket ticket, uint16_t name) {
  RecorderEnter(recorder, name);
  RecorderStart(recorder, ticket);
}

void RecorderEndWait(struct Recorder* recorder, RecorderTicket ticket) {
  RecorderEnd(recorder, ticket);
  RecorderLeave(recorder);
}
