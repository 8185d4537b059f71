#include "cli/job_builder.h"

#include <gtest/gtest.h>

#include "cli/arguments.h"
#include "cli/command_lookup.h"
#include "cli/rank_environment_scrub.h"
#include "journal/temporary_directory.h"

namespace aimaster::cli {
namespace {

using Words = std::vector<std::string>;

Result<JobSpec> Build(const Words& words, const std::vector<const char*>& environment = {}) {
  const Result<Arguments> arguments = ParseArguments(kRunCommand, words);
  if (!arguments) return std::unexpected(arguments.error());
  return BuildJob(*arguments, {.environment = environment, .working_directory = "/home/ann", .now = {}, .random = 7});
}

std::string Refusal(const Words& words) {
  const Result<JobSpec> spec = Build(words);
  EXPECT_FALSE(spec.has_value());
  return spec ? "" : spec.error().message;
}

TEST(JobBuilder, ACommandAloneIsAJobOfOneWorker) {
  const Result<JobSpec> spec = Build({"--", "python", "train.py", "--lr", "1"});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->command, (Words{"python", "train.py", "--lr", "1"}));
  EXPECT_EQ(spec->name, "train.py");
  EXPECT_EQ(spec->working_directory, "/home/ann");
  EXPECT_EQ(spec->log_directory, "");
  ASSERT_EQ(spec->roles.size(), 1u);
  EXPECT_EQ(spec->roles[0], RoleSpec{});
  EXPECT_EQ(spec->id, JobId::FromRandom(7));
}

TEST(JobBuilder, RolesAreNumberedInOneOrderHoweverTheyAreGiven) {
  const Result<JobSpec> spec = Build(
      {"--ps", "2", "--evaluator=1", "--nproc-per-node=4", "--workers", "3", "--chief=1", "--master=0", "--", "x"});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->roles,
            (std::vector<RoleSpec>{
                {Role::kChief, 1, 4}, {Role::kWorker, 3, 4}, {Role::kPs, 2, 1}, {Role::kEvaluator, 1, 1}}));
  EXPECT_EQ(Build({"--master=1", "--", "x"})->roles,
            (std::vector<RoleSpec>{{Role::kMaster, 1, 1}, {Role::kWorker, 1, 1}}));
  EXPECT_NE(Refusal({"--chief=2", "--", "x"}).find("--chief"), std::string::npos);
}

TEST(JobBuilder, WhatAFrameworkCanNotBeStartedWithIsRefused) {
  EXPECT_NE(Refusal({"--framework=tensorflow", "--nproc-per-node=2", "--", "x"}).find("--workers"), std::string::npos);
  EXPECT_NE(Refusal({"--framework=elasticbatch", "--chief=1", "--", "x"}).find("--chief"), std::string::npos);
}

TEST(JobBuilder, AnMpiJobHasALauncherAndItsWorkersAreHosts) {
  const Result<JobSpec> alone = Build({"--framework", "mpi", "--nproc-per-node", "4", "--", "mpirun", "./x"});
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->roles, (std::vector<RoleSpec>{{Role::kLauncher, 1, 1}}));
  EXPECT_EQ(alone->mpi_slots, 4u);
  const Result<JobSpec> spread = Build({"--framework", "mpi", "--workers", "2", "--", "mpirun", "./x"});
  ASSERT_TRUE(spread) << spread.error().message;
  EXPECT_EQ(spread->roles, (std::vector<RoleSpec>{{Role::kLauncher, 1, 1}, {Role::kWorker, 2, 1}}));
  EXPECT_EQ(spread->mpi_slots, 0u);
}

TEST(JobBuilder, AnMpiJobHasNoOtherRoles) {
  EXPECT_NE(Refusal({"--framework", "mpi", "--ps", "1", "--", "mpirun", "./x"}).find("--ps"), std::string::npos);
}

TEST(JobBuilder, FlagsAndTheWholeStringAreOneSetOfParameters) {
  const Result<JobSpec> spec = Build({"--workers", "8", "--error-monitoring-args", "--enable-job-restart True",
                                      "--stop-grace=3", "--max-num-of-job-restart", "5", "--", "x"});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->roles[0].count, 8u);
  EXPECT_TRUE(spec->fault_tolerance.enable_job_restart);
  EXPECT_EQ(spec->fault_tolerance.max_num_of_job_restart, 5u);
  EXPECT_EQ(spec->timing.stop_grace, std::chrono::seconds(3));
}

TEST(JobBuilder, AContradictionBetweenStringAndFlagIsFound) {
  const std::string refusal =
      Refusal({"--error-monitoring-args", "--enable-job-restart=True", "--enable-job-restart=False", "--", "x"});
  EXPECT_NE(refusal.find("enable-job-restart"), std::string::npos) << refusal;
}

TEST(JobBuilder, ErrorsInTheStringSayWhereTheyAre) {
  EXPECT_NE(
      Refusal({"--error-monitoring-args", "--enable-job-restart='True", "--", "x"}).find("--error-monitoring-args"),
      std::string::npos);
}

TEST(JobBuilder, PathsBecomeAbsolute) {
  const Result<JobSpec> spec = Build({"--workdir", "../bob/", "--log-dir", "logs", "--", "x"});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->working_directory, "/home/bob");
  EXPECT_EQ(spec->log_directory, "/home/ann/logs");
}

TEST(JobBuilder, ANameIsPrintable) {
  EXPECT_EQ(Build({"--name", "größer 2", "--", "x"})->name, "größer 2");
  EXPECT_NE(Refusal({"--name", "a\nb", "--", "x"}).find("--name"), std::string::npos);
  EXPECT_NE(Refusal({"--name=", "--", "x"}).find("--name"), std::string::npos);
}

