// MPI programs as people write them, in C and Fortran, under each MPI library that is here, with the probe loaded into
// them; and what their records tell, also while they hang. A hang is not waited for: the copies are read as if they had
// been made later.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include "c4d/c4d_test_support.h"
#include "c4d/record_harness.h"
#include "c4d/record_observation.h"

namespace aimaster::c4d {
namespace {

namespace fs = std::filesystem;

bool IsOnPath(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

class MpiJob {
 public:
  explicit MpiJob(fs::path folder) : folder_(std::move(folder)) {}
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;
  ~MpiJob() { Stop(); }

  void Start(const std::string& mpi, const std::string& library, const std::vector<std::string>& command) {
    fs::create_directory(folder_ / "records");
    std::vector<std::string> words{"mpirun." + mpi};
    if (mpi == "openmpi") words.push_back("--oversubscribe");
    words.insert(words.end(), {"-np", "4", "env"});
    if (!library.empty()) {
      words.push_back("LD_PRELOAD=" + library);
      words.push_back("AIMASTER_C4D_DIR=" + (folder_ / "records").string());
    }
    words.insert(words.end(), command.begin(), command.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string output = (folder_ / "output").string();
    process_ = fork();
    if (process_ != 0) return;
    setpgid(0, 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, 1);
    dup2(file, 2);
    dup2(open("/dev/null", O_RDONLY), 0);
    execvp(argv[0], argv.data());
    _exit(127);
  }

  int Wait() {
    int status = -1;
    waitpid(process_, &status, 0);
    process_ = 0;
    return status;
  }

  std::string Output() const {
    std::ifstream file(folder_ / "output");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // By rank; of those that have told it.
  std::map<uint32_t, Record> Records(Duration later = {}) const {
    std::map<uint32_t, Record> records;
    for (const auto& entry : fs::directory_iterator(folder_ / "records")) {
      const Monotonic taken = NowMonotonic() + later;
      Result<Record> record = ReadRecord(CopyOf(entry.path()), taken);
      if (record && record->world_rank) records.emplace(Value(*record->world_rank), std::move(*record));
    }
    return records;
  }

  Observation Observe(Duration later) const {
    std::vector<RankRecord> records;
    for (auto& [rank, record] : Records(later)) records.push_back({.rank = Rank{rank}, .record = record});
    return ObserveRecords(records, 4).observation;
  }

  // Until it is so, or a minute has passed.
  bool Await(const std::function<bool()>& is_so) const {
    for (const Monotonic end = NowMonotonic() + 60s; NowMonotonic() < end;) {
      if (is_so()) return true;
      std::this_thread::sleep_for(20ms);
    }
    return false;
  }

 private:
  void Stop() {
    if (process_ == 0) return;
    for (const auto& [rank, record] : Records()) kill(static_cast<pid_t>(record.pid), SIGKILL);
    kill(-process_, SIGKILL);
    Wait();
  }

  fs::path folder_;
  pid_t process_ = 0;
};

class Pmpi : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    mpi_ = GetParam();
    const char* programs = std::getenv("AIMASTER_BIN");
    library_ = std::string(programs == nullptr ? "build/bin" : programs) + "/libaimaster-pmpi-" + mpi_ + ".so";
    if (!IsOnPath("mpirun." + mpi_) || !fs::exists(library_)) GTEST_SKIP() << mpi_ << " is not installed here";
    std::string folder = fs::temp_directory_path() / "pmpi-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // The program, built for this library.
  std::string Build(const std::string& compiler, const std::string& source) {
    const char* root = std::getenv("AIMASTER_SOURCE");
    const std::string built = folder_ / "program";
    const std::string command = "cd " + folder_.string() + " && " + compiler + "." + mpi_ + " -O1 -w -o " + built +
                                " " + (root == nullptr ? "." : root) + "/tests/e2e/programs/" + source +
                                " -lpthread 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return built;
  }

  std::string mpi_, library_;
  fs::path folder_;
};

struct Counts {
  uint64_t collectives = 0, messages = 0;
  bool operator==(const Counts&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << counts.collectives << " collectives, " << counts.messages << " messages";
}
std::map<std::string, Counts> CountsOf(const Record& record) {
  std::map<std::string, Counts> counts;
  for (const RecordedCommunicator& communicator : record.communicators) {
    if (communicator.name.empty()) continue;
    EXPECT_EQ(communicator.issued, communicator.completed) << communicator.name;
    EXPECT_EQ(communicator.common_issued, communicator.common_completed) << communicator.name;
    counts[communicator.name] = {communicator.issued, communicator.common_issued};
  }
  return counts;
}

TEST_P(Pmpi, CountsAllThatAProgramDoes) {
  const std::string program = Build("mpicc", "collectives.c");
  MpiJob job(folder_);
  job.Start(mpi_, library_, {program});
  ASSERT_EQ(job.Wait(), 0) << job.Output();
  const std::string with = job.Output();
  EXPECT_EQ(with, "sum 628.000\n");
  const std::map<uint32_t, Record> records = job.Records();
  ASSERT_EQ(records.size(), 4u);
  std::map<std::string, std::map<uint64_t, int>> ids;
  for (const auto& [rank, record] : records) {
    EXPECT_TRUE(record.is_finished);
    EXPECT_TRUE(record.operations.empty());
    EXPECT_EQ(record.losses.torn + record.losses.communicators, 0u);
    EXPECT_EQ(record.elsewhere, 0u);
    // 19 blocking and 4 that do not block, 3 that make communicators, a barrier, a reduction, and the end.
    std::map<std::string, Counts> expected{
        {"MPI_COMM_WORLD", {29, 622}}, {"half", {8, 0}}, {"copy", {2, 0}}, {"mesh", {1, 0}}, {"early", {1, 0}},
        {"MPI_COMM_SELF", {300, 0}}};
    if (rank == 0 || rank == 3) expected["few"] = {4, 0};
    if (mpi_ == "mpich") expected["copy"] = {5, 0};  // it has collectives that are prepared
    EXPECT_EQ(CountsOf(record), expected) << "rank " << rank;
    for (const RecordedCommunicator& communicator : record.communicators) {
      if (!communicator.name.empty()) ++ids[communicator.name][communicator.id];
    }
  }
  // All members know a communicator by the same id, and others by another.
  using Ids = std::vector<int>;
  const auto members = [&](const char* name) {
    Ids counts;
    for (const auto& [id, count] : ids[name]) counts.push_back(count);
    return counts;
  };
  EXPECT_EQ(members("MPI_COMM_WORLD"), Ids({4}));
  EXPECT_EQ(members("half"), Ids({2, 2}));
  EXPECT_EQ(members("copy"), Ids({2, 2}));
  EXPECT_EQ(members("mesh"), Ids({4}));
  EXPECT_EQ(members("early"), Ids({4}));
  EXPECT_EQ(members("few"), Ids({2}));
  EXPECT_EQ(members("MPI_COMM_SELF"), Ids({1, 1, 1, 1}));
}

TEST_P(Pmpi, ChangesNothingWhereNobodyListens) {
  const std::string program = Build("mpicc", "collectives.c");
  MpiJob without(folder_);
  without.Start(mpi_, "", {program});
  EXPECT_EQ(without.Wait(), 0);
  EXPECT_EQ(without.Output(), "sum 628.000\n");
  MpiJob unheard(folder_);
  unheard.Start(mpi_, library_, {"AIMASTER_C4D_DIR=", program});
  EXPECT_EQ(unheard.Wait(), 0);
  EXPECT_EQ(unheard.Output(), "sum 628.000\n");
  EXPECT_TRUE(fs::is_empty(folder_ / "records"));
}

TEST_P(Pmpi, CountsFortranOnce) {
  if (!IsOnPath("mpifort." + mpi_) || !IsOnPath("gfortran")) GTEST_SKIP() << "no Fortran compiler is here";
  const std::string program = Build("mpifort", "collectives.f90");
  MpiJob job(folder_);
  job.Start(mpi_, library_, {program});
  ASSERT_EQ(job.Wait(), 0) << job.Output();
  EXPECT_NE(job.Output().find("sum    19.000"), std::string::npos) << job.Output();
  const std::map<uint32_t, Record> records = job.Records();
  ASSERT_EQ(records.size(), 4u);
  for (const auto& [rank, record] : records) {
    // By the old module 6 + 1 + 2 and a split, by the new one 4 + 1 + 1; and the end.
    EXPECT_EQ(CountsOf(record).at("MPI_COMM_WORLD"), (Counts{17, 2})) << "rank " << rank;
    EXPECT_TRUE(record.operations.empty());
  }
}

TEST_P(Pmpi, CountsWhatThreadsDoAtATime) {
  const std::string program = Build("mpicc", "collectives.c");
  MpiJob job(folder_);
  job.Start(mpi_, library_, {program, "threads"});
  ASSERT_EQ(job.Wait(), 0) << job.Output();
  if (job.Output().find("no threads") != std::string::npos) GTEST_SKIP() << mpi_ << " was built without threads";
  for (const auto& [rank, record] : job.Records()) {
    EXPECT_EQ(CountsOf(record).at("MPI_COMM_WORLD"), (Counts{3, 800})) << "rank " << rank;
    EXPECT_TRUE(record.operations.empty());
    EXPECT_EQ(record.losses.requests, 0u);
  }
}

TEST_P(Pmpi, ShowsWhoComputesWhileTheOthersWait) {
  const std::string program = Build("mpicc", "collectives.c");
  MpiJob job(folder_);
  job.Start(mpi_, library_, {program, "late", "2"});
  const auto in_barrier = [&] {
    uint64_t waiting = 0;
    const std::map<uint32_t, Record> records = job.Records();
    for (const auto& [rank, record] : records) {
      const RecordedCommunicator& world = record.communicators[0];
      if (rank != 2 && world.issued == 27 && world.completed == 26 && record.operations.size() == 1) ++waiting;
    }
    return waiting == 3 && records.at(2).communicators[0].completed == 26;
  };
  ASSERT_TRUE(job.Await(in_barrier)) << job.Output();
  EXPECT_EQ(Accused(job.Observe(2s)), "");
  const std::vector<Verdict> verdicts = FindHangs(job.Observe(14s), {});
  EXPECT_EQ(Accused(verdicts), "RankNonCommHang 2") << Describe(verdicts);
  EXPECT_NE(Describe(verdicts).find("Number 27 in group MPI_COMM_WORLD"), std::string::npos) << Describe(verdicts);
}

// Of messages too, where each waits for its neighbour.
TEST_P(Pmpi, ShowsWhoDoesNotSend) {
  const std::string program = Build("mpicc", "collectives.c");
  MpiJob job(folder_);
  job.Start(mpi_, library_, {program, "ring", "2"});
  const auto is_waiting = [&] {
    uint64_t waiting = 0;
    const std::map<uint32_t, Record> records = job.Records();
    for (const auto& [rank, record] : records) {
      if (rank != 2) waiting += std::ranges::count(record.operations, Function::kReceive, &RecordedOperation::function);
    }
    // Messages go on around until each has come to where it waits for its neighbour.
    return waiting == 3 && records.contains(2) && records.at(2).communicators[0].common_completed == 722;
  };
  ASSERT_TRUE(job.Await(is_waiting)) << job.Output();
  ASSERT_TRUE(job.Await([&] { return Accused(job.Observe(14s)) == "RankNonCommHang 2"; }))
      << Describe(FindHangs(job.Observe(14s), {}));
}

// Wherever it was: in a collective, or between two.
TEST_P(Pmpi, ShowsWhoIsStopped) {
  const std::string program = Build("mpicc", "collectives.c");
  MpiJob job(folder_);
  job.Start(mpi_, library_, {program, "endless"});
  const auto is_running = [&] {
    const std::map<uint32_t, Record> records = job.Records();
    return records.size() == 4 && records.at(1).communicators[0].completed > 100;
  };
  ASSERT_TRUE(job.Await(is_running)) << job.Output();
  const auto stopped = static_cast<pid_t>(job.Records().at(1).pid);
  kill(stopped, SIGSTOP);
  std::string before;
  const auto is_still = [&] {
    std::string now;
    for (const auto& [rank, record] : job.Records()) {
      now += std::to_string(record.communicators[0].issued) + " " + std::to_string(record.communicators[0].completed) +
             " ";
    }
    std::swap(now, before);
    std::this_thread::sleep_for(200ms);
    return now == before;
  };
  ASSERT_TRUE(job.Await(is_still));
  const std::vector<Verdict> verdicts = FindHangs(job.Observe(14s), {});
  // In the middle of a barrier no count may tell it from the others: then it is said of the group, and of nobody else.
  ASSERT_EQ(verdicts.size(), 1u) << Describe(verdicts);
  EXPECT_TRUE(verdicts[0].is_group || verdicts[0].ranks == std::vector{Rank{1}}) << Describe(verdicts);
  kill(stopped, SIGCONT);
}

INSTANTIATE_TEST_SUITE_P(Libraries, Pmpi, testing::Values("openmpi", "mpich"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace aimaster::c4d
