// The disk fills up, and gets free again. Training goes on meanwhile; the journal must neither lose nor double a thing.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <cstring>

#include "journal/codec.h"
#include "journal/job_directory.h"
#include "journal/journal_harness.h"

namespace aimaster {
namespace {

JournalBatch LargeBatch(const std::string& reason) {
  return {{Input{{}, NodeDenied{reason + std::string(16'000, '.')}}, {}}};
}

std::string Mount(const std::filesystem::path& where, const char* options) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", where.c_str(), "tmpfs", 0, options) != 0) {
    return std::string("no tmpfs of our own: ") + std::strerror(errno);
  }
  return "";
}

// Appends until it fails, makes room, appends again.
std::string FillAndGoOn(const std::filesystem::path& path, JournalStorage storage, ErrorKind kind,
                        const std::string& expected, const std::function<void()>& make_room) {
  Result<Journal> journal = Journal::OpenOrCreate(path, "rules", storage);
  if (!journal) return "open: " + journal.error().message;
  JobState job;
  Status last;
  uint32_t appended = 0;
  while (appended < 100'000) {
    job.restarts = appended + 1;
    job.nodes[NodeIndex{0}].name = "node of " + std::to_string(appended);
    last = journal->Append(LargeBatch(std::to_string(appended)), job);
    if (!last) break;
    ++appended;
  }
  if (last) return "it never filled up";
  if (appended == 0) return "nothing could be appended: " + last.error().message;
  if (last.error().kind != kind) return "another kind of error: " + last.error().message;
  if (last.error().message.find(expected) == std::string::npos ||
      last.error().message.find(path.string()) == std::string::npos) {
    return "not clear: " + last.error().message;
  }
  if (journal->LoadInputs()->size() != appended) return "something half written";
  make_room();
  for (int i = 0; i < 2; ++i) {
    if (last = journal->Append(LargeBatch(std::to_string(appended)), job); !last) return "no: " + last.error().message;
    ++appended;
  }
  if (Sql(path, "SELECT body FROM node") != Encode(job.nodes.at(NodeIndex{0})) + "\n") return "an old view of the node";
  const Result<std::vector<Input>> inputs = journal->LoadInputs();
  if (!inputs || inputs->size() != appended) return "something lost or doubled";
  for (uint32_t i = 0; i < appended; ++i) {
    if (!std::get<NodeDenied>((*inputs)[i].event).reason.starts_with(std::to_string(i) + ".")) return "out of order";
  }
  return "";
}

class JournalDiskTest : public testing::TestWithParam<JournalStorage> {};

TEST_P(JournalDiskTest, AFullDiskStopsNothingForGood) {
  const TemporaryDirectory directory;
  const std::string wrong = InChildProcess([&]() -> std::string {
    if (std::string no = Mount(directory.path(), "size=2m"); !no.empty()) return "skip: " + no;
    const std::filesystem::path ballast = directory / "ballast";
    std::ofstream(ballast) << std::string(1 << 20, 'b');
    return FillAndGoOn(directory / "journal.db", GetParam(), ErrorKind::kDiskFull, "full; free some space there",
                       [&] { std::filesystem::remove(ballast); });
  });
  if (wrong.starts_with("skip")) GTEST_SKIP() << wrong;
  EXPECT_EQ(wrong, "");
}

TEST_P(JournalDiskTest, AQuotaStopsNothingForGood) {
  const TemporaryDirectory directory;
  EXPECT_EQ(InChildProcess([&] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit tight{1 << 20, RLIM_INFINITY}, loose{RLIM_INFINITY, RLIM_INFINITY};
              setrlimit(RLIMIT_FSIZE, &tight);
              return FillAndGoOn(directory / "journal.db", GetParam(), ErrorKind::kEnvironment,
                                 "no file of this process may grow beyond 1048576 bytes (ulimit -f)",
                                 [&] { setrlimit(RLIMIT_FSIZE, &loose); });
            }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Storages, JournalDiskTest,
                         testing::Values(JournalStorage::kWriteAhead, JournalStorage::kRollback));

TEST(FullDisk, AJobThatCanNotBeWrittenLeavesNothing) {
  const TemporaryDirectory directory;
  const std::string wrong = InChildProcess([&]() -> std::string {
    if (std::string no = Mount(directory.path(), "size=256k"); !no.empty()) return "skip: " + no;
    EngineHarness job;
    job.spec.environment["LARGE"] = std::string(300'000, 'x');
    const Result<JobDirectory> made = JobDirectory::Create(Home(directory.path()), job.spec);
    if (made) return "it was made";
    if (made.error().message.find("No space left on device; set AIMASTER_HOME") == std::string::npos) {
      return "not clear: " + made.error().message;
    }
    if (!std::filesystem::is_empty(directory / "jobs")) return "something is left";
    return "";
  });
  if (wrong.starts_with("skip")) GTEST_SKIP() << wrong;
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace aimaster
