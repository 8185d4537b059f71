// Feeds the reader of dumps with anything, once alone and once among the dumps of a small job, and the analysis with
// what comes of it; and the reader of a whole folder, of whatever kind the file may be.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "c4d/dump_collection.h"
#include "c4d/folder_reading.h"
#include "c4d/hangs.h"
#include "core/check.h"
#include "core/quote.h"

namespace {

constexpr std::string_view kNeighbour =
    R"({"version":"2.9","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1]"}},)"
    R"("pg_status":{"0":{"last_enqueued_collective":8,"last_started_collective":-1,"last_completed_collective":7}},)"
    R"("entries":[{"record_id":9,"pg_id":0,"process_group":["0","default_pg"],"collective_seq_id":8,)"
    R"("profiling_name":"nccl:all_reduce","state":"scheduled","time_created_ns":1758610505592849034}]})";

void CheckFolder(std::string_view bytes) {
  using namespace aimaster;
  using namespace aimaster::c4d;
  FolderReading folder;
  folder.Add("one", bytes);
  folder.Add("half", bytes.substr(0, bytes.size() / 2));
  const FolderFindings findings = folder.Conclude(std::chrono::seconds(60), {});
  const Observation& observation = findings.reading.observation;
  for (const DumpNote& note : findings.reading.notes) CHECK(IsPrintable(note.reason));
  for (const Verdict& verdict : findings.verdicts) {
    for (const Rank rank : verdict.ranks) CHECK(Value(rank) < observation.ranks.size());
    CHECK(!verdict.communicator || *verdict.communicator < observation.communicators.size());
    for (const std::string& sentence : verdict.evidence) CHECK(IsPrintable(sentence));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aimaster;
  using namespace aimaster::c4d;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckFolder(bytes);
  for (const bool has_neighbour : {false, true}) {
    DumpCollection collection;
    collection.Add("dump_1", bytes);
    collection.Add("dump", bytes.substr(0, size / 2));
    if (has_neighbour) collection.Add("dump_0", kNeighbour);
    const DumpReading reading = collection.Take(std::chrono::seconds(10));
    const Observation& observation = reading.observation;
    uint64_t operations = 0;
    for (const MemberState& state : observation.states) {
      CHECK(Value(state.rank) < observation.ranks.size() && state.communicator < observation.communicators.size());
      CHECK(state.completed <= state.issued && state.first_operation == operations);
      operations += state.operation_count;
    }
    CHECK(operations == observation.operations.size());
    for (const Operation& operation : observation.operations) {
      CHECK(IsPrintable(observation.Text(operation.name)) && IsPrintable(observation.Text(operation.type)));
    }
    for (const Communicator& communicator : observation.communicators) {
      CHECK(IsPrintable(communicator.name) && std::ranges::is_sorted(communicator.members));
    }
    for (const Verdict& verdict : FindHangs(observation, {})) {
      for (const Rank rank : verdict.ranks) CHECK(Value(rank) < observation.ranks.size());
    }
  }
  return 0;
}
