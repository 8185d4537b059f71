#include "c4d/record_reader.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "c4d/record_harness.h"

namespace aimaster::c4d {
namespace {

using namespace std::chrono_literals;

TEST(Record, TellsWhatAProcessHasDoneAndWhereItIs) {
  TestProcess process;
  const uint32_t world = process.JoinWorld(2, 4);
  process.Complete(world, kTestAllReduce, 3);
  process.Complete(world, kTestSend, 2, 1);
  const RecorderTicket open = process.Begin(world, kTestAllReduce, kRecordBlocking);

  const Record record = process.Read(14s);
  EXPECT_EQ(record.source, RecordSource::kMpi);
  EXPECT_EQ(record.pid, static_cast<uint64_t>(getpid()));
  EXPECT_EQ(record.world_rank, Rank{2});
  EXPECT_EQ(record.world_size, 4u);
  ASSERT_EQ(record.communicators.size(), 1u);
  const RecordedCommunicator& communicator = record.communicators[0];
  EXPECT_EQ(communicator.name, "MPI_COMM_WORLD");
  EXPECT_EQ(communicator.members, std::vector<MemberRun>({{.first = 0, .step = 1, .count = 4}}));
  EXPECT_EQ(communicator.issued, 4u);
  EXPECT_EQ(communicator.completed, 3u);
  EXPECT_EQ(communicator.common_issued, 2u);
  EXPECT_EQ(communicator.common_completed, 2u);
  ASSERT_EQ(record.operations.size(), 1u);
  const RecordedOperation& operation = record.operations[0];
  EXPECT_EQ(operation.sequence, 4u);
  EXPECT_EQ(operation.function, Function::kAllReduce);
  EXPECT_EQ(record.names[operation.name], "MPI_Allreduce");
  EXPECT_EQ(operation.count, 8u);
  EXPECT_EQ(operation.type, "Float64");
  EXPECT_TRUE(operation.is_blocking);
  EXPECT_GE(record.taken - operation.issued, 14s);
  EXPECT_LT(record.taken - operation.issued, 40s);
  ASSERT_EQ(record.threads.size(), 1u);
  EXPECT_EQ(record.threads[0].inside, kTestAllReduce);
  ASSERT_EQ(record.finished.size(), 5u);
  EXPECT_EQ(record.finished[0].function, Function::kAllReduce);
  EXPECT_EQ(record.finished[4].function, Function::kSend);
  EXPECT_EQ(record.finished[4].ordinal, 5u);
  EXPECT_EQ(record.losses.torn, 0u);

  RecorderEnd(process.recorder(), open);
  const Record after = process.Read();
  EXPECT_TRUE(after.operations.empty());
  EXPECT_EQ(after.communicators[0].completed, 4u);
  EXPECT_FALSE(after.threads[0].inside.has_value());
}

TEST(Record, IsWrittenOnlyWhereItIsAskedFor) {
  unsetenv(AIMASTER_RECORD_FOLDER);
  EXPECT_EQ(RecorderOpen(kRecordMpi, kTestNames, 1), nullptr);
  setenv(AIMASTER_RECORD_FOLDER, "/nowhere/at/all", 1);
  EXPECT_EQ(RecorderOpen(kRecordMpi, kTestNames, 1), nullptr);
  setenv(AIMASTER_RECORD_FOLDER, "relative", 1);
  EXPECT_EQ(RecorderOpen(kRecordMpi, kTestNames, 1), nullptr);
  unsetenv(AIMASTER_RECORD_FOLDER);
  // And with nothing to write to, all calls are harmless.
  const RecorderOperation operation{};
  EXPECT_EQ(RecorderBegin(nullptr, &operation), RECORDER_NO_TICKET);
  RecorderEnd(nullptr, 0);
  RecorderEnter(nullptr, 0);
  RecorderLeave(nullptr);
  RecorderFinish(nullptr);
}

TEST(Record, BelongsToItsOwnerAlone) {
  TestProcess process;
  struct stat status{};
  ASSERT_EQ(stat(process.file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(status.st_size, kRecordFileBytes);
}

TEST(Record, IsNotTouchedByAChild) {
  TestProcess process;
  const uint32_t world = process.JoinWorld(0, 4);
  process.Complete(world, kTestAllReduce);
  const pid_t child = fork();
  if (child == 0) {
    process.Complete(world, kTestAllReduce, 5);
    RecorderFinish(process.recorder());
    _exit(0);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(process.Read().communicators[0].issued, 1u);
  EXPECT_FALSE(process.Read().is_finished);
  process.Complete(world, kTestAllReduce);
  EXPECT_EQ(process.Read().communicators[0].issued, 2u);
}

TEST(Record, HoldsMembersWhateverTheirOrder) {
  TestProcess process;
  const auto read = [&](const std::vector<uint32_t>& members) {
    const uint32_t place =
        RecorderAddCommunicator(process.recorder(), members.size(), "", members.data(), members.size(), 0);
    const Record record = process.Read();
    RecorderRetireCommunicator(process.recorder(), place);
    std::vector<uint32_t> found;
    const RecordedCommunicator& communicator = record.communicators.back();
    for (uint32_t i = 0; i < communicator.size; ++i) {
      if (const auto rank = WorldRank(communicator, i)) found.push_back(*rank);
    }
    return found;
  };
  std::vector<uint32_t> every_eighth, scattered, reversed, many;
  for (uint32_t i = 0; i < 2048; ++i) every_eighth.push_back(3 + 8 * i);
  for (uint32_t i = 0; i < 150; ++i) scattered.push_back(i * i + 7);
  for (uint32_t i = 0; i < 500; ++i) reversed.push_back(499 - i);
  for (uint32_t i = 0; i < 400; ++i) many.push_back(i * i);
  for (const auto& members : {std::vector<uint32_t>{5}, {0, 1}, {7, 3, 9, 1}, every_eighth, scattered, reversed}) {
    EXPECT_EQ(read(members), members);
  }
  // Too many and too scattered: not recorded, and said so.
  EXPECT_TRUE(read(many).empty());
  EXPECT_EQ(process.Read().losses.members, 1u);
}

TEST(Record, CountsWhatItHasNoPlaceFor) {
  TestProcess process;
  const uint32_t world = process.JoinWorld(0, 4);
  std::vector<RecorderTicket> open;
  for (int i = 0; i < kRecordOperations + 100; ++i) open.push_back(process.Begin(world, kTestReceive, 0, 1));
  Record record = process.Read();
  EXPECT_EQ(record.communicators[0].common_issued, open.size());
  EXPECT_EQ(record.operations.size() + record.losses.operations, open.size());
  EXPECT_GE(record.operations.size(), 400u);
  for (const RecorderTicket ticket : open) RecorderEnd(process.recorder(), ticket);
  record = process.Read();
  EXPECT_EQ(record.communicators[0].common_completed, open.size());
  EXPECT_TRUE(record.operations.empty());

  const uint32_t member = 0;
  for (int i = 1; i < kRecordCommunicators + 10; ++i) {
    RecorderAddCommunicator(process.recorder(), 100 + i, "", &member, 1, 0);
  }
  record = process.Read();
  EXPECT_EQ(record.communicators.size(), size_t{kRecordCommunicators});
  EXPECT_EQ(record.losses.communicators, 10u);
}

TEST(Record, KeepsWhatIsFreedAsLongAsThereIsRoom) {
  TestProcess process;
  const uint32_t member = 0;
  for (int i = 0; i < 3 * kRecordCommunicators; ++i) {
    const uint32_t place = RecorderAddCommunicator(process.recorder(), 1 + i, "", &member, 1, 0);
    process.Complete(place, kTestAllReduce, i % 3);
    RecorderRetireCommunicator(process.recorder(), place);
  }
  const Record record = process.Read();
  EXPECT_EQ(record.losses.communicators, 0u);
  std::set<uint64_t> ids;
  for (const RecordedCommunicator& communicator : record.communicators) {
    EXPECT_TRUE(communicator.is_retired);
    EXPECT_EQ(communicator.completed, (communicator.id - 1) % 3);
    ids.insert(communicator.id);
  }
  EXPECT_EQ(ids.size(), size_t{kRecordCommunicators});
  EXPECT_EQ(*ids.begin(), 1u + 2 * kRecordCommunicators);  // the youngest are there
}

TEST(Record, OfManyThreadsLosesNoCount) {
  TestProcess process;
  const uint32_t world = process.JoinWorld(0, 4);
  std::vector<std::thread> threads;
  constexpr int kThreads = 3 * kRecordThreads, kTimes = 2000;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] { process.Complete(world, kTestSend, kTimes, 1); });
  }
  for (std::thread& thread : threads) thread.join();
  const Record record = process.Read();
  EXPECT_EQ(record.communicators[0].common_issued, uint64_t{kThreads * kTimes});
  EXPECT_EQ(record.communicators[0].common_completed, uint64_t{kThreads * kTimes});
  EXPECT_TRUE(record.operations.empty());
  EXPECT_EQ(record.losses.torn, 0u);
  uint64_t finished = record.losses.finished;
  for (const RecordedThread& thread : record.threads) {
    finished += thread.finished;
    EXPECT_FALSE(thread.inside.has_value());
  }
  EXPECT_EQ(finished, uint64_t{kThreads * kTimes});
  EXPECT_EQ(record.other_threads_inside, 0u);
}

TEST(Record, GivesThePlacesOfThreadsThatAreGoneToOthers) {
  TestProcess process;
  const uint32_t world = process.JoinWorld(0, 4);
  for (int t = 0; t < 5 * kRecordThreads; ++t) {
    std::thread([&] { process.Complete(world, kTestSend, 1, 1); }).join();
  }
  // Of a thread that was joined the kernel may know a moment longer.
  EXPECT_LE(process.Read().losses.threads, 2u);
}

// While one process writes as fast as it can, each copy tells something that was so.
TEST(Record, CanBeReadAtAnyMoment) {
  TestProcess process;
  const uint32_t world = process.JoinWorld(1, 4);
  std::atomic<bool> is_done = false;
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t) {
    writers.emplace_back([&, t] {
      while (!is_done) {
        process.Complete(world, t == 0 ? kTestAllReduce : kTestSend, 1, t == 0 ? RECORD_NONE : 3);
        const RecorderTicket early = process.Begin(world, kTestReceive, 0, 2);
        RecorderStart(process.recorder(), early);
        RecorderEnd(process.recorder(), early);
      }
    });
  }
  uint64_t copies = 0, torn = 0;
  for (; copies < 100; ++copies) {
    const Record record = process.Read();
    ASSERT_EQ(record.communicators.size(), 1u);
    torn += record.losses.torn;
    EXPECT_LE(record.operations.size(), 4u);
    for (const RecordedOperation& operation : record.operations) {
      // What belongs together is together.
      const std::pair expected = operation.function == Function::kAllReduce ? std::pair(kTestAllReduce, RECORD_NONE)
                                 : operation.function == Function::kSend    ? std::pair(kTestSend, 3u)
                                                                            : std::pair(kTestReceive, 2u);
      EXPECT_EQ(operation.name, expected.first);
      EXPECT_EQ(operation.peer, expected.second);
    }
    for (size_t i = 1; i < record.finished.size(); ++i) {
      const RecordedFinished &before = record.finished[i - 1], &now = record.finished[i];
      EXPECT_TRUE(before.thread != now.thread || before.ordinal < now.ordinal);
      EXPECT_LT(now.duration, 10s);
    }
  }
  is_done = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_LE(torn, 20 * copies);
  RecordProperty("copies", static_cast<int>(copies));
  RecordProperty("torn", static_cast<int>(torn));
}

TEST(Record, IsRefusedWhenItIsNone) {
  TestProcess process;
  process.Complete(process.JoinWorld(0, 4), kTestAllReduce);
  const std::vector<std::byte> whole = process.Copy();
  ASSERT_TRUE(ReadRecord(whole, {}).has_value());
  for (const size_t size : {size_t{0}, size_t{1}, sizeof(RecordHeader) - 1, sizeof(RecordHeader), whole.size() - 1}) {
    EXPECT_FALSE(ReadRecord(std::span(whole).first(size), {}).has_value()) << size;
  }
  const auto refused_with = [&](size_t at, uint32_t value) {
    std::vector<std::byte> changed = whole;
    std::memcpy(changed.data() + at, &value, sizeof value);
    return !ReadRecord(changed, {}).has_value();
  };
  EXPECT_TRUE(refused_with(0, 0));
  EXPECT_TRUE(refused_with(offsetof(RecordHeader, version), 2));
  EXPECT_TRUE(refused_with(offsetof(RecordHeader, header_bytes), 0));
  EXPECT_TRUE(refused_with(offsetof(RecordHeader, file_bytes), 0));
  EXPECT_TRUE(refused_with(offsetof(RecordHeader, source), 9));
  EXPECT_TRUE(refused_with(offsetof(RecordHeader, communicators_at), 0x7ffffff8));
  EXPECT_TRUE(refused_with(offsetof(RecordHeader, communicators), 0xffffffff));
  EXPECT_TRUE(refused_with(offsetof(RecordHeader, operations), 0xffffffff));
  EXPECT_TRUE(refused_with(offsetof(RecordHeader, ring_length), 0xffffffff));
  EXPECT_TRUE(refused_with(offsetof(RecordHeader, rings_at), 8));
}

// A slot that was caught half written does not pass, whichever of its words are old.
TEST(Record, LeavesOutWhatIsTorn) {
  TestProcess process;
  const uint32_t world = process.JoinWorld(0, 4);
  process.Begin(world, kTestAllReduce, kRecordBlocking);
  const std::vector<std::byte> whole = process.Copy();
  size_t at = kRecordOperationsAt;
  while ((std::to_integer<unsigned>(whole[at + 8]) & 3) != kRecordOpen) at += sizeof(RecordOperation);
  for (size_t word = 0; word < 7; ++word) {
    std::vector<std::byte> torn = whole;
    torn[at + 8 * word + 2] ^= std::byte{1};
    const Result<Record> record = ReadRecord(torn, NowMonotonic());
    ASSERT_TRUE(record.has_value());
    EXPECT_TRUE(record->operations.empty()) << word;
    EXPECT_EQ(record->losses.torn, 1u) << word;
  }
}

}  // namespace
}  // namespace aimaster::c4d
