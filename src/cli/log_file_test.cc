#include "cli/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <unistd.h>

#include "cli/line_prefixer.h"
#include "journal/temporary_directory.h"

namespace aimaster::cli {
namespace {

std::string ReadAll(LogFile& file) {
  std::string text;
  while (file.Read(text, 1 << 16) > 0) {
  }
  return text;
}

// Frees the first `bytes` of a file; false where the file system can't.
bool PunchHole(const std::filesystem::path& path, off_t bytes) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const bool done = fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, bytes) == 0;
  close(descriptor);
  return done;
}

std::string NumberedLines(int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

TEST(LogFile, IsReadWhileItGrows) {
  TemporaryDirectory directory;
  const auto path = directory.Write("out", "one\n");
  auto file = LogFile::Open(path);
  ASSERT_TRUE(file);
  EXPECT_EQ(ReadAll(*file), "one\n");
  directory.Write("out", "two");
  EXPECT_EQ(ReadAll(*file), "two");
  EXPECT_EQ(ReadAll(*file), "");
}

TEST(LogFile, ThatIsNotThereYetIsNotOpened) { EXPECT_FALSE(LogFile::Open("/no/such/file")); }

TEST(LogFile, ThatWasTruncatedIsReadFromItsStart) {
  TemporaryDirectory directory;
  const auto path = directory.Write("out", "before\n");
  auto file = LogFile::Open(path);
  ReadAll(*file);
  std::filesystem::resize_file(path, 0);
  directory.Write("out", "new\n");
  EXPECT_EQ(ReadAll(*file), "new\n");
}

TEST(LogFile, BytesThatWereFreedAreNotPrintedAsZeros) {
  TemporaryDirectory directory;
  const auto path = directory.Write("out", NumberedLines(1, 100'000));
  const off_t freed = 512 << 10;
  if (!PunchHole(path, freed)) GTEST_SKIP() << "this file system can't free a part of a file";
  auto file = LogFile::Open(path);
  const std::string text = ReadAll(*file);
  EXPECT_EQ(text.find('\0'), std::string::npos);
  EXPECT_TRUE(text.starts_with("line ")) << "from the start of a line: " << text.substr(0, 20);
  EXPECT_TRUE(text.ends_with("line 100000\n"));
  EXPECT_EQ(text.size() + file->skipped_bytes(), std::filesystem::file_size(path));
  EXPECT_GE(file->skipped_bytes(), static_cast<uint64_t>(freed));
}

TEST(LogFile, BytesFreedBehindTheReaderDoNotMatter) {
  TemporaryDirectory directory;
  const auto path = directory.Write("out", NumberedLines(1, 50'000));
  auto file = LogFile::Open(path);
  ReadAll(*file);
  if (!PunchHole(path, 64 << 10)) GTEST_SKIP() << "this file system can't free a part of a file";
  directory.Write("out", "more\n");
  EXPECT_EQ(ReadAll(*file), "more\n");
  EXPECT_EQ(file->skipped_bytes(), 0u);
}

TEST(LogFile, TheLastLinesAreFoundFromTheEnd) {
  TemporaryDirectory directory;
  const auto path = directory.Write("out", NumberedLines(1, 100'000));
  const auto tail = [&](uint64_t lines) {
    auto file = LogFile::Open(path);
    file->SeekToLastLines(lines);
    return ReadAll(*file);
  };
  EXPECT_EQ(tail(0), "");
  EXPECT_EQ(tail(1), "line 100000\n");
  EXPECT_EQ(tail(3), NumberedLines(99'998, 100'000));
  EXPECT_EQ(tail(20'000), NumberedLines(80'001, 100'000)) << "over several blocks";
  EXPECT_EQ(tail(1'000'000), NumberedLines(1, 100'000));
  directory.Write("out", "no end");
  EXPECT_EQ(tail(2), "line 100000\nno end");
}

TEST(LinePrefixer, MakesWholeLinesOfWhateverPiecesCome) {
  LinePrefixer prefixer("[rank3] ");
  std::string out;
  prefixer.Feed("one\ntw", out);
  EXPECT_EQ(out, "[rank3] one\n");
  prefixer.Feed("o\n\nlast", out);
  EXPECT_EQ(out, "[rank3] one\n[rank3] two\n[rank3] \n");
  prefixer.Finish(out);
  EXPECT_TRUE(out.ends_with("[rank3] last\n"));
  const size_t size = out.size();
  prefixer.Finish(out);
  EXPECT_EQ(out.size(), size);
}

TEST(LinePrefixer, OfAProgressBarTheLastStateStays) {
  LinePrefixer prefixer("");
  std::string out;
  prefixer.Feed("10%\r20%", out);
  prefixer.Feed("\r", out);
  prefixer.Feed("100%\r\nnext\r\n", out);
  EXPECT_EQ(out, "100%\nnext\n");
}

TEST(LinePrefixer, ALineWithoutEndIsPrintedInPieces) {
  LinePrefixer prefixer(">");
  std::string out;
  for (int i = 0; i < 3; ++i) prefixer.Feed(std::string(kPrefixedLineMax, 'x'), out);
  EXPECT_EQ(out.size(), 3 * (kPrefixedLineMax + 2));
}

}  // namespace
}  // namespace aimaster::cli
