// Processes that write records, as tests see them: a recorder in a folder of its own, and copies of its file.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "c4d/record_reader.h"
#include "core/check.h"
#include "probe/recorder.h"

namespace aimaster::c4d {

inline Monotonic NowMonotonic() { return {std::chrono::steady_clock::now().time_since_epoch()}; }

inline std::vector<std::byte> CopyOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

// The names that the functions of these tests have.
enum TestName : uint16_t { kTestAllReduce, kTestIbarrier, kTestSend, kTestReceive, kTestWait, kTestFence };
inline constexpr const char* kTestNames[] = {"MPI_Allreduce", "MPI_Ibarrier", "MPI_Send",
                                             "MPI_Recv",      "MPI_Wait",     "MPI_Win_fence"};

// A process of a job; its file is there as long as it is.
class TestProcess {
 public:
  explicit TestProcess(::RecordSource source = kRecordMpi) {
    std::string folder = std::filesystem::temp_directory_path() / "record-XXXXXX";
    CHECK(mkdtemp(folder.data()) != nullptr);
    folder_ = folder;
    setenv(AIMASTER_RECORD_FOLDER, folder.c_str(), 1);
    recorder_ = RecorderOpen(source, kTestNames, std::size(kTestNames));
    unsetenv(AIMASTER_RECORD_FOLDER);
  }
  TestProcess(const TestProcess&) = delete;
  TestProcess& operator=(const TestProcess&) = delete;
  ~TestProcess() { std::filesystem::remove_all(folder_); }

  Recorder* recorder() { return recorder_; }
  std::filesystem::path file() const { return std::filesystem::directory_iterator(folder_)->path(); }
  std::vector<std::byte> Copy() const { return CopyOf(file()); }
  // As if it had been copied so much later.
  Record Read(Duration later = {}) const {
    Result<Record> record = ReadRecord(Copy(), NowMonotonic() + later);
    CHECK(record.has_value());
    return std::move(*record);
  }

  // A world of ranks 0 … size − 1.
  uint32_t JoinWorld(uint32_t rank, uint32_t size) {
    RecorderSetWorld(recorder_, rank, size);
    std::vector<uint32_t> members(size);
    for (uint32_t i = 0; i < size; ++i) members[i] = i;
    return RecorderAddCommunicator(recorder_, 1, "MPI_COMM_WORLD", members.data(), size, rank);
  }
  RecorderTicket Begin(uint32_t communicator, TestName name, uint32_t flags, uint32_t peer = RECORD_NONE) {
    const uint8_t function = name == kTestAllReduce  ? kRecordAllReduce
                             : name == kTestIbarrier ? kRecordBarrier
                             : name == kTestSend     ? kRecordSend
                                                     : kRecordReceive;
    const bool is_common = function == kRecordSend || function == kRecordReceive;
    const RecorderOperation operation{.communicator = communicator,
                                      .peer = peer,
                                      .bytes = 64,
                                      .flags = flags | (is_common ? uint32_t{kRecordPointToPoint} : 0),
                                      .name = name,
                                      .function = function,
                                      .type = kRecordFloat64};
    return RecorderBegin(recorder_, &operation);
  }
  void Complete(uint32_t communicator, TestName name, int times = 1, uint32_t peer = RECORD_NONE) {
    for (int i = 0; i < times; ++i) RecorderEnd(recorder_, Begin(communicator, name, kRecordBlocking, peer));
  }

 private:
  std::filesystem::path folder_;
  Recorder* recorder_ = nullptr;
};

}  // namespace aimaster::c4d
