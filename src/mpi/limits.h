// Every bound of the remote start of MPI.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace aimaster::mpi {

using namespace std::chrono_literals;

inline constexpr size_t kFrameMaxBytes = 1 << 20;  // a command; pieces of output are smaller
inline constexpr size_t kOutputPieceBytes = 32 << 10;
inline constexpr size_t kTokenMaxBytes = 4096;
inline constexpr int kCallsMax = 256;  // at a time, of a station; mpirun needs one

// mpirun starts as soon as the stations do, on machines that may be slower.
inline constexpr auto kReachMax = 60s;
inline constexpr auto kReachTryMax = 5s;
inline constexpr auto kReachPauseFirst = 20ms;
inline constexpr auto kReachPauseMax = 1s;
inline constexpr auto kFirstFrameMax = 10s;  // from a connection to its command; strangers get no longer
inline constexpr auto kSendMax = 60s;        // a peer that takes nothing for so long is gone
inline constexpr auto kEndMax = 5s;          // from SIGTERM to SIGKILL, for a daemon whose mpirun is gone
inline constexpr auto kDrainMax = 1s;        // for the last words of a daemon that has ended
static_assert(kReachTryMax < kReachMax && kReachPauseMax < kReachTryMax);

}  // namespace aimaster::mpi
