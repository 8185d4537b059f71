#include "core/parameter_table.h"

#include <gtest/gtest.h>

#include <set>

#include "core/parameter_value.h"

namespace aimaster {
namespace {

TEST(ParameterTableTest, NoTwoParametersShareAName) {
  std::set<std::string_view> names;
  for (const Parameter& parameter : ParameterTable()) {
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
    EXPECT_EQ(FindParameter(parameter.name), &parameter);
    for (const std::string_view alias : parameter.aliases) {
      EXPECT_TRUE(names.insert(alias).second) << alias;
      EXPECT_EQ(FindParameter(alias), &parameter);
    }
  }
  EXPECT_EQ(FindParameter("--workers"), nullptr);
  EXPECT_EQ(FindParameter(""), nullptr);
}

TEST(ParameterTableTest, EveryRowIsComplete) {
  for (const Parameter& parameter : ParameterTable()) {
    EXPECT_FALSE(parameter.help.empty()) << parameter.name;
    EXPECT_TRUE(parameter.help.ends_with('.') || parameter.help.ends_with('?')) << parameter.name;
    EXPECT_FALSE(parameter.details.empty()) << parameter.name;
    EXPECT_FALSE(parameter.example.empty()) << parameter.name;
    EXPECT_TRUE(ParseValue(parameter, parameter.name, parameter.example)) << parameter.name;
    const bool ignored = parameter.group == ParameterGroup::kIgnored;
    EXPECT_EQ(parameter.get == nullptr, ignored) << parameter.name;
    EXPECT_EQ(parameter.set == nullptr, ignored) << parameter.name;
    EXPECT_EQ(parameter.type == ParameterType::kAny, ignored) << parameter.name;
    EXPECT_EQ(parameter.type == ParameterType::kChoice, !parameter.choices.empty()) << parameter.name;
  }
}

TEST(ParameterTableTest, WhatIsSetIsWhatIsGotAndNothingElseChanges) {
  for (const Parameter& parameter : ParameterTable()) {
    if (parameter.set == nullptr) continue;
    const Result<ParameterValue> value = ParseValue(parameter, parameter.name, parameter.example);
    ASSERT_TRUE(value) << parameter.name;
    JobSpec spec;
    parameter.set(spec, *value);
    EXPECT_EQ(parameter.get(spec), *value) << parameter.name;
    for (const Parameter& other : ParameterTable()) {
      if (other.get == nullptr || &other == &parameter) continue;
      EXPECT_EQ(other.get(spec), DefaultValue(other)) << parameter.name << " changes " << other.name;
    }
  }
}

// The choices stand in the order of the enums that they become.
TEST(ParameterTableTest, ChoicesMeanWhatTheySay) {
  const auto set = [](std::string_view name, std::string_view text) {
    JobSpec spec;
    const Parameter* parameter = FindParameter(name);
    parameter->set(spec, *ParseValue(*parameter, name, text));
    return spec;
  };
  EXPECT_EQ(set("job-execution-mode", "Sync").fault_tolerance.execution_mode, ExecutionMode::kSync);
  EXPECT_EQ(set("job-execution-mode", "Async").fault_tolerance.execution_mode, ExecutionMode::kAsync);
  const auto policy = [&](std::string_view text) {
    return set("fault-tolerant-policy", text).fault_tolerance.fault_tolerant_policy;
  };
  EXPECT_EQ(policy("OnFailure"), FaultTolerantPolicy::kOnFailure);
  EXPECT_EQ(policy("ExitCodeAndErrorMsg"), FaultTolerantPolicy::kExitCodeAndErrorMsg);
  EXPECT_EQ(policy("Never"), FaultTolerantPolicy::kNever);
  EXPECT_EQ(set("c4d-log-level", "Info").fault_tolerance.c4d_log_level, C4dLogLevel::kInfo);
  EXPECT_EQ(set("c4d-log-level", "Warning").fault_tolerance.c4d_log_level, C4dLogLevel::kWarning);
  EXPECT_EQ(set("c4d-log-level", "Error").fault_tolerance.c4d_log_level, C4dLogLevel::kError);
  for (const std::string_view framework : FindParameter("framework")->choices) {
    EXPECT_EQ(Name(set("framework", framework).framework), framework);
  }
}

TEST(ParameterTableTest, DefaultsAreThoseOfTheService) {
  const auto text = [](std::string_view name) { return DefaultText(*FindParameter(name)); };
  EXPECT_EQ(text("job-execution-mode"), "Sync");
  EXPECT_EQ(text("enable-job-restart"), "False");
  EXPECT_EQ(text("max-num-of-job-restart"), "3");
  EXPECT_EQ(text("enable-job-hang-detection"), "False");
  EXPECT_EQ(text("job-hang-interval"), "1800");
  EXPECT_EQ(text("enable-c4d-hang-detection"), "False");
  EXPECT_EQ(text("enable-job-exit-hang-detection"), "False");
  EXPECT_EQ(text("job-exit-hang-interval"), "600");
  EXPECT_EQ(text("fault-tolerant-policy"), "ExitCodeAndErrorMsg");
  EXPECT_EQ(text("max-num-of-same-error"), "10");
  EXPECT_EQ(text("max-tolerated-failure-rate"), "-1");
  EXPECT_EQ(text("c4d-log-level"), "Warning");
  EXPECT_EQ(text("c4d-common-envs"), "");
  EXPECT_EQ(text("no-progress-limit"), "0");
  EXPECT_EQ(text("job-restart-timeout"), "0");
  EXPECT_EQ(text("stop-grace"), "10");
  EXPECT_EQ(text("start-timeout"), "600");
  EXPECT_EQ(text("node-lost-timeout"), "30");
  EXPECT_EQ(text("orphan-timeout"), "600");
  EXPECT_EQ(text("collect-window"), "0.25");
  EXPECT_EQ(text("log-max-bytes"), "0");
  EXPECT_EQ(text("workers"), "1");
  EXPECT_EQ(text("nproc-per-node"), "1");
  EXPECT_EQ(text("local-nodes"), "1");
  EXPECT_EQ(text("framework"), "pytorch");
  EXPECT_EQ(text("devices"), "");
}

TEST(ParameterTableTest, WorkersAndTheirRanksShareOneRole) {
  JobSpec spec;
  spec.roles = {{.role = Role::kPs, .count = 2}};
  const auto set = [&](std::string_view name, int64_t value) { FindParameter(name)->set(spec, value); };
  set("nproc-per-node", 4);
  set("workers", 8);
  const std::vector<RoleSpec> expected = {{.role = Role::kPs, .count = 2},
                                          {.role = Role::kWorker, .count = 8, .ranks_per_instance = 4}};
  EXPECT_EQ(spec.roles, expected);
}

}  // namespace
}  // namespace aimaster
