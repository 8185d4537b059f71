// Feeds the reader of records with anything, and what it makes of it through all that follows.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "c4d/hangs.h"
#include "c4d/record_observation.h"
#include "core/check.h"
#include "probe/record.h"

namespace {

using namespace aimaster;
using namespace aimaster::c4d;

void Follow(std::span<const std::byte> bytes) {
  const Result<Record> record = ReadRecord(bytes, {std::chrono::hours(1)});
  if (!record) return;
  for (const RecordedOperation& operation : record->operations) {
    CHECK(operation.communicator < record->communicators.size() && operation.name < record->names.size());
  }
  for (const RecordedFinished& finished : record->finished) CHECK(finished.thread < record->threads.size());
  // Another member of the same communicators.
  Record other = *record;
  for (RecordedCommunicator& communicator : other.communicators) {
    communicator.rank = communicator.size - 1 - communicator.rank;
  }
  const std::vector<RankRecord> ranks{{.rank = Rank{0}, .record = *record}, {.rank = Rank{3}, .record = other}};
  const ObservedRecords observed = ObserveRecords(ranks, 8);
  CHECK(observed.keys.size() == observed.observation.communicators.size());
  for (const MemberState& state : observed.observation.states) {
    CHECK(state.first_operation + state.operation_count <= observed.observation.operations.size());
  }
  FindHangs(observed.observation, {});
}

// A whole record whose slots are those of the input with their checks made good, since no fuzzer guesses those.
std::vector<std::byte> Repair(std::span<const std::byte> bytes, ::RecordSource source) {
  constexpr uint32_t kFew = 4;
  RecordHeader header{};
  std::memcpy(header.magic, AIMASTER_RECORD_MAGIC, sizeof header.magic);
  header.version = kRecordVersion;
  header.header_bytes = sizeof header;
  header.source = source;
  header.world_size = 8;
  header.function_names_at = sizeof header;
  header.function_names = 2;
  header.communicators_at = header.function_names_at + 2 * kRecordFunctionNameBytes;
  header.communicators = kFew;
  header.operations_at = header.communicators_at + kFew * static_cast<uint32_t>(sizeof(RecordCommunicator));
  header.operations = kFew;
  header.threads_at = header.operations_at + kFew * static_cast<uint32_t>(sizeof(RecordOperation));
  header.threads = 2;
  header.rings_at = header.threads_at + 2 * static_cast<uint32_t>(sizeof(RecordThread));
  header.ring_length = 2;
  header.file_bytes = header.rings_at + 4 * sizeof(RecordFinished);
  std::vector<std::byte> whole(header.file_bytes);
  std::memcpy(whole.data(), &header, sizeof header);
  std::memcpy(whole.data() + sizeof header, bytes.data(), std::min(bytes.size(), whole.size() - sizeof header));
  const auto mend = [&](size_t at, size_t size, size_t words) {
    std::vector<uint64_t> slot(size / 8);
    std::memcpy(slot.data(), whole.data() + at, size);
    slot[0] = RecordCheck(slot.data() + 1, words);
    std::memcpy(whole.data() + at, slot.data(), 8);
  };
  for (uint32_t i = 0; i < kFew; ++i) {
    mend(header.communicators_at + i * sizeof(RecordCommunicator), sizeof(RecordCommunicator),
         kRecordCommunicatorCheckWords);
    mend(header.operations_at + i * sizeof(RecordOperation), sizeof(RecordOperation), kRecordOperationCheckWords);
    mend(header.rings_at + i * sizeof(RecordFinished), sizeof(RecordFinished), kRecordFinishedCheckWords);
  }
  return whole;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  Follow(bytes);
  Follow(Repair(bytes, kRecordMpi));
  Follow(Repair(bytes, kRecordNccl));
  return 0;
}
