// Every bound and every rhythm of the agent, in one place, with the relations between them asserted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/failure.h"
#include "shim/launch_format.h"
#include "wire/limits.h"

namespace aimaster::agent {

using namespace std::chrono_literals;

// Frames from the master.
inline constexpr uint32_t kIndexMax = 10'000'000;  // instances, attempts, rounds, ranks of one job
inline constexpr size_t kRanksPerInstanceMax = 1024;
inline constexpr size_t kArgumentsMax = kLaunchMaxStrings;
inline constexpr size_t kVariablesMax = kLaunchMaxStrings;
inline constexpr size_t kStringMaxBytes = 128 << 10;  // one argument or variable; the kernel takes no more either

// Small files that we read back: our own, the shim's, a framework's.
inline constexpr size_t kSmallFileMaxBytes = 1 << 20;
inline constexpr size_t kErrorFileMaxBytes = 64 << 10;
static_assert(kErrorTextMaxBytes < kErrorFileMaxBytes);

// The master.
inline constexpr auto kMasterSilentMax = 10s;  // nothing heard for so long: dial again
inline constexpr auto kGoodbyeMax = 500ms;     // for what is queued, when the agent ends
inline constexpr auto kWelcomeMax = 5s;        // from the handshake to the Welcome
inline constexpr auto kBackoffFirst = 20ms;
inline constexpr auto kBackoffMax = 2s;
inline constexpr auto kAddressPoll = 20ms;           // how soon a new master.json is seen while waiting to dial
inline constexpr auto kOrphanTimeoutDefault = 600s;  // until a master has told its own
inline constexpr auto kLeasePaceMax = 1s;            // how often it is renewed and looked at, at least
inline constexpr size_t kHeartbeatQueueMaxBytes = 256 << 10;  // more unsent than this: heartbeats are dropped
static_assert(kHeartbeatInterval * 3 < kMasterSilentMax && kBackoffFirst < kBackoffMax);

// Waiting for files of the shim.
inline constexpr auto kPollFirst = 200us;
inline constexpr auto kPollFast = 2ms;
inline constexpr auto kPollFastFor = 100ms;
inline constexpr auto kPollSlow = 20ms;
inline constexpr auto kKeptExitsEvery = 500ms;  // an exit file this late is asked for in the shim's memory
static_assert(kPollFirst < kPollFast && kPollFast < kPollSlow);

// Descriptors. An attempt holds its shim, and of each rank the process and two output files; the rest is for what is
// opened for a moment.
inline constexpr size_t kDescriptorsPerAttempt = 1;
inline constexpr size_t kDescriptorsPerRank = 3;
inline constexpr size_t kDescriptorsSpare = 8;
inline constexpr size_t kSdkConnectionsMax = 64;  // of ranks that speak to us; the oldest gives way
inline constexpr auto kProcessPoll = 200ms;       // of one for which there is no descriptor

// What ranks say.
inline constexpr size_t kMessageMaxBytes = 4096;  // of a message for people
inline constexpr uint32_t kMessagesAtOnce = 10;   // of one rank; then one in each kMessageEvery
inline constexpr auto kMessageEvery = 1s;
inline constexpr uint32_t kMessagesSoon = 100;  // of one rank; then one in each kMessageSeldom: each is kept for good
inline constexpr auto kMessageSeldom = 10s;
static_assert(kMessageSeldom <= kMessagesAtOnce * kMessageEvery);
inline constexpr size_t kMessagesKeptMax = 256;    // that the master has not acknowledged
inline constexpr auto kCheckpointPace = 10s;       // each is made durable; of more, the newest
inline constexpr auto kHangSettingPace = 100ms;    // it is passed on and kept at once, but no more often than this
inline constexpr auto kSaidAtMost = 3600s;         // ago: what claims to be older was told by another clock
inline constexpr int64_t kHangIntervalOffMs = -1;  // HangSetting.interval_ms
inline constexpr int64_t kHangIntervalOwnMs = 0;   // the job's own
inline constexpr double kHangSecondsMax = 1e9;
static_assert(kMessageMaxBytes <= kErrorTextMaxBytes && kHangSettingPace < kHeartbeatInterval);

// Starting a shim where processes or memory are used up.
inline constexpr auto kSpawnPatience = 3s;
inline constexpr auto kSpawnRetry = 100ms;

// A shim that has not taken an order from the kernel's hands for so long is deaf; then it is told to stop at once, and
// at last killed. A healthy one takes it within microseconds.
inline constexpr auto kShimDeafToStop = 15s;
inline constexpr auto kShimDeafToStopAtOnce = 3s;

// Sweeping after a lost shim.
inline constexpr auto kSweepFirst = 5ms;
inline constexpr auto kSweepMax = 500ms;

// What can't be read or written now is tried again this often. An attempt of which it can't be read for long is judged
// by what else is known of it.
inline constexpr auto kFileRetry = 500ms;
inline constexpr auto kUnreadableMax = 5s;

// Evidence.
inline constexpr auto kCoreDumpPoll = 100ms;
inline constexpr auto kCoreDumpWatchFor = 60s;
inline constexpr auto kEvidenceDrainMax = 2s;  // for exit files of ranks that are already dead

// MPI. The end of one of its ranks counts for that of the launcher when it was at most so long before.
inline constexpr auto kMpiExitMax = 30s;
inline constexpr auto kMpiBurstMax = 5s;  // between two ends of ranks of one mpirun
static_assert(kMpiBurstMax < kMpiExitMax);
inline constexpr int kMpiHostsMax = 16'384;

// Room on the disk. The watermark is a fiftieth of the file system, within these.
inline constexpr uint64_t kDiskWatermarkMin = 1 << 20;
inline constexpr uint64_t kDiskWatermarkMax = 64 << 20;
inline constexpr uint64_t kDiskLookFactor = 8;  // watermarks from which on it is looked at often
inline constexpr int64_t kDiskReserveBytes = 1 << 20;
inline constexpr uint64_t kScarceLogMaxBytes = 1 << 20;  // of each output file, while the disk is nearly full

// Reading what ranks print. What is said last may be why a rank died: the last bytes, however old, and what was said
// lately, however much followed.
inline constexpr uint64_t kLogTailMaxBytes = 64 << 10;
inline constexpr auto kSaidJustNow = 60s;               // and up to twice that
inline constexpr uint64_t kScanBehindMax = 4 << 20;     // of one file; what is older is passed over
inline constexpr uint64_t kScanOnAdoption = 256 << 10;  // of a file that another agent had read
inline constexpr uint64_t kScanPerLook = 8 << 20;       // of all files: nothing else happens meanwhile
inline constexpr size_t kScanChunkBytes = 256 << 10;    // read at a time
inline constexpr size_t kScanStartBytes = 4 << 10;      // in which a line should begin
static_assert(kErrorTextMaxBytes < kLogTailMaxBytes && kLogTailMaxBytes <= kScanOnAdoption &&
              kScanOnAdoption <= kScanBehindMax && kScanBehindMax <= kScanPerLook);

// Records of communication.
inline constexpr size_t kRecordsMax = 4096;  // processes of this node
inline constexpr size_t kRecordsMessageBytes = 512
                                               << 10;  // a message has 1 MiB, the record of a process some kilobytes
inline constexpr auto kNewRecordFolder = 10min;
inline constexpr auto kStuckInKernel = 5s;  // at every look
// Collectives that are told in a second: of a communicator at least and at most so many, of all ranks together about.
inline constexpr double kSampleMin = 4;
inline constexpr double kSampleMax = 32;
inline constexpr double kSampleOfAll = 50'000;
inline constexpr auto kRateOver = 500ms;                // how many there are in less than that tells no rate
inline constexpr int kFinishedGroupsMax = 64;           // of a process, in a heartbeat
inline constexpr int kFinishedOfGroupMax = 64;          // of each
inline constexpr size_t kFinishedBytesMax = 384 << 10;  // of a heartbeat

// Logs.
inline constexpr auto kLogTick = 1s;
inline constexpr auto kLogTickFast = 100ms;
inline constexpr auto kLogUnseen = 3s;  // nothing was looked at for so long: we were not there
inline constexpr uint64_t kLogFastBytesPerSecond = 50'000'000;
inline constexpr int kRatesPerSecondMax = 20;          // looks closer together say little about how much is printed
inline constexpr uint64_t kPunchStepBytes = 64 << 20;  // freed in one go: more would hold up everything else
static_assert(kLogTick < kLogUnseen);
inline constexpr auto kReadyPollFirst = 2ms;
inline constexpr auto kReadyPollFirstFor = 100ms;
inline constexpr auto kReadyPollNext = 20ms;
inline constexpr auto kReadyPollNextFor = 5s;

// Ports.
inline constexpr int kPortTriesMax = 100;    // for each
inline constexpr uint32_t kPortsMax = 4096;  // of one reservation
inline constexpr uint16_t kPortLowest = 10'000;
inline constexpr auto kPortPollFirst = 50ms;
inline constexpr auto kPortPollMax = 10s;  // the table of all sockets is read each time, and nothing waits for it

// Clock: samples kept, and what "unknown" means in a field that has no other word for it.
inline constexpr size_t kClockSamples = 16;
inline constexpr auto kClockUncertaintyUnknown = 3600s;
inline constexpr int kClockFirstHeartbeats = 4;  // sent right after a Welcome, to know the offset early
inline constexpr auto kClockFirstInterval = 10ms;

}  // namespace aimaster::agent
