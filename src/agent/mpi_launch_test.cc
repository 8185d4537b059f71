#include "agent/mpi_launch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "journal/temporary_directory.h"

namespace aimaster::agent {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

const MpiSurroundings kSurroundings{.programs = "/opt/aimaster", .token_file = "/jobs/x/token"};

v1::MpiPart LauncherOf(std::vector<std::pair<std::string, bool>> hosts, uint32_t slots = 2) {
  v1::MpiPart part;
  part.mutable_launcher()->set_port(12'345);
  for (const auto& [address, is_local] : hosts) {
    v1::MpiHost& host = *part.mutable_launcher()->add_hosts();
    host.set_address(address);
    host.set_slots(slots);
    host.set_is_local(is_local);
  }
  return part;
}

Launch OneRank(std::map<std::string, std::string> environment = {}) {
  Launch launch;
  launch.command = {"mpirun", "./x"};
  launch.ranks.push_back({.rank = 0, .local = 0, .environment = std::move(environment)});
  return launch;
}

TEST(MpiLaunch, AnotherJobGetsNothing) {
  Launch launch = OneRank();
  EXPECT_TRUE(AddMpi({}, AttemptDirectory("/a"), kSurroundings, launch).empty());
  EXPECT_TRUE(launch.ranks[0].environment.empty());
}

TEST(MpiLaunch, WithoutHostsMpirunCountsForItself) {
  Launch launch = OneRank();
  const auto files = AddMpi(LauncherOf({}), AttemptDirectory("/a"), kSurroundings, launch);
  const auto& environment = launch.ranks[0].environment;
  EXPECT_FALSE(environment.contains("OMPI_MCA_orte_default_hostfile"));
  EXPECT_FALSE(environment.contains("HYDRA_HOST_FILE"));
  EXPECT_EQ(environment.at("OMPI_MCA_orte_fork_agent"), "/opt/aimaster/aimaster-shim --mpi-rank");
  EXPECT_EQ(environment.at("HYDRA_LAUNCHER_EXEC"), "/opt/aimaster/aimaster-mpi");
  EXPECT_EQ(environment.at("AIMASTER_MPI_STATIONS"), "");
  EXPECT_EQ(launch.command, (std::vector<std::string>{"mpirun", "./x"}));
  EXPECT_EQ(files, (std::map<std::string, std::string>{{"mpi/launcher", "mpirun"}}));
}

TEST(MpiLaunch, AScriptIsNoMpirun) {
  const auto mark = [](std::vector<std::string> command) {
    Launch launch = OneRank();
    launch.command = std::move(command);
    return AddMpi(LauncherOf({}), AttemptDirectory("/a"), kSurroundings, launch).at("mpi/launcher");
  };
  EXPECT_EQ(mark({"/usr/bin/mpiexec.hydra", "-n", "2", "x"}), "mpirun");
  EXPECT_EQ(mark({"sh", "-c", "mpirun x"}), "");
  EXPECT_EQ(mark({"timeout", "9", "mpirun", "x"}), "");
}

TEST(MpiLaunch, OneHostIsCalledLocalhost) {
  Launch launch = OneRank();
  const auto files = AddMpi(LauncherOf({{"10.0.0.1", true}}, 4), AttemptDirectory("/a"), kSurroundings, launch);
  EXPECT_EQ(files.at("mpi/hosts.openmpi"), "localhost slots=4\n");
  EXPECT_EQ(files.at("mpi/hosts.hydra"), "localhost:4\n");
  EXPECT_EQ(launch.ranks[0].environment.at("OMPI_MCA_orte_default_hostfile"), "/a/mpi/hosts.openmpi");
}

TEST(MpiLaunch, OtherHostsHaveStations) {
  Launch launch = OneRank();
  const auto files = AddMpi(LauncherOf({{"10.0.0.1", true}, {"10.0.0.2", false}, {"10.0.0.3", false}}),
                            AttemptDirectory("/a"), kSurroundings, launch);
  EXPECT_EQ(files.at("mpi/hosts.hydra"), "10.0.0.1:2\n10.0.0.2:2\n10.0.0.3:2\n");
  EXPECT_EQ(launch.ranks[0].environment.at("AIMASTER_MPI_STATIONS"), "10.0.0.2 10.0.0.3");
  EXPECT_EQ(launch.ranks[0].environment.at("AIMASTER_MPI_PORT"), "12345");
}

TEST(MpiLaunch, AForkAgentOfTheUsersStays) {
  Launch launch = OneRank({{"OMPI_MCA_orte_fork_agent", "/usr/bin/numactl"}});
  AddMpi(LauncherOf({}), AttemptDirectory("/a"), kSurroundings, launch);
  EXPECT_EQ(launch.ranks[0].environment.at("OMPI_MCA_orte_fork_agent"), "/usr/bin/numactl");
}

TEST(MpiLaunch, AWorkerWaitsInPlaceOfTheCommand) {
  v1::MpiPart part;
  part.mutable_station()->set_address("10.0.0.2");
  part.mutable_station()->set_port(12'345);
  Launch launch = OneRank();
  AddMpi(part, AttemptDirectory("/a"), kSurroundings, launch);
  EXPECT_EQ(launch.command, (std::vector<std::string>{"/opt/aimaster/aimaster-mpi", "--station"}));
  EXPECT_EQ(launch.ranks[0].environment.at("AIMASTER_MPI_ADDRESS"), "10.0.0.2");
}

// The ends of ranks as their parents write them.
class MpiRankEnds : public testing::Test {
 protected:
  MpiRankEnds() { fs::create_directories(fs::path(directory_.path()) / "mpi"); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(fs::path(directory_.path()) / "mpi" / name) << text;
  }
  void WriteLeft(uint32_t rank, uint32_t pid, Duration at) {
    Write("rank" + std::to_string(rank) + "." + std::to_string(pid) + ".exit.json",
          R"({"rank":0,"local":0,"pid":1,"code":0,"signal":null,"core":false,"time_ns":1,"monotonic_ns":)" +
              std::to_string(at.count()) + R"(,"stopped_by_us":false})");
  }
  void WriteEnd(uint32_t rank, uint32_t pid, int64_t monotonic_ns, bool by_launcher = false) {
    Write("rank" + std::to_string(rank) + "." + std::to_string(pid) + ".exit.json",
          R"({"rank":0,"local":0,"pid":1,"code":null,"signal":9,"core":false,"time_ns":1700000000000000000,)"
          R"("monotonic_ns":)" +
              std::to_string(monotonic_ns) + R"(,"stopped_by_us":)" + (by_launcher ? "true" : "false") + "}");
  }
  std::optional<RankEnd> Find(Duration now) const {
    return FindMpiRankEnd(directory_, {.rank = 5, .local = 0}, Monotonic{now});
  }
  RankEnd LauncherEnd(Duration now, int code = 137) const {
    return {.rank = {.rank = 5, .local = 0},
            .exit = RankExitFile{.code = code, .signal = std::nullopt, .monotonic_ns = now.count(), .exec_error = {}},
            .lost_reason = {}};
  }

  TemporaryDirectory temporary_;
  AttemptDirectory directory_{temporary_.path()};
};

TEST_F(MpiRankEnds, NoneIsNone) { EXPECT_FALSE(Find(10s).has_value()); }

TEST_F(MpiRankEnds, TheFirstThatFailedByItselfCounts) {
  WriteEnd(1, 100, Duration(3s).count());
  WriteEnd(2, 200, Duration(2s).count());
  WriteEnd(3, 300, Duration(1s).count(), /*by_launcher=*/true);
  const auto end = Find(4s);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->mpi_rank->rank(), 2u);
  EXPECT_EQ(end->mpi_rank->pid(), 200u);
  EXPECT_EQ(end->rank.rank, 5u);
  EXPECT_EQ(end->exit->signal, 9);
}

TEST_F(MpiRankEnds, OneThatWasLongBeforeIsNoCause) {
  WriteEnd(1, 100, Duration(1s).count());
  EXPECT_TRUE(Find(31s).has_value());
  EXPECT_FALSE(Find(31s + 1ms).has_value());
}

// mpirun … || mpirun …
TEST_F(MpiRankEnds, NorIsOneOfAnMpirunThatWasSurvived) {
  WriteEnd(1, 100, Duration(1s).count());
  WriteEnd(2, 200, Duration(10s).count());
  WriteEnd(3, 300, Duration(12s).count());
  const auto end = Find(13s);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->mpi_rank->rank(), 2u);
}

TEST_F(MpiRankEnds, NorIsOneThatCameLater) {
  WriteEnd(1, 100, Duration(2s).count());
  EXPECT_FALSE(Find(1s).has_value());
}

TEST_F(MpiRankEnds, WhatIsNoSuchFileIsPassedOver) {
  WriteEnd(1, 100, Duration(2s).count());
  Write("rank2.200.exit.json", "{\"code\":");
  Write("rank.1.exit.json", "{}");
  Write("rank3.exit.json", "{}");
  Write("hosts.openmpi", "localhost slots=4\n");
  EXPECT_EQ(Find(4s)->mpi_rank->rank(), 1u);
}

TEST_F(MpiRankEnds, TheLauncherIsBlamedForNothingThatARankHasDone) {
  WriteEnd(2, 200, Duration(2s).count());
  RankEnd end = LauncherEnd(3s);
  BlameMpiRank(directory_, end);
  EXPECT_EQ(end.exit->signal, 9);
  EXPECT_EQ(end.mpi_rank->launcher_status(), 137);
  EXPECT_EQ(end.rank.rank, 5u);
}

// Its ranks die because it does, or its daemon.
TEST_F(MpiRankEnds, AStationThatEndsIsItself) {
  WriteEnd(2, 200, Duration(2s).count());
  Write("station", "");
  RankEnd end = LauncherEnd(3s);
  BlameMpiRank(directory_, end);
  EXPECT_FALSE(end.mpi_rank.has_value());
}

TEST_F(MpiRankEnds, ALauncherThatWeStoppedIsItself) {
  WriteEnd(2, 200, Duration(2s).count());
  RankEnd end = LauncherEnd(3s);
  end.exit->stopped_by_us = true;
  BlameMpiRank(directory_, end);
  EXPECT_FALSE(end.mpi_rank.has_value());
}

// MPICH's mpirun: what the ranks died of that it killed, or 0.
TEST_F(MpiRankEnds, WhoLeavesWithoutAGoodbyeIsBlamedWhateverMpirunSays) {
  WriteLeft(2, 200, 2s);
  Write("rank1.100.alive", "");
  Write("rank0.50.alive", "");
  Write("launcher", "mpirun");
  for (const int said : {9, 0}) {
    RankEnd end = LauncherEnd(3s, said);
    BlameMpiRank(directory_, end);
    ASSERT_TRUE(end.mpi_rank.has_value());
    EXPECT_EQ(end.mpi_rank->rank(), 2u);
    EXPECT_EQ(end.mpi_rank->launcher_status(), said);
    EXPECT_EQ(end.exit->code, 1);
    EXPECT_EQ(end.mpi_words,
              "MPI rank 2 left with exit code 0 and without MPI_Finalize, so mpirun killed 2 others on this host");
  }
}

TEST_F(MpiRankEnds, ItMayHaveBeenOnAnotherHost) {
  Write("rank1.100.alive", "");
  Write("launcher", "mpirun");
  RankEnd end = LauncherEnd(3s, 0);
  BlameMpiRank(directory_, end);
  EXPECT_EQ(end.exit->code, 1);
  EXPECT_FALSE(end.mpi_rank.has_value());
  EXPECT_NE(end.mpi_words.find("another host"), std::string::npos);
}

TEST_F(MpiRankEnds, AScriptThatEndsWellKnowsWhy) {
  WriteLeft(2, 200, 2s);
  Write("rank1.100.alive", "");
  Write("launcher", "");
  RankEnd end = LauncherEnd(3s, 0);
  BlameMpiRank(directory_, end);
  EXPECT_EQ(end.exit->code, 0);
}

// mpirun hostname
TEST_F(MpiRankEnds, AProgramThatIsNoneOfMpisOwesNoGoodbye) {
  WriteLeft(2, 200, 2s);
  Write("launcher", "mpirun");
  for (const int said : {3, 0}) {
    RankEnd end = LauncherEnd(3s, said);
    BlameMpiRank(directory_, end);
    EXPECT_EQ(end.exit->code, said);
    EXPECT_FALSE(end.mpi_rank.has_value());
  }
}

TEST_F(MpiRankEnds, WhoFailedComesBeforeWhoLeft) {
  WriteLeft(2, 200, 1s);
  Write("rank1.100.alive", "");
  WriteEnd(3, 300, Duration(2s).count());
  RankEnd end = LauncherEnd(3s);
  BlameMpiRank(directory_, end);
  EXPECT_EQ(end.mpi_rank->rank(), 3u);
}

}  // namespace
}  // namespace aimaster::agent
