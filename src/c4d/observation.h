// Observation: what is known about the communication of all ranks of a job at one moment. Everything that looks into
// communication ends in it (Flight Recorder dumps, the probes in running ranks, the simulator), and every verdict
// begins with it; neither knows the other.
//
//   ranks          one for each rank of the job; who was not seen is in it too, and is nobody's culprit for that alone
//   communicators  who belongs to which group
//   states         one for each rank and communicator that it was seen in: three counters, when they last went up, and
//                  the operations that have been issued and have not completed
//
// Think of people who pass through the doors of many rooms, some alone and some only all together: who was let in
// where, who has come out, and who has been asked for at a door and is in no room at all.
//
// Times are ages, read on the rank's own clock at the moment of the observation: "issued 14 s ago". So nothing here
// asks clocks of different machines to agree. An age that is not known is kNoAge.
//
// Large: 16,384 ranks in five groups each are 82,000 states. So rows are small, texts stand in one table, and the
// operations of all states in one list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/time.h"

namespace aimaster::c4d {

// Whether the device, or the progress of the library, has begun with an operation.
enum class Start : uint8_t { kUnknown, kNotStarted, kStarted };

inline constexpr Duration kNoAge = Duration::min();
inline constexpr uint64_t kUnknown = UINT64_MAX;

// What an operation does. Point-to-point operations go between two ranks; all others are collectives, which every
// member of the communicator has to issue in the same order.
enum class Function : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kGather,
  kScatter,
  kScan,
  kBarrier,
  kSend,
  kReceive,
  kOtherCollective,  // `name` tells it from others
};
std::string_view Name(Function function);  // "AllReduce"
inline bool IsPointToPoint(Function function) { return function == Function::kSend || function == Function::kReceive; }

// One that was issued and has not completed.
struct Operation {
  uint64_t sequence = 0;      // its number in the communicator, as each member counts; of point-to-point: among those
  uint64_t count = kUnknown;  // elements that this rank gives; kUnknown where members may differ, or it is not told
  Duration age = kNoAge;      // since it was issued
  Rank peer{UINT32_MAX};      // point-to-point: the other one; else the root, where there is one
  uint16_t name = 0;          // in texts: as the source calls it, "nccl:_all_gather_base"
  uint16_t type = 0;          // in texts: of the elements, "BFloat16"
  Function function = Function::kOtherCollective;
  Start start = Start::kUnknown;
};

struct Communicator {
  std::string name;           // what all members call it, unique within the job
  std::string description;    // what the program calls the group, "TENSOR_MODEL_PARALLEL_GROUP"; or empty
  std::vector<Rank> members;  // ascending
};

// A rank's part in a communicator. Counters are those of collectives, and count from the same point on all members.
struct MemberState {
  uint32_t communicator = 0;  // in communicators
  Rank rank{};
  uint64_t issued = 0;
  uint64_t started = kUnknown;
  uint64_t completed = 0;
  uint64_t progress = kUnknown;         // of the transport within the current operation; only members of one compare
  Duration idle = kNoAge;               // since any of the counters went up
  uint32_t first_operation = 0;         // in operations: those outstanding, the oldest first
  uint32_t operation_count = 0;         // may be fewer than issued − completed: a source keeps only so many
  bool carries_point_to_point = false;  // then its members do not go through the same operations
};

// Why a process does nothing, where its node tells.
enum class Hold : uint8_t {
  kFree,     // it runs or sleeps, as processes that wait do too; or that is not told
  kStopped,  // by a signal, or by a debugger
  kKernel,   // in the kernel, and can't be interrupted: a driver, a device, a file server
};

struct RankState {
  bool is_observed = false;   // false: no data of it, or none that is whole
  bool is_alive = true;       // false: its process is known to have ended
  Duration outside = kNoAge;  // since it last left, or entered, any operation; kNoAge: not told
  // Its source has lost some of what it issued, as a ring that was written over: among that may be operations which are
  // outstanding, and are not in this observation. Of collectives the counters tell that too.
  bool has_lost_operations = false;
  Hold hold = Hold::kFree;
};

struct Observation {
  std::vector<RankState> ranks;
  std::vector<Communicator> communicators;
  std::vector<MemberState> states;     // by communicator, then rank
  std::vector<Operation> operations;   // of all states, each state's together
  std::vector<std::string> texts{""};  // 0 is empty

  std::string_view Text(uint16_t index) const { return texts[index]; }
};

}  // namespace aimaster::c4d
