#include "c4d/record_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string_view>
#include <tuple>

#include "c4d/analysis_limits.h"
#include "core/quote.h"
#include "probe/record.h"

namespace aimaster::c4d {
namespace {

struct TypeOfElements {
  std::string_view name;
  uint32_t bytes = 0;
};
constexpr std::array<TypeOfElements, kRecordTypes> kTypes = [] {
  std::array<TypeOfElements, kRecordTypes> types{};
  types[kRecordByte] = {"Byte", 1};
  types[kRecordBool] = {"Bool", 1};
  types[kRecordInt8] = {"Int8", 1};
  types[kRecordUint8] = {"UInt8", 1};
  types[kRecordInt16] = {"Int16", 2};
  types[kRecordUint16] = {"UInt16", 2};
  types[kRecordInt32] = {"Int32", 4};
  types[kRecordUint32] = {"UInt32", 4};
  types[kRecordInt64] = {"Int64", 8};
  types[kRecordUint64] = {"UInt64", 8};
  types[kRecordFloat16] = {"Float16", 2};
  types[kRecordBFloat16] = {"BFloat16", 2};
  types[kRecordFloat32] = {"Float32", 4};
  types[kRecordFloat64] = {"Float64", 8};
  types[kRecordLongDouble] = {"LongDouble", 16};
  types[kRecordComplex64] = {"Complex64", 8};
  types[kRecordComplex128] = {"Complex128", 16};
  types[kRecordFloat8E4M3] = {"Float8_e4m3", 1};
  types[kRecordFloat8E5M2] = {"Float8_e5m2", 1};
  types[kRecordPair] = {"Pair", 0};
  return types;
}();

std::optional<Function> FunctionOf(uint8_t function) {
  switch (function) {
    case kRecordOtherCollective:
      return Function::kOtherCollective;
    case kRecordAllReduce:
      return Function::kAllReduce;
    case kRecordAllGather:
      return Function::kAllGather;
    case kRecordReduceScatter:
      return Function::kReduceScatter;
    case kRecordBroadcast:
      return Function::kBroadcast;
    case kRecordReduce:
      return Function::kReduce;
    case kRecordAllToAll:
      return Function::kAllToAll;
    case kRecordGather:
      return Function::kGather;
    case kRecordScatter:
      return Function::kScatter;
    case kRecordScan:
      return Function::kScan;
    case kRecordBarrier:
      return Function::kBarrier;
    case kRecordSend:
      return Function::kSend;
    case kRecordReceive:
      return Function::kReceive;
    default:
      return std::nullopt;
  }
}

std::optional<RecordSource> SourceOf(uint32_t source) {
  switch (source) {
    case kRecordMpi:
      return RecordSource::kMpi;
    case kRecordNccl:
      return RecordSource::kNccl;
    case kRecordTorch:
      return RecordSource::kTorch;
    default:
      return std::nullopt;
  }
}

// What is later than all that a clock of this kind has shown is not a time.
constexpr uint64_t kTimeMax = uint64_t{1} << 62;
Monotonic TimeOf(uint64_t ns) { return {Duration(static_cast<int64_t>(std::min(ns, kTimeMax)))}; }
std::optional<Monotonic> LatestOf(std::initializer_list<uint64_t> times) {
  const uint64_t latest = std::max(times);
  return latest == 0 ? std::nullopt : std::optional(TimeOf(latest));
}

// A text of the record, without what would disturb a terminal.
std::string TextOf(const char* text, size_t size) {
  std::string clean(text, strnlen(text, size));
  for (char& c : clean) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  }
  return clean;
}

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, Monotonic taken) : bytes_(bytes) { record_.taken = taken; }

  Result<Record> Read() && {
    if (bytes_.size() < sizeof header_) return Refuse("it is shorter than a header");
    header_ = At<RecordHeader>(0, 0);
    if (std::memcmp(header_.magic, AIMASTER_RECORD_MAGIC, sizeof header_.magic) != 0) {
      return Refuse("it does not begin as one; perhaps its process has just begun to write it");
    }
    if (header_.version != kRecordVersion) {
      return Fail(ErrorKind::kVersion, "a record of version " + std::to_string(header_.version) +
                                           ": this program reads version " + std::to_string(kRecordVersion));
    }
    const std::optional<RecordSource> source = SourceOf(header_.source);
    if (!source) return Refuse("its source is unknown");
    if (header_.header_bytes != sizeof header_ || bytes_.size() > kRecordBytesMax) return Refuse("its size is wrong");
    if (header_.file_bytes != bytes_.size()) return Refuse("it is not whole");
    const bool fits = Fits(header_.function_names_at, header_.function_names, kRecordFunctionNameBytes) &&
                      Fits(header_.communicators_at, header_.communicators, sizeof(RecordCommunicator)) &&
                      Fits(header_.operations_at, header_.operations, sizeof(RecordOperation)) &&
                      Fits(header_.threads_at, header_.threads, sizeof(RecordThread)) &&
                      Fits(header_.rings_at, uint64_t{header_.threads} * header_.ring_length, sizeof(RecordFinished));
    const bool is_small = header_.communicators <= 65'536 && header_.function_names <= 65'536 &&
                          header_.threads <= 65'536 && header_.ring_length <= 65'536;
    if (!fits || !is_small) return Refuse("its parts do not fit into it");

    record_.source = *source;
    ReadHeader();
    ReadNames();
    ReadCommunicators();
    ReadOperations();
    ReadThreads();
    return std::move(record_);
  }

 private:
  static std::unexpected<Error> Refuse(const std::string& why) {
    return Fail(ErrorKind::kUsage, "this is no record of communication: " + why);
  }

  bool Fits(uint64_t at, uint64_t count, uint64_t size) const {
    return at % 8 == 0 && at >= sizeof header_ && at <= bytes_.size() && count <= (bytes_.size() - at) / size;
  }

  template <typename T>
  T At(uint64_t begin, uint64_t index) const {
    T value;
    std::memcpy(&value, bytes_.data() + begin + index * sizeof(T), sizeof(T));
    return value;
  }

  template <typename T>
  static bool IsWhole(const T& slot, size_t words) {
    std::array<uint64_t, sizeof(T) / 8> all;
    std::memcpy(all.data(), &slot, sizeof(T));
    return all[0] == RecordCheck(all.data() + 1, words);
  }

  void ReadHeader() {
    record_.pid = header_.pid;
    if (header_.world_rank < header_.world_size && header_.world_size <= kRecordRanksMax) {
      record_.world_rank = Rank{header_.world_rank};
      record_.world_size = header_.world_size;
    }
    record_.is_finished = header_.state == kRecordFinished;
    record_.created = {TimeOf(header_.created_monotonic_ns),
                       {Duration(static_cast<int64_t>(std::min(header_.created_wall_ns, kTimeMax)))}};
    record_.losses = {.communicators = header_.communicators_dropped,
                      .operations = header_.operations_dropped,
                      .finished = header_.finished_dropped,
                      .threads = header_.threads_dropped,
                      .members = header_.members_dropped,
                      .requests = header_.requests_dropped};
    const auto difference = [](uint64_t more, uint64_t less) { return more > less ? more - less : 0; };
    record_.elsewhere = difference(header_.elsewhere_begun, header_.elsewhere_ended);
    record_.elsewhere_changed = LatestOf({header_.elsewhere_changed_ns});
    record_.other_threads_inside = difference(header_.others_entered, header_.others_left);
  }

  void ReadNames() {
    for (uint32_t i = 0; i < header_.function_names; ++i) {
      const auto* text = reinterpret_cast<const char*>(bytes_.data() + header_.function_names_at) +
                         size_t{i} * kRecordFunctionNameBytes;
      record_.names.push_back(TextOf(text, kRecordFunctionNameBytes));
    }
  }

  void ReadCommunicators() {
    places_.assign(header_.communicators, kNone);
    generations_.assign(header_.communicators, 0);
    for (uint32_t i = 0; i < header_.communicators; ++i) {
      const auto slot = At<RecordCommunicator>(header_.communicators_at, i);
      if (slot.state == kRecordUnused) continue;
      RecordedCommunicator communicator;
      if (!IsWhole(slot, kRecordCommunicatorCheckWords) || !ReadMembers(slot, communicator)) {
        ++record_.losses.torn;
        continue;
      }
      communicator.id = slot.id;
      communicator.name = TextOf(slot.name, sizeof slot.name);
      communicator.size = slot.size;
      communicator.rank = slot.rank;
      communicator.is_size_told = (slot.flags & kRecordSizeLeast) == 0;
      communicator.is_retired = slot.state == kRecordRetired;
      communicator.generation = slot.generation;
      communicator.completed = slot.completed;
      communicator.issued = std::max(slot.issued, slot.completed);  // read at different moments
      communicator.started = slot.started;
      communicator.progress = slot.progress;
      communicator.common_completed = slot.common_completed;
      communicator.common_issued = std::max(slot.common_issued, slot.common_completed);
      communicator.collective_changed = LatestOf({slot.issued_ns, slot.started_ns, slot.completed_ns});
      communicator.changed = LatestOf(
          {slot.issued_ns, slot.started_ns, slot.completed_ns, slot.common_issued_ns, slot.common_completed_ns});
      places_[i] = static_cast<uint32_t>(record_.communicators.size());
      generations_[i] = slot.generation;
      record_.communicators.push_back(std::move(communicator));
    }
  }

  static bool ReadMembers(const RecordCommunicator& slot, RecordedCommunicator& communicator) {
    if (slot.size == 0 || slot.size > kRecordRanksMax || slot.rank >= slot.size) return false;
    if (slot.member_words > kRecordMemberWords) return false;
    if (slot.members_kind == kRecordMembersUnknown) return true;
    if (slot.members_kind == kRecordMembersListed) {
      if (slot.member_words != slot.size) return false;
      for (uint32_t i = 0; i < slot.size; ++i) {
        if (slot.members[i] >= kRecordRanksMax) return false;
        communicator.members.push_back({.first = slot.members[i], .step = 0, .count = 1});
      }
      return true;
    }
    if (slot.members_kind != kRecordMembersRuns || slot.member_words % 3 != 0) return false;
    uint64_t size = 0;
    for (uint32_t i = 0; i < slot.member_words; i += 3) {
      const MemberRun run{slot.members[i], static_cast<int32_t>(slot.members[i + 1]), slot.members[i + 2]};
      if (run.count == 0 || run.count > slot.size || run.first >= kRecordRanksMax) return false;
      const int64_t last = run.first + int64_t{run.step} * (run.count - 1);
      if (last < 0 || last >= kRecordRanksMax || (run.step == 0 && run.count > 1)) return false;
      communicator.members.push_back(run);
      size += run.count;
    }
    return size == slot.size;
  }

  // The communicator that an operation names; kNone: its place has been used for another since.
  uint32_t Resolve(uint32_t reference) const {
    const uint32_t place = reference & 0xffff;
    if (place >= places_.size() || places_[place] == kNone) return kNone;
    return (generations_[place] & 0xffff) == reference >> 16 ? places_[place] : kNone;
  }

  void ReadOperations() {
    for (uint32_t i = 0; i < header_.operations; ++i) {
      const auto slot = At<RecordOperation>(header_.operations_at, i);
      if ((slot.state & 3) == kRecordFree) continue;
      const std::optional<Function> function = FunctionOf(slot.function);
      const uint32_t communicator = Resolve(slot.communicator);
      if ((slot.state & 3) != kRecordOpen || !IsWhole(slot, kRecordOperationCheckWords) || !function ||
          slot.type >= kRecordTypes || slot.name >= record_.names.size() || communicator == kNone) {
        ++record_.losses.torn;
        continue;
      }
      RecordedOperation operation{.communicator = communicator,
                                  .peer = slot.peer,
                                  .sequence = slot.sequence,
                                  .function = *function,
                                  .name = slot.name,
                                  .type = kTypes[slot.type].name,
                                  .is_blocking = (slot.flags & kRecordBlocking) != 0,
                                  .is_counted = (slot.flags & kRecordUncounted) == 0,
                                  .issued = TimeOf(slot.issued_ns)};
      const uint32_t element = kTypes[slot.type].bytes;
      if (element != 0 && (slot.flags & kRecordSizeVaries) == 0) operation.count = slot.bytes / element;
      if (slot.started_ns != 0) operation.started = TimeOf(slot.started_ns);
      record_.operations.push_back(operation);
    }
    std::ranges::sort(record_.operations, {}, [](const RecordedOperation& operation) {
      return std::tuple(operation.issued, operation.communicator, operation.sequence, operation.function,
                        operation.peer);
    });
  }

  void ReadThreads() {
    for (uint32_t i = 0; i < header_.threads; ++i) {
      const auto slot = At<RecordThread>(header_.threads_at, i);
      if (slot.owner == 0) continue;
      RecordedThread& thread = record_.threads.emplace_back();
      if (slot.inside != 0 && slot.inside - 1 < record_.names.size()) {
        thread.inside = static_cast<uint16_t>(slot.inside - 1);
      }
      thread.changed = TimeOf(slot.changed_ns);
      thread.finished = slot.finished;
      ReadRing(i, static_cast<uint32_t>(record_.threads.size() - 1));
    }
  }

  void ReadRing(uint32_t ring, uint32_t thread) {
    const auto begin = static_cast<ptrdiff_t>(record_.finished.size());
    for (uint32_t i = 0; i < header_.ring_length; ++i) {
      const auto slot = At<RecordFinished>(header_.rings_at, uint64_t{ring} * header_.ring_length + i);
      if (slot.ordinal == 0) continue;
      const std::optional<Function> function = FunctionOf(slot.function);
      if (!IsWhole(slot, kRecordFinishedCheckWords) || !function || (slot.ordinal - 1) % header_.ring_length != i ||
          slot.name >= record_.names.size()) {
        ++record_.losses.torn;
        continue;
      }
      const uint32_t place = Resolve(slot.communicator);
      if (place == kNone) continue;  // it has gone since
      const RecordedCommunicator& communicator = record_.communicators[place];
      record_.finished.push_back({.thread = thread,
                                  .ordinal = slot.ordinal,
                                  .communicator_id = communicator.id,
                                  .members = communicator.is_size_told ? communicator.size : 0,
                                  .sequence = slot.sequence,
                                  .bytes = slot.bytes,
                                  .function = *function,
                                  .name = slot.name,
                                  .is_blocking = (slot.flags & kRecordBlocking) != 0,
                                  .issued = TimeOf(slot.issued_ns),
                                  .duration = TimeOf(slot.duration_ns).since_origin});
    }
    std::sort(record_.finished.begin() + begin, record_.finished.end(),
              [](const RecordedFinished& a, const RecordedFinished& b) { return a.ordinal < b.ordinal; });
  }

  std::span<const std::byte> bytes_;
  ::RecordHeader header_{};
  Record record_;
  std::vector<uint32_t> places_;       // of each slot, its communicator in the record; kNone: there is none
  std::vector<uint32_t> generations_;  // of each slot
};

}  // namespace

std::optional<uint32_t> WorldRank(const RecordedCommunicator& communicator, uint32_t rank) {
  for (const MemberRun& run : communicator.members) {
    if (rank < run.count) return static_cast<uint32_t>(run.first + int64_t{run.step} * rank);
    rank -= run.count;
  }
  return std::nullopt;
}

std::string_view KnownType(std::string_view name) {
  const auto known = std::ranges::find(kTypes, name, &TypeOfElements::name);
  return known == kTypes.end() ? std::string_view() : known->name;
}

Result<Record> ReadRecord(std::span<const std::byte> bytes, Monotonic taken) { return Reader(bytes, taken).Read(); }

}  // namespace aimaster::c4d