TEST(JobBuilder, TheDefaultNameIsWhatAPersonWouldCallIt) {
  const auto name = [](Words command) { return DefaultJobName(command); };
  EXPECT_EQ(name({"/usr/bin/python3.11", "-u", "src/train.py", "--lr"}), "train.py");
  EXPECT_EQ(name({"bash", "go.sh"}), "go.sh");
  EXPECT_EQ(name({"python3", "-c", "print(1)"}), "python3");
  EXPECT_EQ(name({"./bin/train", "data"}), "train");
  EXPECT_EQ(name({"python3"}), "python3");
  EXPECT_EQ(name({"\n"}), "job");
}

TEST(JobBuilder, MoreRanksThanDevicesIsANote) {
  EXPECT_EQ(Build({"--workers", "3", "--devices", "0,1", "--", "x"})->notes.size(), 1u);
  EXPECT_TRUE(Build({"--workers", "2", "--devices", "0,1", "--", "x"})->notes.empty());
}

TEST(RankEnvironment, WhatSaysWhoAProcessIsDoesNotReachARank) {
  const std::vector<const char*> inherited = {"PATH=/bin",
                                              "RANK=3",
                                              "TORCHELASTIC_USE_AGENT_STORE=True",
                                              "SLURM_PROCID=1",
                                              "SLURM_JOB_ID=77",
                                              "OMPI_COMM_WORLD_RANK=2",
                                              "PMIX_RANK=1",
                                              "MASTER_PORT=1",
                                              "GROUP_RANK=0",
                                              "AIMASTER_INSTANCE=dlcx-worker-0",
                                              "MY_RANK=9",
                                              "EMPTY=",
                                              "=bad"};
  const auto environment = JobEnvironment(inherited, false, {});
  ASSERT_TRUE(environment);
  const std::map<std::string, std::string> expected = {
      {"PATH", "/bin"}, {"SLURM_JOB_ID", "77"}, {"MY_RANK", "9"}, {"EMPTY", ""}};
  EXPECT_EQ(*environment, expected);
}

TEST(RankEnvironment, KeepEnvKeepsAllAndGivenOnesAlwaysWin) {
  const std::vector<const char*> inherited = {"RANK=3", "A=1", "A=2"};
  EXPECT_EQ(JobEnvironment(inherited, true, {})->at("RANK"), "3");
  EXPECT_EQ(JobEnvironment(inherited, false, {})->at("A"), "1") << "the first one is what getenv finds";
  const Words given = {"RANK=5", "A=x=y", "NOTHING="};
  const auto environment = JobEnvironment(inherited, false, given);
  EXPECT_EQ(environment->at("RANK"), "5");
  EXPECT_EQ(environment->at("A"), "x=y");
  EXPECT_EQ(environment->at("NOTHING"), "");
}

TEST(RankEnvironment, AVariableWithoutAValueIsRefused) {
  for (const char* bad : {"NOVALUE", "=1", ""}) {
    const Words given = {bad};
    EXPECT_FALSE(JobEnvironment({}, false, given).has_value()) << bad;
  }
}

class CommandLookup : public testing::Test {
 protected:
  std::filesystem::path Program(const std::string& name, std::filesystem::perms permissions) {
    const std::filesystem::path file = directory_.Write(name, "#!/bin/sh\n");
    std::filesystem::permissions(file, permissions);
    return file;
  }
  // 0: found.
  int Look(const std::string& program, const std::optional<std::string>& path) {
    const auto failure = CheckProgram(program, directory_.path(), path);
    return failure ? failure->exit_code : 0;
  }

  static constexpr auto kExecutable = std::filesystem::perms::owner_all;
  static constexpr auto kPlain = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  TemporaryDirectory directory_;
};

TEST_F(CommandLookup, AProgramIsFoundOnTheJobsPathOrByItsOwn) {
  Program("bin/tool", kExecutable);
  EXPECT_EQ(Look("tool", (directory_.path() / "bin").string()), 0);
  EXPECT_EQ(Look("tool", "/nowhere:bin"), 0) << "relative to the working directory";
  EXPECT_EQ(Look("./bin/tool", "/nowhere"), 0);
  EXPECT_EQ(Look((directory_.path() / "bin/tool").string(), std::nullopt), 0);
  EXPECT_EQ(Look("sh", std::nullopt), 0) << "the default path";
}

TEST_F(CommandLookup, AnEmptyEntryOfThePathIsTheWorkingDirectory) {
  Program("here", kExecutable);
  EXPECT_EQ(Look("here", ":/nowhere"), 0);
  EXPECT_EQ(Look("here", "/nowhere"), 127);
}

TEST_F(CommandLookup, WhatIsNotThereIs127AndWhatCanNotBeExecutedIs126) {
  Program("bin/plain", kPlain);
  std::filesystem::create_directory(directory_.path() / "folder");
  EXPECT_EQ(Look("no-such-program", "/bin:bin"), 127);
  EXPECT_EQ(Look("./no-such-program", "/bin"), 127);
  EXPECT_EQ(Look("bin/plain/x", "/bin"), 127);
  EXPECT_EQ(Look("", "/bin"), 127);
  EXPECT_EQ(Look("plain", "bin"), 126);
  EXPECT_EQ(Look("./bin/plain", "/bin"), 126);
  EXPECT_EQ(Look("./folder", "/bin"), 126);
}

TEST_F(CommandLookup, ALaterOneThatCanBeExecutedWins) {
  Program("first/tool", kPlain);
  Program("second/tool", kExecutable);
  EXPECT_EQ(Look("tool", "first:second"), 0);
}

}  // namespace
}  // namespace aimaster::cli
