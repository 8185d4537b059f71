#include "agent/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/core_dump_watch.h"

namespace aimaster::agent {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

class LogFileTest : public testing::Test {
 protected:
  LogFileTest() {
    char name[] = "/tmp/log_file_test.XXXXXX";
    writer = ::mkstemp(name);
    path = name;
    ::fcntl(writer, F_SETFL, O_APPEND);
  }
  ~LogFileTest() override {
    ::close(writer);
    ::unlink(path.c_str());
  }
  void Write(uint64_t bytes) {
    const std::string chunk(64 << 10, 'x');
    for (uint64_t left = bytes; left > 0;) {
      const auto written = ::write(writer, chunk.data(), std::min<uint64_t>(left, chunk.size()));
      ASSERT_GT(written, 0);
      left -= static_cast<uint64_t>(written);
    }
  }
  struct stat Stat() const {
    struct stat status{};
    ::fstat(writer, &status);
    return status;
  }
  uint64_t BlocksBytes() const { return static_cast<uint64_t>(Stat().st_blocks) * 512; }
  int writer = -1;
  std::string path;
};

TEST_F(LogFileTest, GrowthIsActivity) {
  LogFile log(path, 0);
  EXPECT_EQ(log.Look(), 0u);
  EXPECT_FALSE(log.has_output());
  Write(10);
  EXPECT_EQ(log.Look(), 10u);
  EXPECT_EQ(log.Look(), 0u);
  EXPECT_TRUE(log.has_output());
}

// As `printf '50%' > /dev/stderr` does again and again: its size never tells.
TEST_F(LogFileTest, AFileThatWasWrittenAnewAndIsAsLongAsBeforeIsActivity) {
  LogFile log(path, 0);
  Write(100);
  log.Look();
  ASSERT_EQ(::ftruncate(writer, 0), 0);
  Write(100);
  const timespec later[2] = {Stat().st_atim, {Stat().st_mtim.tv_sec + 1, 0}};  // within a tick the clock stands still
  ASSERT_EQ(::futimens(writer, later), 0);
  EXPECT_EQ(log.Look(), 1u);
  EXPECT_EQ(log.Look(), 0u);
}

TEST_F(LogFileTest, WhatWeGiveBackIsNoActivity) {
  LogFile log(path, 1 * kMebibyte);
  Write(4 * kMebibyte);
  log.Look();
  log.Bound();
  EXPECT_LT(BlocksBytes(), 2 * kMebibyte);
  EXPECT_EQ(log.Look(), 0u);
}

TEST_F(LogFileTest, AFileThatShrankStartsAgainAtZeroAndThatIsActivityToo) {
  LogFile log(path, 0);
  Write(100);
  log.Look();
  ASSERT_EQ(::ftruncate(writer, 0), 0);
  Write(30);
  EXPECT_EQ(log.Look(), 30u);
  ASSERT_EQ(::ftruncate(writer, 0), 0);
  EXPECT_GT(log.Look(), 0u);
}

TEST_F(LogFileTest, AFileThatIsNotThereYetIsLookedForAgain) {
  const std::string later = path + ".later";
  LogFile log(later, 0);
  EXPECT_EQ(log.Look(), 0u);
  const int fd = ::open(later.c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_EQ(::write(fd, "x", 1), 1);
  EXPECT_EQ(log.Look(), 1u);
  ::close(fd);
  ::unlink(later.c_str());
}

TEST_F(LogFileTest, OldBytesAreGivenBackUnderTheWriter) {
  LogFile log(path, 8 * kMebibyte);
  for (int i = 0; i < 50; ++i) {
    Write(2 * kMebibyte);
    log.Look();
    while (log.Bound()) {
    }
    EXPECT_LE(BlocksBytes(), 8 * kMebibyte);
  }
  EXPECT_EQ(static_cast<uint64_t>(Stat().st_size), 100 * kMebibyte);  // offsets stay what they were
  std::string tail(4096, '\0');
  const int reader = ::open(path.c_str(), O_RDONLY);
  ASSERT_EQ(::pread(reader, tail.data(), tail.size(), Stat().st_size - 4096), 4096);
  EXPECT_EQ(tail, std::string(4096, 'x'));
  ::close(reader);
}

TEST_F(LogFileTest, MuchIsGivenBackInSteps) {
  LogFile log(path, kMebibyte);
  Write(130 * kMebibyte);
  log.Look();
  int steps = 1;
  while (log.Bound()) ++steps;
  EXPECT_EQ(steps, 3);
  EXPECT_LE(BlocksBytes(), kMebibyte);
}

TEST(CoreDumpTest, ReadsTheFieldOfTheStatus) {
  EXPECT_TRUE(IsDumpingCore("Name:\tx\nCoreDumping:\t1\nTHP:\t1\n"));
  EXPECT_FALSE(IsDumpingCore("Name:\tx\nCoreDumping:\t0\nTHP:\t1\n"));
  EXPECT_FALSE(IsDumpingCore("Name:\tCoreDumping:\t1\n"));
  EXPECT_FALSE(IsDumpingCore(""));
}

}  // namespace
}  // namespace aimaster::agent
