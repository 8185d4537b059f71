// Reading a record (probe/record.h): a copy of the file of one process, taken while it goes on writing, becomes a
// struct of counters and operations.
//
// A copy is like a photograph of a street: what moved is blurred. A slot that was being written is known by its check,
// left out and counted; counters are taken one by one, so that one may be an operation older than the next. Copying
// again until nothing is blurred was rejected: of a busy process that may be never.
//
// The bytes may be anybody's. Whatever they are, reading them ends, within the limits below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "c4d/observation.h"
#include "core/error.h"
#include "core/ids.h"
#include "core/time.h"

namespace aimaster::c4d {

inline constexpr size_t kRecordBytesMax = 16 << 20;
inline constexpr uint32_t kRecordRanksMax = 1 << 20;  // of a world, and of a communicator

enum class RecordSource : uint8_t { kMpi, kNccl, kTorch };

// Ranks of the world: first, first + step, …
struct MemberRun {
  uint32_t first = 0;
  int32_t step = 0;
  uint32_t count = 0;
  bool operator==(const MemberRun&) const = default;
};

struct RecordedCommunicator {
  uint64_t id = 0;              // 0: not known
  std::string name;             // or empty
  uint32_t size = 0, rank = 0;  // of this process in it
  bool is_size_told = true;     // false: it has at least so many members
  bool is_retired = false;
  uint32_t generation = 0;         // how often the place was used; more than once: what was there before is lost
  std::vector<MemberRun> members;  // in the order of their ranks in it; empty: not recorded
  uint64_t issued = 0, started = 0, completed = 0, progress = 0;
  uint64_t common_issued = 0, common_completed = 0;  // from rank to rank
  std::optional<Monotonic> changed;                  // when the last of all those went up
  std::optional<Monotonic> collective_changed;       // when a counter of collectives did
};

// One that was issued and has not completed.
struct RecordedOperation {
  uint32_t communicator = 0;  // in communicators
  uint32_t peer = 0;          // or root, by rank in the communicator; kNone: there is none, or anybody
  uint64_t sequence = 0;      // 0: it has none
  uint64_t count = kUnknown;  // elements; kUnknown where members may differ
  Function function = Function::kOtherCollective;
  uint16_t name = 0;      // in names
  std::string_view type;  // or empty
  bool is_blocking = false, is_counted = true;
  Monotonic issued;
  std::optional<Monotonic> started;
};

struct RecordedFinished {
  uint32_t thread = 0;
  uint64_t ordinal = 0;  // in the thread's ring, from 1: so that who reads again knows what is new
  uint64_t communicator_id = 0;
  uint32_t members = 0;  // of it; 0: not told
  uint64_t sequence = 0, bytes = 0;
  Function function = Function::kOtherCollective;
  uint16_t name = 0;
  bool is_blocking = false;
  Monotonic issued;
  Duration duration{};  // since it was started, or issued where no start is told
};

struct RecordedThread {
  std::optional<uint16_t> inside;  // the name of the call that it is in
  Monotonic changed;               // when it last entered or left one
  uint64_t finished = 0;           // operations that went into its ring, of which the ring holds the last
};

// What is not in a record although it happened.
struct RecordLosses {
  uint64_t communicators = 0, operations = 0, finished = 0, threads = 0, members = 0, requests = 0;
  uint32_t torn = 0;  // slots that were being written when the copy was taken, or are damaged
};

struct Record {
  RecordSource source = RecordSource::kMpi;
  uint64_t pid = 0;
  std::optional<Rank> world_rank;
  uint32_t world_size = 0;  // 0: not told yet
  bool is_finished = false;
  Moment created;
  Monotonic taken;  // when the copy was
  std::vector<std::string> names;
  std::vector<RecordedCommunicator> communicators;
  std::vector<RecordedOperation> operations;  // as they were issued
  std::vector<RecordedThread> threads;        // those that are owned
  std::vector<RecordedFinished> finished;     // by thread and ordinal
  RecordLosses losses;
  uint64_t elsewhere = 0;  // operations in which it is and of which nothing is recorded
  std::optional<Monotonic> elsewhere_changed;
  uint64_t other_threads_inside = 0;
};

// The rank in the world of a member, by its rank in the communicator.
std::optional<uint32_t> WorldRank(const RecordedCommunicator& communicator, uint32_t rank);

// The name of a type of elements, as operations of records have it; empty: there is none of that name.
std::string_view KnownType(std::string_view name);

// Refused: what is no record, or one of another version, or not whole.
Result<Record> ReadRecord(std::span<const std::byte> bytes, Monotonic taken);

}  // namespace aimaster::c4d
