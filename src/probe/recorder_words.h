// The recorder for languages that call C with numbers alone: there a struct costs more to fill in than the operation to
// record. So an operation comes as words, and to wait for one is one call instead of two.
//
// bin/libaimaster-recorder.so exports these and the functions of recorder.h.
#ifndef AIMASTER_PROBE_RECORDER_WORDS_H_
#define AIMASTER_PROBE_RECORDER_WORDS_H_

#include "probe/recorder.h"

#ifdef __cplusplus
extern "C" {
#endif

// What an operation is, in one word: bits 0–15 its name, 16–23 RecordFunction, 24–31 RecordType, 32–63 its flags.
RecorderTicket RecorderBeginWords(struct Recorder* recorder, uint32_t communicator, uint32_t peer, uint64_t bytes,
                                  uint64_t what);

// The calling thread waits for an operation that has begun, in the call of that name; and no longer, since it has
// ended.
void RecorderBeginWait(struct Recorder* recorder, RecorderTicket ticket, uint16_t name);
void RecorderEndWait(struct Recorder* recorder, RecorderTicket ticket);

#ifdef __cplusplus
}
#endif

#endif  // AIMASTER_PROBE_RECORDER_WORDS_H_
