#include "core/parameter_parser.h"

#include <gtest/gtest.h>

#include "core/parameter_table.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;
using Notes = std::vector<std::string>;

ParsedParameters Parse(std::string_view text) {
  const Result<ParsedParameters> parsed = ParseParameterString(text);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed.value_or(ParsedParameters{});
}

std::string ErrorOf(std::string_view text) {
  const Result<ParsedParameters> parsed = ParseParameterString(text);
  if (parsed) return "no error";
  EXPECT_EQ(parsed.error().kind, ErrorKind::kUsage);
  return parsed.error().message;
}

TEST(ParameterParserTest, NothingGivenMeansTheDefaults) {
  const ParsedParameters parsed = Parse("");
  EXPECT_EQ(parsed.fault_tolerance, FaultToleranceParameters{});
  EXPECT_EQ(parsed.notes, Notes{});
  EXPECT_TRUE(parsed.given.empty());
}

TEST(ParameterParserTest, ARestartableSyncJob) {
  const ParsedParameters parsed = Parse(
      "--job-execution-mode=Sync --enable-job-restart=True --max-num-of-job-restart=3 "
      "--fault-tolerant-policy=ExitCodeAndErrorMsg");
  EXPECT_EQ(parsed.fault_tolerance, FaultToleranceParameters{.enable_job_restart = true});
  EXPECT_EQ(parsed.notes, Notes{});
  const std::vector<ParameterOrigin> given = {
      {"job-execution-mode", "job-execution-mode", "Sync"},
      {"enable-job-restart", "enable-job-restart", "True"},
      {"max-num-of-job-restart", "max-num-of-job-restart", "3"},
      {"fault-tolerant-policy", "fault-tolerant-policy", "ExitCodeAndErrorMsg"},
  };
  EXPECT_EQ(parsed.given, given);
}

TEST(ParameterParserTest, ASyncJobWithHangDetection) {
  const ParsedParameters parsed = Parse(
      "--job-execution-mode=Sync --enable-job-restart=True --enable-job-hang-detection=True --job-hang-interval=3600");
  EXPECT_EQ(parsed.fault_tolerance,
            (FaultToleranceParameters{
                .enable_job_restart = true, .enable_job_hang_detection = true, .job_hang_interval = 3600s}));
  EXPECT_EQ(parsed.notes, Notes{});
}

TEST(ParameterParserTest, AnAsyncJob) {
  const ParsedParameters parsed = Parse("--job-execution-mode=Async --fault-tolerant-policy=OnFailure");
  EXPECT_EQ(parsed.fault_tolerance,
            (FaultToleranceParameters{.execution_mode = ExecutionMode::kAsync,
                                      .fault_tolerant_policy = FaultTolerantPolicy::kOnFailure}));
  EXPECT_EQ(parsed.notes, Notes{});
}

TEST(ParameterParserTest, TheLongString) {
  const ParsedParameters parsed = Parse(
      "--job-execution-mode Sync --enable-job-restart True --max-num-of-job-restart 200 --job-restart-timeout 1000000 "
      "--fault-tolerant-policy OnFailure --enable-local-detection True --enable-job-hang-detection True "
      "--job-hang-interval 1800");
  EXPECT_EQ(parsed.fault_tolerance, (FaultToleranceParameters{.enable_job_restart = true,
                                                              .max_num_of_job_restart = 200,
                                                              .enable_job_hang_detection = true,
                                                              .fault_tolerant_policy = FaultTolerantPolicy::kOnFailure,
                                                              .job_restart_timeout = 1000000s}));
  EXPECT_EQ(parsed.notes, Notes{"--enable-local-detection is accepted and ignored"});
}

