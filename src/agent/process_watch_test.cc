// A process that is held, or only looked at: its death is heard of in either case.
#include "agent/process_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/descriptor_limit.h"
#include "agent/limits.h"

namespace aimaster::agent {
namespace {

class ProcessWatchTest : public testing::Test {
 protected:
  ProcessWatchTest() {
    child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    identity = {child, ReadStat(child)->start_ticks};
    ::getrlimit(RLIMIT_NOFILE, &limit);
  }
  ~ProcessWatchTest() override {
    ::setrlimit(RLIMIT_NOFILE, &limit);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  // So few that what is opened next is among the last.
  void LeaveFewDescriptors() {
    rlimit few = limit;
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    few.rlim_cur = static_cast<rlim_t>(next) + kDescriptorsSpare;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  std::unique_ptr<ProcessWatch> Open() {
    return ProcessWatch::Open(io, identity, [this] { is_dead = true; });
  }
  bool HearsOfDeath() {
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (!is_dead && std::chrono::steady_clock::now() < until) io.run_one_for(1s);
    return is_dead;
  }

  boost::asio::io_context io;
  Timer timer{io};  // the first one makes the io_context open what it needs
  pid_t child = 0;
  ProcessIdentity identity;
  rlimit limit{};
  bool is_dead = false;
};

TEST_F(ProcessWatchTest, HearsOfADeath) {
  const auto watch = Open();
  ASSERT_TRUE(watch);
  EXPECT_FALSE(watch->IsDead());
  EXPECT_TRUE(watch->Signal(SIGKILL));
  EXPECT_TRUE(HearsOfDeath());
  EXPECT_TRUE(watch->IsDead());
}

TEST_F(ProcessWatchTest, HearsOfADeathWhereDescriptorsHaveRunOut) {
  const size_t before = CountDescriptors();
  LeaveFewDescriptors();
  const auto watch = Open();
  ASSERT_TRUE(watch);
  EXPECT_EQ(CountDescriptors(), before) << "the last ones are not kept";
  EXPECT_FALSE(watch->IsDead());
  EXPECT_TRUE(watch->Signal(SIGKILL));
  EXPECT_TRUE(HearsOfDeath());
  EXPECT_TRUE(watch->IsDead());
}

TEST_F(ProcessWatchTest, WhoCanNotBeLookedAtIsNotDead) {
  rlimit none = limit;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_FALSE(IsDead(identity));
  EXPECT_FALSE(IsDead({child, identity.start_ticks}));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(IsDead(identity)) << "that it is gone can be asked for without opening anything";
}

TEST_F(ProcessWatchTest, NobodyIsWatchedInThePlaceOfOneWhoIsGone) {
  identity.start_ticks += 1;
  EXPECT_FALSE(Open());
  LeaveFewDescriptors();
  EXPECT_FALSE(Open());
}

}  // namespace
}  // namespace aimaster::agent
