#include "cli/rank_tee.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>

#include "cli/supervisor_life.h"
#include "journal/temporary_directory.h"

namespace aimaster::cli {
namespace {

// A job directory whose ranks print, and a reader of what is shown of it.
class RankTeeTest : public testing::Test {
 protected:
  RankTeeTest() : out_(Pipe()), err_(Pipe()), screen_(out_[1], err_[1]) {}
  ~RankTeeTest() override {
    for (const int descriptor : {out_[0], out_[1], err_[0], err_[1]}) close(descriptor);
  }

  static std::array<int, 2> Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    return ends;
  }
  static std::string Directory(int worker, int attempt) {
    return "nodes/node-0/job-worker-" + std::to_string(worker) + "/" + std::to_string(attempt) + "/";
  }
  void Claim(int worker, int attempt) {
    directory_.Write(Directory(worker, attempt) + "claim.json", R"({"round":)" + std::to_string(attempt) +
                                                                    R"(,"log_directory":"","ranks":[{"rank":)" +
                                                                    std::to_string(worker) + R"(,"local":0}]})");
  }
  void Print(int worker, int attempt, std::string_view stream, std::string_view text) {
    directory_.Write(Directory(worker, attempt) + "rank0." + std::string(stream), text);
  }

  static std::string Read(int descriptor) {
    std::string text;
    std::array<char, 65536> block;
    for (ssize_t got; (got = read(descriptor, block.data(), block.size())) > 0;) text.append(block.data(), got);
    return text;
  }
  // What a follower would show now.
  std::string Shown(RankTee& tee) {
    tee.Discover();
    std::string text;
    while (tee.Pump(screen_) || !screen_.empty()) {
      text += Read(out_[0]);
      screen_.Flush();
    }
    return text + Read(out_[0]);
  }