TEST(ParameterParserTest, OlderNamesAreMappedWithANote) {
  const std::vector<std::array<std::string, 3>> cases = {
      {"execution-mode", "job-execution-mode", "Async"},
      {"enable-log-hang-detection", "enable-job-hang-detection", "True"},
      {"log-hang-interval-in-seconds", "job-hang-interval", "77"},
      {"enable-pod-completed-detection", "enable-job-exit-hang-detection", "True"},
      {"pod-completed-interval-in-seconds", "job-exit-hang-interval", "77"},
      {"max-tolerate-failure-rate", "max-tolerated-failure-rate", "0.5"},
  };
  size_t aliases = 0;
  for (const Parameter& parameter : ParameterTable()) aliases += parameter.aliases.size();
  EXPECT_EQ(cases.size(), aliases);
  for (const auto& [older, name, value] : cases) {
    const ParsedParameters parsed = Parse("--" + older + "=" + value);
    EXPECT_EQ(parsed.fault_tolerance, Parse("--" + name + "=" + value).fault_tolerance);
    EXPECT_NE(parsed.fault_tolerance, FaultToleranceParameters{}) << older;
    ASSERT_FALSE(parsed.notes.empty());
    EXPECT_EQ(parsed.notes.front(), "--" + older + " is an older name of --" + name);
    EXPECT_EQ(parsed.given, (std::vector<ParameterOrigin>{{name, older, value}}));
  }
}

TEST(ParameterParserTest, FlagsOfTheServiceWithoutPublishedMeaningAreIgnoredWithANote) {
  for (const std::string name : {"enable-local-detection", "enable-perftracker", "community-k8s", "kubeflow",
                                 "aimaster-operator", "enable-log-redirect-to-nas"}) {
    for (const std::string& text : {"--" + name, "--" + name + "=True", "--" + name + " x --" + name + " y"}) {
      const ParsedParameters parsed = Parse(text);
      EXPECT_EQ(parsed.fault_tolerance, FaultToleranceParameters{});
      EXPECT_EQ(parsed.notes, Notes{"--" + name + " is accepted and ignored"});
    }
  }
}

TEST(ParameterParserTest, AnUnknownParameterIsAnsweredWithTheNearest) {
  EXPECT_EQ(
      ErrorOf("--enable-job-restrat=True"),
      "unknown parameter --enable-job-restrat=True; the nearest known one is --enable-job-restart (allowed: True, "
      "False); `aimaster params` lists all");
  EXPECT_EQ(
      ErrorOf("--MAX_NUM_OF_JOB_RESTART 3"),
      "unknown parameter --MAX_NUM_OF_JOB_RESTART=3; the nearest known one is --max-num-of-job-restart (allowed: a "
      "whole number from 0 to 4294967295); `aimaster params` lists all");
  EXPECT_EQ(
      ErrorOf("--job-hang-intervall"),
      "unknown parameter --job-hang-intervall; the nearest known one is --job-hang-interval (allowed: whole seconds "
      "from 1 to 1000000000, without a unit); `aimaster params` lists all");
  EXPECT_TRUE(ErrorOf("--" + std::string(60000, 'x') + "=1").size() < 400);
}

TEST(ParameterParserTest, SayingTheSameTwiceIsFine) {
  EXPECT_EQ(Parse("--max-num-of-job-restart=5 --max-num-of-job-restart=+5").fault_tolerance.max_num_of_job_restart, 5u);
  const ParsedParameters parsed = Parse("--job-execution-mode=Async --execution-mode=ASYNC");
  EXPECT_EQ(parsed.fault_tolerance.execution_mode, ExecutionMode::kAsync);
  EXPECT_EQ(parsed.given.size(), 1u);
}

TEST(ParameterParserTest, AContradictionNamesBoth) {
  EXPECT_EQ(ErrorOf("--max-num-of-job-restart=3 --max-num-of-job-restart 5"),
            "--max-num-of-job-restart=3 and --max-num-of-job-restart=5 contradict each other; give one of them");
  EXPECT_EQ(ErrorOf("--execution-mode=Async --job-execution-mode=Sync"),
            "--execution-mode=Async and --job-execution-mode=Sync contradict each other: --execution-mode is an older "
            "name of --job-execution-mode; give one of them");
  // Also where the default is one of the two.
  EXPECT_NE(ErrorOf("--enable-job-restart=False --enable-job-restart=True"), "no error");
}

