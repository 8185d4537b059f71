#include "journal/job_directory.h"

#include "journal/codec.h"
#include "journal/journal_harness.h"

namespace aimaster {
namespace {

JobSpec SpecOf(const std::string& id, const std::string& name = "") {
  JobSpec spec;
  spec.id = *JobId::Parse(id);
  spec.name = name;
  spec.roles = {{Role::kWorker, 2, 1}};
  spec.command = {"python", "train.py"};
  return spec;
}

class JobDirectoryTest : public testing::Test {
 protected:
  JobDirectory Create(const std::string& id, const std::string& name = "") {
    Result<JobDirectory> directory = JobDirectory::Create(home_, SpecOf(id, name));
    EXPECT_TRUE(directory) << directory.error().message;
    return std::move(*directory);
  }

  TemporaryDirectory place_;
  const Home home_{place_ / "home"};
};

TEST_F(JobDirectoryTest, ANewJobHasItsSpecAndASecretOfItsOwn) {
  const JobDirectory directory = Create("dlcaaaaaaaaaaaaa", "first");
  EXPECT_EQ(directory.path(), place_ / "home/jobs/dlcaaaaaaaaaaaaa");
  EXPECT_EQ(*directory.ReadSpec(), SpecOf("dlcaaaaaaaaaaaaa", "first"));
  EXPECT_EQ(directory.ReadToken()->size(), 64u);
  EXPECT_NE(*directory.ReadToken(), *Create("dlcbbbbbbbbbbbbb").ReadToken());

  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(directory.path()).permissions(), perms(0700));
  EXPECT_EQ(std::filesystem::status(directory.token()).permissions(), perms(0600));
  EXPECT_EQ(std::filesystem::status(directory.spec()).permissions(), perms(0600)) << "it holds the environment";
}

TEST_F(JobDirectoryTest, AJobIsNotMadeTwice) {
  const JobDirectory directory = Create("dlcaaaaaaaaaaaaa", "first");
  const Result<JobDirectory> again = JobDirectory::Create(home_, SpecOf("dlcaaaaaaaaaaaaa", "second"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(directory.ReadSpec()->name, "first");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(home_.jobs()), {}), 1) << "nothing half made is left";
}

TEST_F(JobDirectoryTest, WhatACrashLeftHalfMadeIsNoJobAndNoHindrance) {
  std::filesystem::create_directories(home_.jobs() / (".dlcaaaaaaaaaaaaa." + std::to_string(getpid())) / "nodes");
  EXPECT_TRUE(JobDirectoriesOf(home_).empty());
  Create("dlcaaaaaaaaaaaaa");
  EXPECT_EQ(JobDirectoriesOf(home_).size(), 1u);
}

TEST_F(JobDirectoryTest, AHomeThatCanNotBeWrittenIsSaidInOneLine) {
  std::ofstream(place_ / "file") << "";
  const Result<JobDirectory> made = JobDirectory::Create(Home(place_ / "file/home"), SpecOf("dlcaaaaaaaaaaaaa"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(made.error().message, "cannot write in " + (place_ / "file/home").string() +
                                      ": Not a directory; set AIMASTER_HOME to a directory of yours with free space");
}

TEST_F(JobDirectoryTest, AHomeThatIsAnothersIsSaidInOneLine) {
  const std::string wrong = InChildProcess([&]() -> std::string {
    std::filesystem::create_directories(home_.jobs());
    std::filesystem::permissions(home_.jobs(), std::filesystem::perms(0555));
    std::filesystem::permissions(place_.path(), std::filesystem::perms(0755));
    if (geteuid() == 0 && setuid(65534) != 0) return "cannot become nobody";
    const Result<JobDirectory> made = JobDirectory::Create(home_, SpecOf("dlcaaaaaaaaaaaaa"));
    if (made) return "it was made";
    return made.error().message.find(home_.jobs().string() + ": Permission denied; set AIMASTER_HOME") !=
                   std::string::npos
               ? ""
               : made.error().message;
  });
  EXPECT_EQ(wrong, "");
}

TEST_F(JobDirectoryTest, AJobIsFoundByIdByPrefixAndByName) {
  const auto first = Create("dlcaaaaaaaaaaaaa", "resnet").path();
  const auto second = Create("dlcabbbbbbbbbbbb", "bert").path();
  EXPECT_EQ(FindJob(home_, "dlcaaaaaaaaaaaaa")->path(), first);
  EXPECT_EQ(FindJob(home_, "dlcaa")->path(), first);
  EXPECT_EQ(FindJob(home_, "dlcab")->path(), second);
  EXPECT_EQ(FindJob(home_, "bert")->path(), second);
}

TEST_F(JobDirectoryTest, ATextThatNamesSeveralJobsGetsTheirIds) {
  Create("dlcaaaaaaaaaaaaa", "bert");
  Create("dlcabbbbbbbbbbbb", "bert");
  for (const char* text : {"bert", "dlca"}) {
    const Result<JobDirectory> found = FindJob(home_, text);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(found.error().message,
              "'" + std::string(text) + "' names 2 jobs (dlcaaaaaaaaaaaaa, dlcabbbbbbbbbbbb); give the id");
  }
}

TEST_F(JobDirectoryTest, AJobThatDoesNotExistIsSaidToBeMissing) {
  Create("dlcaaaaaaaaaaaaa");
  for (const char* text : {"dlczzzzzzzzzzzzz", "dlcz", "bert", "", "dlc", "../home", ".", "\x1b[2J"}) {
    const Result<JobDirectory> found = FindJob(home_, text);
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.error().kind, ErrorKind::kNotFound);
    EXPECT_EQ(found.error().message.find('\x1b'), std::string::npos) << "a terminal is not commanded by it";
  }
  EXPECT_EQ(FindJob(Home(place_ / "no-home"), "bert").error().kind, ErrorKind::kNotFound);
}

TEST_F(JobDirectoryTest, ADirectoryThatLostItsSpecIsSaidToHave) {
  const JobDirectory directory = Create("dlcaaaaaaaaaaaaa");
  std::filesystem::remove(directory.spec());
  EXPECT_NE(FindJob(home_, "dlcaaaaaaaaaaaaa").error().message.find("has no spec.json"), std::string::npos);
}

TEST_F(JobDirectoryTest, ADamagedSpecIsNamed) {
  const JobDirectory directory = Create("dlcaaaaaaaaaaaaa");
  std::ofstream(directory.spec()) << R"({"command":7})";
  EXPECT_EQ(directory.ReadSpec().error().message, directory.spec().string() + ": command: a list is expected");
  std::ofstream(directory.spec()) << "{}";
  EXPECT_EQ(directory.ReadSpec().error().message, directory.spec().string() + ": it names no job");
}

TEST_F(JobDirectoryTest, AMasterLivesWhileItsProcessDoes) {
  const JobDirectory directory = Create("dlcaaaaaaaaaaaaa");
  EXPECT_EQ(directory.FindLiveMaster().error().kind, ErrorKind::kNotFound);

  const MasterAddress self{.host = "127.0.0.1",
                           .port = 4711,
                           .pid = getpid(),
                           .start_ticks = ProcessStartTicks(getpid()),
                           .epoch = Epoch{3}};
  ASSERT_NE(self.start_ticks, 0u);
  ASSERT_TRUE(directory.WriteMasterAddress(self));
  const Result<MasterAddress> live = directory.FindLiveMaster();
  ASSERT_TRUE(live) << live.error().message;
  EXPECT_EQ(live->port, 4711);
  EXPECT_EQ(live->epoch, Epoch{3});
  EXPECT_NE(live->node, "");

  MasterAddress other = self;
  other.start_ticks += 1;  // the pid was given to another process since
  ASSERT_TRUE(directory.WriteMasterAddress(other));
  EXPECT_EQ(directory.FindLiveMaster().error().kind, ErrorKind::kNotFound);
}

TEST_F(JobDirectoryTest, AMasterThatIsDeadOrOnAnotherMachineIsNotTakenForOneHere) {
  const JobDirectory directory = Create("dlcaaaaaaaaaaaaa");
  const std::string ticks = std::to_string(ProcessStartTicks(getpid())), pid = std::to_string(getpid());
  for (const std::string& text : std::vector<std::string>{
           R"({"host":"h","port":1,"pid":2147483647,"start_ticks":0,"epoch":1})",
           R"({"host":"h","port":1,"pid":0,"start_ticks":0,"epoch":1})", "{}",
           R"({"host":"h","port":1,"pid":)" + pid + R"(,"start_ticks":)" + ticks + R"(,"boot_id":"another"})"}) {
    std::ofstream(directory.path() / "master.json") << text;
    const Result<MasterAddress> live = directory.FindLiveMaster();
    ASSERT_FALSE(live) << text;
    EXPECT_EQ(live.error().kind, ErrorKind::kNotFound) << text;
  }
}

TEST_F(JobDirectoryTest, ADamagedAddressIsNamed) {
  const JobDirectory directory = Create("dlcaaaaaaaaaaaaa");
  std::ofstream(directory.path() / "master.json") << R"({"port":70000})";
  EXPECT_EQ(directory.ReadMasterAddress().error().message,
            (directory.path() / "master.json").string() + " is damaged: port: an integer out of range");
}

// Every test below sets the three variables that a home is found by.
class HomeTest : public testing::Test {
 protected:
  static std::string Found(const char* own, const char* state, const char* user) {
    return InChildProcess([&]() -> std::string {
      for (const auto& [name, value] : {std::pair("AIMASTER_HOME", own), {"XDG_STATE_HOME", state}, {"HOME", user}}) {
        if (value == nullptr) {
          unsetenv(name);
        } else {
          setenv(name, value, 1);
        }
      }
      const Result<Home> home = Home::Find();
      return home ? home->path().string() : home.error().message;
    });
  }
};

TEST_F(HomeTest, TheNearestVariableWins) {
  EXPECT_EQ(Found("/a", "/b", "/c"), "/a");
  EXPECT_EQ(Found(nullptr, "/b", "/c"), "/b/aimaster");
  EXPECT_EQ(Found("", "", "/c"), "/c/.local/state/aimaster");
  EXPECT_EQ(Found("relative", nullptr, nullptr), (std::filesystem::current_path() / "relative").string());
}

TEST_F(HomeTest, WithoutAnyTheRemedyIsSaid) {
  EXPECT_NE(Found(nullptr, nullptr, nullptr).find("set AIMASTER_HOME"), std::string::npos);
}

}  // namespace
}  // namespace aimaster
