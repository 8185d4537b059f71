// The parent of a rank of MPI: it ends as the rank does, and says how that was.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdlib>

#include "shim/shim_test_support.h"

namespace aimaster::shim_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

class MpiRank : public testing::Test {
 protected:
  // As OpenMPI's daemon starts it, or MPICH's: in a group of its own.
  std::unique_ptr<Child> Start(const Words& command, bool is_openmpi = true) const {
    Words words{ShimPath(), "--mpi-rank"};
    words.insert(words.end(), command.begin(), command.end());
    return std::make_unique<Child>(words, folder_.path() / "messages", [this, is_openmpi] {
      setpgid(0, 0);
      setenv("AIMASTER_MPI_DIR", folder_.path().c_str(), 1);
      setenv("FOLDER", folder_.path().c_str(), 1);
      setenv(is_openmpi ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK", "2", 1);
      setenv(is_openmpi ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE", "4", 1);
      setenv(is_openmpi ? "OMPI_COMM_WORLD_LOCAL_RANK" : "MPI_LOCALRANKID", "0", 1);
      setenv(is_openmpi ? "OMPI_COMM_WORLD_LOCAL_SIZE" : "MPI_LOCALNRANKS", "2", 1);
    });
  }
  int Run(const Words& command, bool is_openmpi = true) const { return Start(command, is_openmpi)->Wait(); }

  // What was written down; null when nothing was.
  json Exit() const {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().extension() == ".json") return json::parse(ReadFile(entry.path()));
    }
    return nullptr;
  }
  // The mark of the one rank, or nothing.
  fs::path Alive() const {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().extension() == ".alive") return entry.path();
    }
    return {};
  }
  std::string Read(const std::string& name) const { return ReadFile(folder_.path() / name); }
  bool Has(const std::string& name) const { return fs::exists(folder_.path() / name); }

 private:
  TemporaryDirectory folder_;
};

TEST_F(MpiRank, EndsAsTheRankDoesAndSaysHow) {
  EXPECT_EQ(Run({"/bin/sh", "-c", "exit 7"}), 7);
  const json exit = Exit();
  ASSERT_TRUE(exit.is_object());
  EXPECT_EQ(exit["rank"], 2);
  EXPECT_EQ(exit["code"], 7);
  EXPECT_EQ(exit["stopped_by_us"], false);
  EXPECT_GT(exit["monotonic_ns"].get<int64_t>(), 0);
}

TEST_F(MpiRank, DiesOfTheSameSignal) {
  EXPECT_EQ(Run({"/bin/sh", "-c", "kill -SEGV $$"}), 128 + SIGSEGV);
  EXPECT_EQ(Exit()["signal"], SIGSEGV);
}

TEST_F(MpiRank, SaysNothingOfAGoodEnd) {
  EXPECT_EQ(Run({"true"}), 0);
  EXPECT_EQ(Exit(), nullptr);
  EXPECT_TRUE(Has("watched"));
  EXPECT_FALSE(fs::exists(Alive()));
}

TEST_F(MpiRank, WhatIsKilledWithItsParentLeavesItsMark) {
  const auto child = Start({"/bin/sh", "-c", "echo $$ > $FOLDER/began; exec sleep 60"});
  ASSERT_TRUE(Eventually([&] { return !Read("began").empty() && fs::exists(Alive()); }));
  kill(-child->pid(), SIGKILL);
  EXPECT_EQ(child->Wait(), 128 + SIGKILL);
  EXPECT_TRUE(fs::exists(Alive()));
  EXPECT_EQ(Exit(), nullptr);
}

// The process manager of MPICH closes its end once it has heard of MPI_Finalize.
TEST_F(MpiRank, WhoLeavesWithoutAGoodbyeIsWrittenDown) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  setenv("PMI_FD", std::to_string(ends[1]).c_str(), 1);
  EXPECT_EQ(Run({"true"}, /*is_openmpi=*/true), 0);
  EXPECT_EQ(Exit(), nullptr) << "OpenMPI tells of it itself";
  EXPECT_EQ(Run({"true"}, /*is_openmpi=*/false), 0);
  EXPECT_EQ(Exit()["code"], 0);
  close(ends[0]);
  close(ends[1]);
  unsetenv("PMI_FD");
}

TEST_F(MpiRank, WhoSaidGoodbyeIsNot) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  setenv("PMI_FD", std::to_string(ends[1]).c_str(), 1);
  close(ends[0]);
  EXPECT_EQ(Run({"true"}, /*is_openmpi=*/false), 0);
  EXPECT_EQ(Exit(), nullptr);
  close(ends[1]);
  unsetenv("PMI_FD");
}