TEST(ParameterParserTest, AnAsyncJobIsToldThatHangFlagsDoNothing) {
  const Notes notes = {
      "--enable-job-hang-detection=True has no effect in a job with --job-execution-mode=Async: hangs are detected in "
      "Sync jobs only",
      "--job-hang-interval=60 has no effect in a job with --job-execution-mode=Async: hangs are detected in Sync jobs "
      "only",
      "--enable-job-exit-hang-detection=True has no effect in a job with --job-execution-mode=Async: hangs are "
      "detected "
      "in Sync jobs only",
      "--enable-c4d-hang-detection=True has no effect in a job with --job-execution-mode=Async: hangs are detected in "
      "Sync jobs only",
  };
  EXPECT_EQ(Parse("--job-execution-mode=Async --enable-job-hang-detection=True --job-hang-interval=60 "
                  "--enable-job-exit-hang-detection=True --enable-c4d-hang-detection=True")
                .notes,
            notes);
  EXPECT_EQ(Parse("--job-execution-mode=Async --enable-job-hang-detection=False").notes.size(), 0u);
}

TEST(ParameterParserTest, C4dNeedsHangDetection) {
  EXPECT_EQ(Parse("--enable-c4d-hang-detection=True").notes,
            Notes{"--enable-c4d-hang-detection=True has no effect without --enable-job-hang-detection=True"});
  const Notes notes = {"--c4d-log-level=Info has no effect without --enable-c4d-hang-detection=True"};
  EXPECT_EQ(Parse("--enable-job-hang-detection=True --c4d-log-level=Info").notes, notes);
}

TEST(ParameterParserTest, AnUnknownSettingOfC4dIsPassedOnWithANote) {
  const ParsedParameters parsed = Parse(
      "--enable-job-hang-detection=True --enable-c4d-hang-detection=True "
      "--c4d-common-envs=C4D_HANG_TIMEOT=10,C4D_HANG_TIMES=18");
  EXPECT_EQ(parsed.fault_tolerance.c4d_common_envs,
            (std::map<std::string, std::string>{{"C4D_HANG_TIMEOT", "10"}, {"C4D_HANG_TIMES", "18"}}));
  ASSERT_EQ(parsed.notes.size(), 1u);
  EXPECT_EQ(
      parsed.notes.back(),
      "--c4d-common-envs: C4D_HANG_TIMEOT is no setting of C4D that this version knows; it is passed on as it is");
}

TEST(ParameterParserTest, ABudgetWithoutPermissionIsNoted) {
  EXPECT_EQ(Parse("--max-num-of-job-restart=5").notes,
            Notes{"--max-num-of-job-restart=5 has no effect without --enable-job-restart=True: the job is never "
                  "restarted"});
  EXPECT_EQ(Parse("--job-hang-interval=5").notes,
            Notes{"--job-hang-interval=5 has no effect without --enable-job-hang-detection=True"});
  EXPECT_EQ(Parse("--hang-requires=log+progress").notes,
            Notes{"--hang-requires=log+progress has no effect without --enable-job-hang-detection=True"});
  EXPECT_EQ(Parse("--job-exit-hang-interval=5").notes,
            Notes{"--job-exit-hang-interval=5 has no effect without --enable-job-exit-hang-detection=True"});
}

TEST(ParameterParserTest, WhatIsNotGivenKeepsItsBase) {
  const FaultToleranceParameters base{.enable_job_restart = true, .max_num_of_job_restart = 9};
  const std::vector<GivenParameter> given = {{"max-num-of-same-error", "4"}};
  const Result<ParsedParameters> parsed = ParseParameters(given, base);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(
      parsed->fault_tolerance,
      (FaultToleranceParameters{.enable_job_restart = true, .max_num_of_job_restart = 9, .max_num_of_same_error = 4}));
  EXPECT_EQ(parsed->notes, Notes{});
}

TEST(ParameterParserTest, NamesMayHaveTheirDashesOrNot) {
  const std::vector<GivenParameter> given = {{"--enable-job-restart", "true"}, {"enable-job-restart", "True"}};
  EXPECT_TRUE(ParseParameters(given)->fault_tolerance.enable_job_restart);
}

