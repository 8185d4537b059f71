#include "agent/socket_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "journal/temporary_directory.h"

namespace aimaster {
namespace {

class SocketPathTest : public testing::Test {
 protected:
  void SetUp() override { setenv("XDG_RUNTIME_DIR", runtime_.path().c_str(), 1); }
  void TearDown() override {
    if (before_) {
      setenv("XDG_RUNTIME_DIR", before_->c_str(), 1);
    } else {
      unsetenv("XDG_RUNTIME_DIR");
    }
  }

  const std::optional<std::string> before_ = [] {
    const char* value = std::getenv("XDG_RUNTIME_DIR");
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }();
  TemporaryDirectory runtime_;
  const std::filesystem::path far_away_ = "/" + std::string(120, 'd');
};

TEST_F(SocketPathTest, AShortPathStaysInItsDirectory) {
  EXPECT_EQ(*SocketPath("/home/me/job", "agent.sock"), "/home/me/job/agent.sock");
}

TEST_F(SocketPathTest, TheLongestPathThatFitsIsTaken) {
  const std::string directory = "/" + std::string(kSocketPathMaxBytes - 3, 'd');
  EXPECT_EQ(SocketPath(directory, "s")->native().size(), kSocketPathMaxBytes);
  EXPECT_NE(SocketPath(directory, "ss")->parent_path(), directory);
}

TEST_F(SocketPathTest, ALongPathGetsAShortNameOfItsOwn) {
  const std::filesystem::path path = *SocketPath(far_away_, "agent.sock");
  EXPECT_EQ(path.parent_path(), runtime_ / "aimaster");
  EXPECT_LE(path.native().size(), kSocketPathMaxBytes);
  EXPECT_EQ(std::filesystem::status(path.parent_path()).permissions(), std::filesystem::perms(0700));
  EXPECT_EQ(SocketPath(far_away_, "agent.sock"), path) << "the same whenever it is asked";
  EXPECT_NE(SocketPath(far_away_, "other.sock"), path);
}

TEST_F(SocketPathTest, ADirectoryThatOthersCanUseIsNotTaken) {
  ASSERT_EQ(mkdir((runtime_ / "aimaster").c_str(), 0700), 0);
  ASSERT_EQ(chmod((runtime_ / "aimaster").c_str(), 0777), 0);
  const Result<std::filesystem::path> path = SocketPath(far_away_, "agent.sock");
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(path->parent_path(), "/tmp/aimaster-" + std::to_string(geteuid()));
}

TEST_F(SocketPathTest, ALinkThatSomebodyPutThereIsNotFollowed) {
  std::filesystem::create_directory(runtime_ / "elsewhere");
  std::filesystem::create_symlink(runtime_ / "elsewhere", runtime_ / "aimaster");
  EXPECT_EQ(SocketPath(far_away_, "agent.sock")->parent_path(), "/tmp/aimaster-" + std::to_string(geteuid()));
}

TEST_F(SocketPathTest, ARuntimeDirectoryThatIsGoneIsPassedOver) {
  setenv("XDG_RUNTIME_DIR", (runtime_ / "gone").c_str(), 1);
  EXPECT_EQ(SocketPath(far_away_, "agent.sock")->parent_path(), "/tmp/aimaster-" + std::to_string(geteuid()));
}

}  // namespace
}  // namespace aimaster
