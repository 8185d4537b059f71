// MasterClock: the job's time. Durations must go on over a reboot, when the machine's monotonic clock starts again.
#pragma once

#include "core/time.h"

namespace aimaster {

// One of the few places that read a clock. Any thread.
class MasterClock {
 public:
  Moment Now() const;
  // The journal ends at this moment: time goes on from there, by the wall clock where the monotonic one was reset.
  void ContinueAfter(const Moment& last);

 private:
  Duration shift_{};  // job time minus this boot's monotonic time
};

}  // namespace aimaster
