// CHECK: for what only our own bug can cause. It stops the process; the journal brings the job back. In every build,
// since a wrong decision costs more than a restart of the master.
#pragma once

namespace aimaster {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace aimaster

#define CHECK(condition) ((condition) ? static_cast<void>(0) : ::aimaster::CheckFailed(__FILE__, __LINE__, #condition))
