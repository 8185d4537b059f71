// Recovery: how a master comes to know what its predecessor knew.
//
// Think of a new doctor on the ward: the chart counts. Examining the patient again is a check on the chart, and where
// the findings differ, the treatment that was begun is not undone; the chart gets a note.
//
// The state is read from the journal's rows, so it costs what the job is large and not how long it has run. Then the
// inputs behind the last snapshot are stepped again and compared with what was decided. Making the state by stepping
// alone was rejected: an engine that decides differently would believe in a job that there is not, and a bug in it
// would bring every master down at the same input again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/error.h"
#include "engine/engine.h"
#include "journal/crash_mark.h"
#include "journal/journal.h"

namespace aimaster {

struct Recovered {
  Engine engine;
  std::optional<Moment> last;  // when the last input was; none: a new job
  int64_t inputs = 0;
  int64_t checked = 0;        // of them: stepped again
  std::string engine_change;  // for MasterStarted: what this engine would have decided otherwise; empty: nothing
  std::string skipped_check;  // for the log: why nothing was checked, or empty
};

// `mark` remembers the input that is being stepped, so that an engine that crashes over the check is not asked again.
// kVersion: a journal of version 1, which holds no state, and whose inputs this engine decides differently.
Result<Recovered> RecoverJob(Journal& journal, CrashMark& mark);

}  // namespace aimaster