  TemporaryDirectory directory_;
  std::array<int, 2> out_, err_;
  Screen screen_;
};

TEST_F(RankTeeTest, OneRankComesAsItIsAndItsStreamsStayApart) {
  RankTee tee(directory_.path(), {.instance = "job-worker-0", .rank = 0});
  Claim(0, 0);
  Claim(1, 0);
  Print(0, 0, "out", "a\0b"), Print(0, 0, "err", "oops\n"), Print(1, 0, "out", "other\n");
  EXPECT_EQ(Shown(tee), "a");
  EXPECT_EQ(Read(err_[0]), "oops\n");
  Print(0, 0, "out", "more");
  EXPECT_EQ(Shown(tee), "more");
}

TEST_F(RankTeeTest, AttemptsComeOneAfterTheOtherEachToItsEnd) {
  RankTee tee(directory_.path(), {.rank = 0});
  Claim(0, 0);
  Print(0, 0, "out", "first ");
  EXPECT_EQ(Shown(tee), "first ");
  Print(0, 0, "out", "last words\n");
  Claim(0, 1), Claim(0, 2), Claim(0, 10);
  Print(0, 10, "out", "ten"), Print(0, 1, "out", "one "), Print(0, 2, "out", "two ");
  EXPECT_EQ(Shown(tee), "last words\none two ten");
}

TEST_F(RankTeeTest, LinesOfAllRanksCarryTheirRank) {
  RankTee tee(directory_.path(), {.with_prefixes = true, .all_to_stdout = true});
  Claim(0, 0), Claim(1, 0);
  Print(0, 0, "out", "zero\nhal"), Print(1, 0, "err", "one\n");
  EXPECT_EQ(Shown(tee), "[rank0] zero\n[rank1] one\n");
  Claim(0, 1);
  Print(0, 1, "out", "again\n");
  EXPECT_EQ(Shown(tee), "[rank0] hal\n[rank0] again\n") << "a new attempt ends the line of the one before";
  Print(1, 0, "err", "end");
  EXPECT_EQ(Shown(tee), "");
  tee.Finish(screen_);
  screen_.Flush();
  EXPECT_EQ(Read(out_[0]), "[rank1] end\n");
}

TEST_F(RankTeeTest, ASlowReaderIsWaitedForWithoutReadingOn) {
  RankTee tee(directory_.path(), {.rank = 0});
  Claim(0, 0);
  const std::string much(4 << 20, 'x');
  Print(0, 0, "out", much);
  tee.Discover();
  for (int i = 0; i < 100; ++i) tee.Pump(screen_);
  EXPECT_TRUE(screen_.out_full()) << "nobody reads";
  EXPECT_EQ(Shown(tee), much) << "and nothing is lost";
}

TEST_F(RankTeeTest, AFullScreenThatIsTakenAllAtOnceIsNotTakenForTheEnd) {
  const std::filesystem::path shown = directory_.path() / "shown";
  const int file = open(shown.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  Screen screen(file, err_[1]);  // a file takes everything at every flush
  RankTee tee(directory_.path(), {.rank = 0});
  Claim(0, 0);
  Print(0, 0, "out", "the end");
  tee.Discover();
  screen.Out(std::string(kOutputQueueFull, 'x'));
  while (tee.Pump(screen) || !screen.empty()) {
  }
  close(file);
  EXPECT_EQ(std::filesystem::file_size(shown), kOutputQueueFull + 7);
}

TEST_F(RankTeeTest, AReaderThatHasGoneIsNoReasonToStop) {
  RankTee tee(directory_.path(), {.rank = 0});
  Claim(0, 0);
  Print(0, 0, "out", "text"), Print(0, 0, "err", "error");
  signal(SIGPIPE, SIG_IGN);
  close(out_[0]);
  out_[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
  tee.Discover();
  while (tee.Pump(screen_)) {
  }
  EXPECT_TRUE(screen_.empty());
  EXPECT_EQ(Read(err_[0]), "error");
}

TEST_F(RankTeeTest, WhoComesLateSeesTheLastLinesOfTheLastAttempt) {
  Claim(0, 0), Claim(0, 1);
  Print(0, 0, "out", "old\n"), Print(0, 1, "out", "1\n2\n3\n");
  RankTee tee(directory_.path(), {.rank = 0});
  tee.Discover();
  tee.SkipToLastLines(2);
  EXPECT_EQ(Shown(tee), "2\n3\n");
}

TEST_F(RankTeeTest, RoundsAreSelected) {
  Claim(0, 0), Claim(0, 1);
  Print(0, 0, "out", "zero"), Print(0, 1, "out", "one");
  RankTee first(directory_.path(), {.first_round = 0, .last_round = 0});
  EXPECT_EQ(Shown(first), "zero");
  RankTee from_second(directory_.path(), {.first_round = 1});
  EXPECT_EQ(Shown(from_second), "one");
}

TEST_F(RankTeeTest, DirectoriesThatAreNoAttemptsAreLeftOut) {
  directory_.Write("nodes/node-0/agent.json", "{}");
  directory_.Write("nodes/node-0/job-worker-0/7/claim.json", "{ broken");
  directory_.Write("nodes/node-0/job-worker-0/8/claim.json", R"({"ranks":[{"rank":"0"}]})");
  directory_.Write("nodes/node-0/job-worker-0/notes/claim.json", "{}");
  EXPECT_TRUE(FindAttempts(directory_.path()).empty());
  EXPECT_TRUE(FindAttempts("/no/such/directory").empty());
}

TEST(SupervisorLife, AProcessIsKnownByItsNumberAndItsStart) {
  TemporaryDirectory directory;
  const auto me = IdentityOf(getpid());
  ASSERT_TRUE(me);
  EXPECT_FALSE(LiveSupervisor(directory.path())) << "no file";
  const auto write = [&](uint64_t ticks) {
    std::filesystem::remove(directory.path() / "supervisor/supervisor.json");
    directory.Write("supervisor/supervisor.json", "{\"pid\":" + std::to_string(getpid()) + ",\"start_ticks\":" +
                                                      std::to_string(ticks) + ",\"child_pid\":1}\n");
  };
  write(me->start_ticks);
  EXPECT_EQ(LiveSupervisor(directory.path()), me);
  write(me->start_ticks + 1);
  EXPECT_FALSE(LiveSupervisor(directory.path())) << "the number was given to somebody else";
}

TEST(SupervisorLife, AHandleTellsWhenItsProcessHasEnded) {
  EXPECT_TRUE(ProcessHandle().HasEnded());
  const ProcessHandle me(*IdentityOf(getpid()));
  EXPECT_FALSE(me.HasEnded());
  EXPECT_TRUE(ProcessHandle(ProcessIdentity{getpid(), 1}).HasEnded()) << "another process of the same number";
}

}  // namespace
}  // namespace aimaster::cli