TEST(ParameterParserTest, TheStringHoldsNoOptionsOfRun) {
  const std::string error =
      "--workers is an option of `aimaster run` and no fault-tolerance parameter, so it can't be given here";
  EXPECT_EQ(ErrorOf("--workers=4"), error);
  JobSpec spec;
  const auto origins = ApplyParameters(*SplitParameterString("--workers=4"), spec);
  ASSERT_FALSE(origins);
  EXPECT_EQ(origins.error().message, error);
}

TEST(ParameterParserTest, AJobTakesFlagsAndStringTogether) {
  std::vector<GivenParameter> given =
      *SplitParameterString("--enable-job-restart=True --enable-job-hang-detection=False");
  given.push_back({"workers", "4"});
  given.push_back({"nproc-per-node", "2"});
  given.push_back({"stop-grace", "0.5"});
  given.push_back({"kubeflow", ""});
  JobSpec spec;
  spec.notes = {"an earlier note"};
  const auto origins = ApplyParameters(given, spec);
  ASSERT_TRUE(origins);
  EXPECT_EQ(origins->size(), 6u);
  EXPECT_TRUE(spec.fault_tolerance.enable_job_restart);
  EXPECT_EQ(spec.roles, (std::vector<RoleSpec>{{.count = 4, .ranks_per_instance = 2}}));
  EXPECT_EQ(spec.timing.stop_grace, 500ms);
  EXPECT_EQ(spec.notes, (Notes{"an earlier note", "--kubeflow is accepted and ignored"}));

  given.push_back({"enable-job-restart", "False"});
  const auto contradiction = ApplyParameters(given, spec);
  ASSERT_FALSE(contradiction);
  EXPECT_EQ(contradiction.error().message,
            "--enable-job-restart=True and --enable-job-restart=False contradict each other; give one of them");
}

TEST(ParameterParserTest, AnErrorLeavesTheJobAlone) {
  const JobSpec before{.fault_tolerance = {.max_num_of_job_restart = 8}};
  JobSpec spec = before;
  const std::vector<GivenParameter> given = {{"workers", "4"}, {"workers", "0"}};
  EXPECT_FALSE(ApplyParameters(given, spec));
  EXPECT_EQ(spec, before);
}

TEST(ParameterParserTest, IndependentInstancesAreRestartedAloneUnlessSomebodySaysOtherwise) {
  JobSpec spec;
  const std::vector<GivenParameter> batch = {{"framework", "elasticbatch"}, {"enable-job-hang-detection", "True"}};
  ASSERT_TRUE(ApplyParameters(batch, spec));
  EXPECT_EQ(spec.fault_tolerance.execution_mode, ExecutionMode::kAsync);
  ASSERT_EQ(spec.notes.size(), 2u);
  EXPECT_NE(spec.notes[0].find("--job-execution-mode is Async"), std::string::npos);
  EXPECT_NE(spec.notes[1].find("has no effect in a job with --job-execution-mode=Async"), std::string::npos);

  JobSpec sync;
  const std::vector<GivenParameter> given = {{"framework", "elasticbatch"}, {"execution-mode", "Sync"}};
  ASSERT_TRUE(ApplyParameters(given, sync));
  EXPECT_EQ(sync.fault_tolerance.execution_mode, ExecutionMode::kSync);
}

TEST(ParameterParserTest, FormatSaysWhatDiffersFromTheDefaults) {
  EXPECT_EQ(FormatParameters({}), "");
  EXPECT_EQ(FormatParameters({.execution_mode = ExecutionMode::kAsync,
                              .enable_job_restart = true,
                              .max_tolerated_failure_rate = 0.3,
                              .c4d_common_envs = {{"A", "x y"}, {"B", "\"'\\"}}}),
            R"(--job-execution-mode=Async --enable-job-restart=True --max-tolerated-failure-rate=0.3 )"
            R"("--c4d-common-envs=A=x y,B=\"'\\")");
}

}  // namespace
}  // namespace aimaster