TEST_F(MpiRank, TheRankKnowsItsNumberWhicheverLibraryGaveIt) {
  for (const bool is_openmpi : {true, false}) {
    EXPECT_EQ(
        Run({"/bin/sh", "-c", "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE > $FOLDER/numbers"}, is_openmpi),
        0);
    EXPECT_EQ(Read("numbers"), "2 4 0 2\n");
  }
}

// Of a shim that has such libraries beside it, as this one may or may not.
TEST_F(MpiRank, GetsTheLibraryThatRecordsForItsMpiWhereAJobIsRecorded) {
  const Words say{"/bin/sh", "-c", "echo \"$LD_PRELOAD\" > $FOLDER/preloaded"};
  setenv("LD_PRELOAD", "", 1);
  EXPECT_EQ(Run(say), 0);
  EXPECT_EQ(Read("preloaded"), "\n") << "nobody asked for it";
  setenv("AIMASTER_C4D_DIR", "/nowhere", 1);
  for (const bool is_openmpi : {true, false}) {
    const fs::path library =
        fs::path(ShimPath()).parent_path() / (is_openmpi ? "libaimaster-pmpi-openmpi.so" : "libaimaster-pmpi-mpich.so");
    const bool is_here = fs::exists(library);
    EXPECT_EQ(Run(say, is_openmpi), 0);
    EXPECT_EQ(Read("preloaded"), is_here ? library.string() + "\n" : "\n");
  }
  unsetenv("AIMASTER_C4D_DIR");
  unsetenv("LD_PRELOAD");
}

TEST_F(MpiRank, AProgramThatIsNotThereIsNamed) {
  EXPECT_EQ(Run({"./no-such-program"}), 127);
  EXPECT_EQ(Exit()["exec_errno"], ENOENT);
  EXPECT_NE(Exit()["exec_error"].get<std::string>().find("no-such-program"), std::string::npos);
  EXPECT_NE(Read("messages").find("cannot run ./no-such-program"), std::string::npos);
}

// The launcher ends the ranks of a job because another one has failed.
TEST_F(MpiRank, AnEndThatTheLauncherMadeIsMarked) {
  const auto rank = Start({"/bin/sh", "-c", "touch $FOLDER/up; sleep 60"});
  ASSERT_TRUE(Eventually([this] { return Has("up"); }));
  kill(-rank->pid(), SIGTERM);
  EXPECT_EQ(rank->Wait(), 128 + SIGTERM);
  EXPECT_EQ(Exit()["signal"], SIGTERM);
  EXPECT_EQ(Exit()["stopped_by_us"], true);
}

TEST_F(MpiRank, ItDoesNotOutliveAParentThatIsKilled) {
  const auto rank = Start({"/bin/sh", "-c", "echo $$ > $FOLDER/pid; touch $FOLDER/up; sleep 60"});
  ASSERT_TRUE(Eventually([this] { return Has("up"); }));
  const pid_t pid = std::stoi(Read("pid"));
  rank->Signal(SIGKILL);
  EXPECT_EQ(rank->Wait(), 128 + SIGKILL);
  EXPECT_TRUE(Eventually([pid] { return !Lives(pid); }));
  EXPECT_EQ(Exit(), nullptr);
}

// OpenMPI passes a signal on to the process that it has started; MPICH to its group, where the rank hears it itself.
TEST_F(MpiRank, ASignalThatIsPassedOnReachesTheRankOnce) {
  const std::string script =
      "trap 'echo heard >> $FOLDER/heard' USR1; touch $FOLDER/up; "
      "while [ ! -e $FOLDER/enough ]; do sleep 0.01; done";
  for (const bool is_openmpi : {true, false}) {
    const auto rank = Start({"/bin/sh", "-c", script}, is_openmpi);
    ASSERT_TRUE(Eventually([this] { return Has("up"); }));
    kill(is_openmpi ? rank->pid() : -rank->pid(), SIGUSR1);
    EXPECT_TRUE(Eventually([this] { return Has("heard"); }));
    EXPECT_TRUE(Eventually([&] {
      Start({"/bin/sh", "-c", "touch $FOLDER/enough"})->Wait();
      return rank->Ended();
    }));
    EXPECT_EQ(Read("heard"), "heard\n");
    Start({"/bin/sh", "-c", "rm $FOLDER/heard $FOLDER/up $FOLDER/enough"})->Wait();
  }
}

}  // namespace
}  // namespace aimaster::shim_test
