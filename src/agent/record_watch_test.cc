// What an agent sees of the records of its ranks: of the living, and of nobody else.
#include "agent/record_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/record_folder.h"
#include "journal/temporary_directory.h"
#include "probe/recorder.h"

namespace aimaster::agent {
namespace {

// A rank that waits in a collective for ever.
class Rank {
 public:
  explicit Rank(const std::string& folder) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      setenv(AIMASTER_RECORD_FOLDER, folder.c_str(), 1);
      const char* const names[] = {"MPI_Allreduce"};
      Recorder* recorder = RecorderOpen(kRecordMpi, names, 1);
      RecorderSetWorld(recorder, 0, 2);
      const uint32_t members[] = {0, 1};
      const RecorderOperation operation{
          .communicator = RecorderAddCommunicator(recorder, 1, "MPI_COMM_WORLD", members, 2, 0),
          .peer = RECORD_NONE,
          .flags = kRecordBlocking,
          .function = kRecordAllReduce};
      RecorderBegin(recorder, &operation);
      EXPECT_EQ(write(ready[1], "", 1), 1);
      while (true) pause();
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~Rank() { End(); }
  void Signal(int number) const { kill(pid_, number); }
  void End() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  void AwaitStop() const { waitpid(pid_, nullptr, WUNTRACED); }

 private:
  pid_t pid_ = 0;
};

class RecordWatchTest : public testing::Test {
 protected:
  RecordWatchTest() { EXPECT_TRUE(MakeRecordFolder(attempt_)); }
  ~RecordWatchTest() override { RemoveRecordFolder(attempt_); }
  std::string folder() const { return RecordFolderOf(attempt_); }
  uint32_t Processes() { return watch_.Summary()->processes(); }

  TemporaryDirectory directory_;
  const AttemptDirectory attempt_{directory_.path().string()};
  RecordWatch watch_;
};

TEST_F(RecordWatchTest, WhoWaitsIsSeenAndWhoIsStoppedIsToldFromWhoIsNot) {
  const Rank rank(folder());
  watch_.Add({3, 1}, attempt_);
  EXPECT_EQ(Processes(), 1u);
  EXPECT_TRUE(watch_.Summary()->has_longest_wait_ns());
  std::vector<v1::Records> records = watch_.ReadAll(7);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].number(), 7u);
  ASSERT_EQ(records[0].processes_size(), 1);
  EXPECT_EQ(records[0].processes(0).id().instance(), 3u);
  EXPECT_EQ(records[0].processes(0).hold(), 0u);
  rank.Signal(SIGSTOP);
  rank.AwaitStop();
  records = watch_.ReadAll(8);
  EXPECT_EQ(records[0].processes(0).hold(), static_cast<uint32_t>(c4d::Hold::kStopped));
}

TEST_F(RecordWatchTest, WhatTheDeadHaveLeftWaitsForNobody) {
  Rank rank(folder());
  watch_.Add({0, 1}, attempt_);
  EXPECT_EQ(Processes(), 1u);
  rank.End();
  EXPECT_EQ(Processes(), 0u);
  EXPECT_FALSE(watch_.Summary()->has_longest_wait_ns());
  EXPECT_EQ(watch_.ReadAll(1)[0].processes_size(), 0);
}

TEST_F(RecordWatchTest, WhatIsNoRecordIsPassedOver) {
  watch_.Add({0, 1}, attempt_);
  std::ofstream(folder() + "/short.c4d") << "x";
  EXPECT_EQ(mkfifo((folder() + "/fifo.c4d").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", folder() + "/link.c4d");
  std::filesystem::create_directory(folder() + "/folder.c4d");
  EXPECT_EQ(Processes(), 0u);
}

TEST_F(RecordWatchTest, AnAttemptThatRecordsNothingIsLeftOut) {
  watch_.Add({0, 1}, AttemptDirectory("/nowhere"));
  EXPECT_FALSE(watch_.Summary());
  EXPECT_EQ(watch_.ReadAll(1).size(), 1u) << "who asks is answered";
}

TEST_F(RecordWatchTest, AFolderGoesWithItsAttempt) {
  EXPECT_TRUE(std::filesystem::exists(folder()));
  SweepRecordFolders();
  EXPECT_TRUE(std::filesystem::exists(folder())) << "its attempt is there";
  RemoveRecordFolder(attempt_);
  EXPECT_FALSE(std::filesystem::exists(folder()));
}

}  // namespace
}  // namespace aimaster::agent
