#include "journal/private_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "journal/temporary_directory.h"

namespace aimaster {
namespace {

mode_t ModeOf(const std::filesystem::path& path) {
  struct stat status = {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST(PrivateDirectoryTest, WhatIsMissingIsMadeForTheOwnerAloneWhateverTheUmask) {
  const TemporaryDirectory folder;
  const std::filesystem::path there = folder.path() / "there";
  std::filesystem::create_directory(there);
  chmod(there.c_str(), 0755);
  const mode_t before = umask(0);
  EXPECT_TRUE(MakePrivateDirectories(there / "a" / "b"));
  umask(before);
  EXPECT_EQ(ModeOf(there / "a"), 0700u);
  EXPECT_EQ(ModeOf(there / "a" / "b"), 0700u);
  EXPECT_EQ(ModeOf(there), 0755u) << "what is there is left as it is";
  EXPECT_TRUE(MakePrivateDirectories(there / "a" / "b"));
}

TEST(PrivateDirectoryTest, AFileInTheWayIsAnError) {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() / "file") << "x";
  const Status made = MakePrivateDirectories(folder.path() / "file" / "a");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "Not a directory");
}

TEST(PrivateDirectoryTest, WhereOthersMayWriteNothingIsBelieved) {
  const TemporaryDirectory folder;
  for (const mode_t mode : {0700u, 0755u}) {
    chmod(folder.path().c_str(), mode);
    EXPECT_TRUE(CheckPrivate(folder.path())) << std::oct << mode;
  }
  for (const mode_t mode : {0770u, 0702u, 0777u}) {
    chmod(folder.path().c_str(), mode);
    const Status checked = CheckPrivate(folder.path());
    ASSERT_FALSE(checked) << std::oct << mode;
    EXPECT_NE(checked.error().message.find("chmod 700"), std::string::npos);
  }
  chmod(folder.path().c_str(), 0700);
}

TEST(PrivateDirectoryTest, AnotherUsersDirectoryIsRefused) {
  const TemporaryDirectory folder;
  if (chown(folder.path().c_str(), 4242, static_cast<gid_t>(-1)) != 0) GTEST_SKIP() << "needs root";
  const Status checked = CheckPrivate(folder.path());
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("belongs to user 4242"), std::string::npos) << checked.error().message;
}

}  // namespace
}  // namespace aimaster
