#include "journal/files.h"

#include <sys/stat.h>

#include "journal/journal_harness.h"

namespace aimaster {
namespace {

TEST(Files, AFileIsReplacedAsAWhole) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory / "f";
  ASSERT_TRUE(WriteFileAtomically(file, "first", 0600));
  ASSERT_TRUE(WriteFileAtomically(file, "second", 0600));
  EXPECT_EQ(*ReadFile(file, 100), "second");
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1) << "no other file is left";
}

TEST(Files, AFileThatCanNotBeReplacedStays) {
  const TemporaryDirectory directory;
  std::filesystem::create_directories(directory / "f/inside");
  const Status written = WriteFileAtomically(directory / "f", "bytes", 0600);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find((directory / "f").string()), std::string::npos) << written.error().message;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1) << "no other file is left";
}

TEST(Files, WhatIsMissingIsNotFound) {
  const TemporaryDirectory directory;
  EXPECT_EQ(ReadFile(directory / "none", 1).error().kind, ErrorKind::kNotFound);
}

TEST(Files, WhatIsTooLargeIsRefusedUnread) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "f") << "12345";
  EXPECT_EQ(*ReadFile(directory / "f", 5), "12345");
  const Result<std::string> read = ReadFile(directory / "f", 4);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kEnvironment);
}

TEST(Files, AThingThatIsNoFileIsRefusedWithoutWaiting) {
  const TemporaryDirectory directory;
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  for (const char* name : {"pipe", "."}) {
    EXPECT_NE(ReadFile(directory / name, 100).error().message.find("is not a regular file"), std::string::npos);
  }
}

TEST(Files, ALocalFileSystemIsNoNetworkFileSystem) {
  EXPECT_FALSE(IsOnNetworkFileSystem("/proc"));
  EXPECT_FALSE(IsOnNetworkFileSystem("/no/such/place"));
}

}  // namespace
}  // namespace aimaster
