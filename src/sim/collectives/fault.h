// Fault: what goes wrong in a simulated training, and what a verdict on it has to be.
//
//   HostBefore     the host stops before it calls an operation: sleeps, waits for data, holds the interpreter's lock
//                  → RankNonCommHang of the rank.
//   HostAhead      the host stops after it has called several that the device had not reached → the same: what was
//                  called gets done, and then the rank is missed.
//   DeviceInside   the device is stuck in an operation that it has begun → RankCommHang: of the rank, where its
//                  progress or its count of completed operations is behind that of the others; else of the group.
//   DeviceBefore   the device never begins an operation that the host has called → RankNonCommHang of the rank. Without
//                  `started` this cannot be told from being stuck inside: RankCommHang of the rank or its group is
//                  right.
//   Stopped        a signal stops the process in the midst of an operation, its host and its part of the transfer →
//                  as DeviceInside.
//   Skipped        the rank leaves out a collective, so that its numbers lag → CollectiveMismatch where the next one
//                  differs, or CyclicWait: it waits elsewhere for those who wait for it. The rank has to be in it.
//   Mismatch       the rank calls another operation, size, type or root → CollectiveMismatch, naming the rank where
//   most
//                  members agree with each other. Where what it called is not among the operations that the observer
//                  sees: RankCommHang of the group. Another size or type alone proves nothing, as libraries take it:
//                  there it has to be seen too that all have come. Sizes of an AllGather may differ by right.
//   OppositeOrder  the rank enters two groups in the other order than those who share both → CyclicWait with the rank
//                  in it. Where both operations are called at once, and `started` is not seen: RankCommHang of a group.
//   SlowRank, SlowLink  no hang: nobody is accused of one.
//
// For all: a culprit who was not observed needs no verdict, nor does one that itself waits for another culprit. What
// cannot be known is not required:
//
//   that all have come to an operation of which a member is not observed
//   without `started`, and without ages or with some operations not kept, which of several groups, all of whose members
//   have called their operation, keeps the others; without any ages groups beside the right one are no false accusation
//   which send and receive two ranks stand in, where only the newest operations are kept: no counter tells of those
//   that a device has begun nothing, where sends or receives of its own are not kept: it may be waiting in one of those
//   a circle, where some ranks are not observed
//   who is waited for in a send or receive alone that is not kept
//   since when a device has been in an operation: only that it has begun it, and since when its rank has done nothing
//   in that group, which may be shorter, as its host goes on calling; a hang is no hang before that is the timeout a
//   host that has stopped, before it has been outside for the timeout itself, however long others have waited for it
//
// Without `started`, a rank waits from its call on; with it, from when its device has begun.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "sim/collectives/layout.h"

namespace aimaster::sim::collectives {

enum class FaultKind : uint8_t {
  kHostBefore,
  kHostAhead,
  kDeviceInside,
  kDeviceBefore,
  kStopped,
  kSkipped,
  kMismatch,
  kOppositeOrder,
  kSlowRank,
  kSlowLink,
};
inline constexpr size_t kFaultKinds = 10;
std::string_view Name(FaultKind kind);  // "HostBefore"

// Which part of a mismatched operation differs.
enum class Difference : uint8_t { kFunction, kCount, kType, kRoot };

struct Fault {
  FaultKind kind{};
  uint32_t rank = 0;
  uint64_t step = 0;   // of the rank's program
  uint32_t index = 0;  // in the step: the instruction at which it happens
  Difference difference{};
  bool others_complete = false;  // DeviceInside: the others got their part of the operation
  bool shows_behind = false;     // DeviceInside, Stopped: the transport's progress tells who is stuck

  // What became of it.
  std::optional<Duration> fired;
  uint32_t group = kNone;  // in which it happened, or would have
  uint64_t sequence = 0;
};

}  // namespace aimaster::sim::collectives
