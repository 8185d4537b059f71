// What an agent makes of what its predecessor left, whatever has become of the documents.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "agent/agent.h"
#include "agent/agent_test_support.h"
#include "agent/limits.h"

namespace aimaster::agent {
namespace {

using enum v1::Report::BodyCase;

class AdoptionTest : public AgentTest {
 protected:
  Claim MakeClaim(uint32_t ranks = 1) const {
    Claim claim{.key = {0, 0},
                .job_id = kJobId,
                .instance_name = kJobId + "-worker-0",
                .boot_id = ReadBootId(),
                .log_directory = Directory().path(),
                .ranks = {}};
    for (uint32_t i = 0; i < ranks; ++i) claim.ranks.push_back({i, i});
    return claim;
  }
  void LeaveClaim(const Claim& claim) {
    ASSERT_TRUE(MakeDirectories(Directory().path()));
    ASSERT_TRUE(WriteSmallFile(Directory().File("claim.json"), FormatClaim(claim)));
  }
  // Of ranks that run until they are told to go; then the agent is killed.
  void RunAndLoseTheAgent(uint32_t count = 1,
                          const std::string& script = "echo up; while [ ! -e $JOB/go ]; do sleep 0.02; done; exit 7") {
    Script(script);
    StartBoth();
    ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
    OrderStart(0, count);
    ASSERT_TRUE(Await(kAttemptReady));
    shim = ShimPid();
    shim_ticks = ReadStat(shim)->start_ticks;
    for (uint32_t i = 0; i < count; ++i) former_ranks.push_back(RankPid(static_cast<int>(i)));
    KillAgent(SIGKILL);
    master->reports.clear();
  }
  void Overwrite(const char* name) { ASSERT_TRUE(WriteSmallFile(Directory().File(name), "{ this is no document")); }
  void Remove(const char* name) { std::filesystem::remove(Directory().File(name)); }
  void Welcomed(size_t times) {
    ASSERT_TRUE(master->Until([&] { return master->hellos.size() == times && master->heartbeats > 0; }));
  }
  size_t Starts() const {
    const auto text = ReadSmallFile(job_directory + "/starts", 100'000).value_or("");
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  pid_t shim = 0;
  std::vector<pid_t> former_ranks;
  uint64_t shim_ticks = 0;
};

// ---- nothing was ever alive ----

TEST_F(AdoptionTest, AClaimWhoseShimWasNeverBornIsStartedInPlace) {
  Script("echo $$ >> $JOB/starts; echo up; exec sleep $0");
  LeaveClaim(MakeClaim());
  StartBoth();
  Welcomed(1);
  EXPECT_EQ(master->hellos.back().live_size(), 1) << "whoever has given it up has it stopped";
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  EXPECT_FALSE(Has(kRankExited));
  EXPECT_FALSE(Has(kAttemptEnded));
  EXPECT_FALSE(Directory().HasTombstone());
  OrderStart();
  OrderStop();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Starts(), 1u);
}

TEST_F(AdoptionTest, AClaimWhoseShimWasNeverBornCanBeStopped) {
  Script("echo $$ >> $JOB/starts; exec sleep $0");
  LeaveClaim(MakeClaim());
  StartBoth();
  Welcomed(1);
  OrderStop();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(End().lost_reason(), "");
  EXPECT_FALSE(Has(kRankExited)) << "there was none";
  master->reports.clear();
  OrderStart();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Starts(), 0u);
}

// The former agent had spawned it when it was killed; it comes to its lock when it is its turn.
TEST_F(AdoptionTest, AShimThatIsBornLateIsFoundAndNotDoubled) {
  RunAndLoseTheAgent(1, "echo up; exec sleep $0");
  ::kill(shim, SIGKILL);
  ASSERT_TRUE(master->Until([&] { return FindProcesses(word).empty(); }));
  // Back to what the directory was before the shim: the claim and the launch file.
  for (const auto& entry : std::filesystem::directory_iterator(Directory().path())) {
    const std::string name = entry.path().filename();
    if (name != "claim.json" && name != "launch") std::filesystem::remove(entry.path());
  }
  StartAgent();
  Welcomed(2);
  const std::string path = std::string(std::getenv("AIMASTER_BIN")) + "/aimaster-shim";
  const pid_t late = ::fork();
  if (late == 0) {
    ::execl(path.c_str(), path.c_str(), Directory().path().c_str(), nullptr);
    ::_exit(127);
  }
  ASSERT_TRUE(Await(kAttemptStarted));
  EXPECT_EQ(ShimPid(), late);
  OrderStart();
  OrderStop(0, true);
  ASSERT_TRUE(master->Until([&] { return ::waitpid(late, nullptr, WNOHANG) == late; }));
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(master->Count(kRankExited), 1u);
}

TEST_F(AdoptionTest, AnAttemptWhoseShimDiedBesideItsAgentIsStillLost) {
  RunAndLoseTheAgent();
  ::kill(shim, SIGKILL);
  StartAgent();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_NE(Exit().lost_reason(), "") << "somebody had lived there";
}

// ---- the claim is gone ----

TEST_F(AdoptionTest, WithoutItsClaimItIsLedByTheLaunchFile) {
  for (const bool is_garbage : {true, false}) {
    SCOPED_TRACE(is_garbage);
    if (is_garbage) {
      RunAndLoseTheAgent(2);
      Overwrite("claim.json");
    } else {
      KillAgent(SIGKILL);
      master->reports.clear();
      Remove("claim.json");
    }
    StartAgent();
    ASSERT_TRUE(Await(kAttemptReady));
    EXPECT_EQ(master->hellos.back().live_size(), 1);
    EXPECT_EQ(ShimPid(), shim);
    OrderStart(0, 2);
    for (const pid_t rank : former_ranks) EXPECT_EQ(::kill(rank, 0), 0);
  }
  ASSERT_TRUE(WriteSmallFile(job_directory + "/go", ""));
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(master->Count(kRankExited), 2u);
  EXPECT_EQ(Exit().code(), 7);
  EXPECT_EQ(End().lost_reason(), "");
}

TEST_F(AdoptionTest, WhomNobodyKnowsIsEndedAndToldOfWhenAskedFor) {
  RunAndLoseTheAgent(2);
  Overwrite("claim.json");
  Overwrite("launch");
  StartAgent();
  Welcomed(2);
  EXPECT_EQ(master->hellos.back().live_size(), 0);
  OrderStop();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_TRUE(FindProcesses(word).empty());
  ASSERT_EQ(master->Count(kRankExited), 2u) << "the shim knew its ranks";
  EXPECT_NE(Exit().lost_reason().find("its claim is lost or damaged"), std::string::npos) << Exit().lost_reason();
  EXPECT_NE(End().lost_reason(), "");
  KillAgent(SIGKILL);
  master->reports.clear();
  StartAgent();
  Welcomed(3);
  OrderStop();
  ASSERT_TRUE(Await(kAttemptEnded)) << "the next agent tells the same";
}

TEST_F(AdoptionTest, WhomNobodyKnowsIsEndedThoughNotEvenItsRanksAreKnown) {
  RunAndLoseTheAgent();
  for (const char* name : {"claim.json", "launch", "started.json"}) Remove(name);
  StartAgent();
  Welcomed(2);
  ASSERT_TRUE(master->Until([&] { return FindProcesses(word).empty(); }));
  OrderStop();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_NE(End().lost_reason().find("its claim is lost or damaged"), std::string::npos) << End().lost_reason();
}

TEST_F(AdoptionTest, WhoseDirectoryIsGoneIsFoundByWhatItSaysOfItself) {
  RunAndLoseTheAgent(2);
  const auto before = FindProcesses(word);
  std::filesystem::remove_all(Directory().path());
  StartAgent();
  Welcomed(2);
  OrderStart(1);
  ASSERT_TRUE(Await(kAttemptStarted, 1));
  for (const pid_t pid : FindProcesses(word)) EXPECT_EQ(std::ranges::count(before, pid), 0);
  ASSERT_TRUE(master->Until([&] { return !IsAlive({shim, shim_ticks}); })) << "it has nobody left";
}

TEST_F(AdoptionTest, NoSuccessorStartsBesideOneWhomNobodyKnows) {
  RunAndLoseTheAgent();
  Overwrite("claim.json");
  Overwrite("launch");
  ::kill(shim, SIGSTOP);  // it takes a while to be ended
  const auto before = FindProcesses(word);
  StartAgent();
  Welcomed(2);
  OrderStart(1);
  ASSERT_TRUE(Await(kAttemptStarted, 1));
  EXPECT_EQ(Directory().Lock().state, ShimLock::State::kFree) << "its predecessor lives";
  for (const pid_t pid : FindProcesses(word)) EXPECT_EQ(std::ranges::count(before, pid), 0);
}

TEST_F(AdoptionTest, TheOrderToStartSaysWhoLivesThere) {
  Script("echo $$ >> $JOB/starts; echo up; exec sleep $0");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  KillAgent(SIGKILL);
  Overwrite("claim.json");
  Overwrite("launch");
  master->reports.clear();
  StartAgent();
  Welcomed(2);
  OrderStart();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_NE(Exit().lost_reason().find("its claim is lost or damaged"), std::string::npos) << Exit().lost_reason();
  EXPECT_EQ(Starts(), 1u) << "it was started beside itself";
}

TEST_F(AdoptionTest, WhoHoldsTheLockLivesWhateverTheClaimSays) {
  RunAndLoseTheAgent();
  Claim claim = *Directory().ReadClaim();
  claim.boot_id = "another boot";
  ASSERT_TRUE(WriteSmallFile(Directory().File("claim.json"), FormatClaim(claim)));
  StartAgent();
  ASSERT_TRUE(Await(kAttemptStarted));
  EXPECT_FALSE(Has(kAttemptEnded));
  OrderStop();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Exit().signal(), SIGTERM);
}

TEST_F(AdoptionTest, WhoseLockWasRemovedLivesAllTheSame) {
  RunAndLoseTheAgent();
  Remove("lock");
  StartAgent();
  ASSERT_TRUE(Await(kAttemptStarted));
  EXPECT_EQ(ShimPid(), shim);
  ASSERT_TRUE(WriteSmallFile(job_directory + "/go", ""));
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(Exit().code(), 7);
  EXPECT_EQ(End().lost_reason(), "");
}

TEST_F(AdoptionTest, WhoseLockWasRemovedAndWhoseWordsAreOfAnotherIsNotTakenForOurs) {
  RunAndLoseTheAgent();
  const std::filesystem::path other = Directory(5).path();
  std::filesystem::create_directories(other);
  for (const char* name : {"claim.json", "launch", "started.json"}) {
    std::filesystem::copy_file(Directory().File(name), other / name);
  }
  StartAgent();
  Welcomed(2);
  EXPECT_FALSE(Has(kAttemptStarted, 5)) << "one shim was taken for two attempts";
}

TEST_F(AdoptionTest, WhatTheShimSaidOfItselfMayBeDamagedToo) {
  RunAndLoseTheAgent(2);
  Overwrite("started.json");
  StartAgent();
  ASSERT_TRUE(Await(kAttemptStarted));
  EXPECT_EQ(ShimPid(), shim);
  ASSERT_TRUE(WriteSmallFile(job_directory + "/go", ""));
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(master->Count(kRankExited), 2u);
  EXPECT_EQ(Exit().code(), 7);
}

TEST_F(AdoptionTest, AClaimOfAnotherPlaceIsNone) {
  RunAndLoseTheAgent();
  Claim claim = *Directory().ReadClaim();
  claim.instance_name = kJobId + "-worker-1";
  claim.key.instance = 1;
  ASSERT_TRUE(WriteSmallFile(Directory().File("claim.json"), FormatClaim(claim)));
  StartAgent();
  ASSERT_TRUE(Await(kAttemptStarted));
  EXPECT_EQ(ShimPid(), shim);
}

// ---- there is no room ----

TEST_F(AdoptionTest, ATombstoneThatCanNotBeWrittenIsWrittenLater) {
  const std::string in_the_way = Directory().File("tombstone.tmp");
  ASSERT_TRUE(MakeDirectories(in_the_way));
  StartBoth();
  Welcomed(1);
  OrderStop();
  ASSERT_TRUE(Await(kAttemptEnded)) << "nothing lives there, whether that can be written or not";
  EXPECT_FALSE(Directory().HasTombstone());
  std::filesystem::remove(in_the_way);
  EXPECT_TRUE(AwaitFile(Directory().File("tombstone")));
}

TEST_F(AdoptionTest, AnEndThatCanNotBeWrittenIsWrittenLater) {
  Script("echo up; exec sleep $0");
  StartBoth();
  Welcomed(1);
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  const std::string in_the_way = Directory().File("ended.json.tmp");
  ASSERT_TRUE(MakeDirectories(in_the_way));
  ::kill(ShimPid(), SIGKILL);
  ASSERT_TRUE(Await(kAttemptEnded));
  OrderStart(1);
  ASSERT_TRUE(Await(kAttemptReady, 1)) << "the successor does not wait for it";
  EXPECT_FALSE(FileExists(Directory().File("ended.json")));
  std::filesystem::remove(in_the_way);
  EXPECT_TRUE(AwaitFile(Directory().File("ended.json")));
}

// ---- there are no descriptors ----

TEST_F(AdoptionTest, WithFewDescriptorsEveryDeathIsHeardOfAndTheLimitNamed) {
  RunAndLoseTheAgent(16);
  StartAgent({}, {"prlimit", "--nofile=32:32"});
  ASSERT_TRUE(Await(kAttemptStarted));
  EXPECT_NE(master->hellos.back().trouble().find("may have 32 files open and would need "), std::string::npos)
      << master->hellos.back().trouble();
  EXPECT_FALSE(Directory().HasTombstone());
  for (int rank = 0; rank < 16; ++rank) ::kill(RankPid(rank), SIGKILL);
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(master->Count(kRankExited), 16u);
  EXPECT_EQ(Exit().signal(), SIGKILL);
  EXPECT_EQ(End().lost_reason(), "");
}

TEST_F(AdoptionTest, WithFewDescriptorsOneDeathAmongManyIsHeardOf) {
  RunAndLoseTheAgent(16);
  StartAgent({}, {"prlimit", "--nofile=32:32"});
  ASSERT_TRUE(Await(kAttemptStarted));
  ::kill(RankPid(15), SIGKILL);
  ASSERT_TRUE(Await(kRankExited));
  EXPECT_EQ(Exit().rank(), 15u);
  EXPECT_FALSE(Directory().HasTombstone());
  OrderStop();
  ASSERT_TRUE(Await(kAttemptEnded));
  EXPECT_EQ(master->Count(kRankExited), 16u);
}

}  // namespace
}  // namespace aimaster::agent
