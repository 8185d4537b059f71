#include "core/parameter_value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace aimaster {
namespace {

// What a text becomes, as people write it; or the error.
std::string Canonical(std::string_view name, std::string_view text) {
  const Parameter& parameter = *FindParameter(name);
  const Result<ParameterValue> value = ParseValue(parameter, name, text);
  return value ? ValueText(parameter, *value) : "error: " + value.error().message;
}

bool Accepts(std::string_view name, std::string_view text) { return !Canonical(name, text).starts_with("error: "); }

struct Case {
  const char* name;
  std::vector<const char*> good;
  std::vector<const char*> bad;
};

TEST(ParameterValueTest, EveryParameterKnowsItsBounds) {
  const std::vector<Case> cases = {
      {"job-execution-mode", {"Sync", "Async", "sync", "ASYNC"}, {"", "Sync,Async", "s", "Synchronous"}},
      {"enable-job-restart", {"True", "False", "true", "FALSE", " True "}, {"", "1", "yes", "Tru", "None"}},
      {"max-num-of-job-restart", {"0", "200", "4294967295", "+3", "003"}, {"-1", "4294967296", "3.0", "three", "3x"}},
      {"job-restart-timeout", {"0", "1000000", "1000000000"}, {"-1", "1000000001", "10.5", "10s"}},
      {"fault-tolerant-policy", {"onfailure", "EXITCODEANDERRORMSG", "Never"}, {"Always", "ExitCode"}},
      {"max-num-of-same-error", {"1", "4294967295"}, {"0", "-1", "4294967296", "1e3"}},
      {"max-tolerated-failure-rate",
       {"-1", "-1.0", "0", "0.3", "1", "1.0", ".5", "+0.5", "3e-1"},
       {"-0.5", "-2", "1.01", "nan", "inf", "-inf", "infinity", "0x1", "30%", "1e999", "0.3.1"}},
      {"no-progress-limit", {"0", "3"}, {"-1", "x"}},
      {"enable-job-hang-detection", {"true"}, {"-1"}},
      {"job-hang-interval", {"1", "1800", "1000000000"}, {"0", "-1", "0.5", "30m", "99999999999999999999"}},
      {"enable-job-exit-hang-detection", {"True"}, {"on"}},
      {"job-exit-hang-interval", {"1", "600"}, {"0", "-1", "-600"}},
      {"enable-c4d-hang-detection", {"False"}, {"off"}},
      {"c4d-log-level", {"info", "Warning", "ERROR"}, {"Debug", "warn", "1"}},
      {"c4d-common-envs",
       {"", "C4D_HANG_TIMEOUT=10", "C4D_HANG_TIMEOUT=10000000,C4D_HANG_TIMES=18", "A=", "A=b=c", " A = 1 , B = 2 ",
        "A=1,A=1", "C4D_RUNTIME_LOG_LEVEL=Info,C4D_ENABLE_STATS_OUTPUT=TRUE,C4D_CONN_BW_CHECK_PERIOD=10s"},
       {"A", "=1", "1A=1", "A-B=1", "A=1,", ",", "A=1,A=2", "C4D_HANG_TIMEOUT=", "C4D_HANG_TIMEOUT=soon",
        "C4D_HANG_TIMES=0", "C4D_HANG_TIMES=1.5", "C4D_RUNTIME_LOG_LEVEL=loud", "C4D_ENABLE_STATS_OUTPUT=2",
        "C4D_CONN_BW_CHECK_PERIOD=-1", "A=a\nb", "A=\xff"}},
      {"hang-requires", {"log", "log+progress", "LOG"}, {"progress", "", "log,progress"}},
      {"stack-tool", {"auto", "py-spy", "Eu-Stack", "none"}, {"gdb", "", "pyspy"}},
      {"stack-timeout", {"1", "30"}, {"0", "-1"}},
      {"framework", {"pytorch", "PyTorch", "MPI", "ElasticBatch", "tensorflow"}, {"torch", "jax", ""}},
      {"success-policy", {"Auto", "ChiefWorker", "allworkers"}, {"chief", "AllWorker", ""}},
      {"workers", {"1", "8", "1000000"}, {"0", "-1", "1000001"}},
      {"nproc-per-node", {"1", "1024"}, {"0", "1025", "gpu"}},
      {"master", {"0", "1"}, {"2", "-1", "True"}},
      {"chief", {"0", "1"}, {"2", "-1", ""}},
      {"ps", {"0", "1", "1000000"}, {"-1", "1000001", "1.5"}},
      {"evaluator", {"0", "1"}, {"2", "-1"}},
      {"local-nodes", {"1", "1024"}, {"0", "1025"}},
      {"devices", {"0", "0,1,2,3", "GPU-8f1a,MIG-2/1:0", " 0 , 1 "}, {"", "0,,1", "0,0", "0 1", "a;b"}},
      {"stop-grace", {"0", "10", "0.5", "86400"}, {"-1", "10s", "0.0005", "1.", "86400.001", "1e3"}},
      {"start-timeout", {"0.001", "600"}, {"0", "-1"}},
      {"node-lost-timeout", {"1", "30"}, {"0", "0.999"}},
      {"orphan-timeout", {"1", "600"}, {"0"}},
      {"collect-window", {"0", "0.25", ".25", "0.2500000"}, {"-0.25", "0,25", "0.2505", "."}},
      {"log-max-bytes",
       {"0", "1", "64M", "64m", "1G", "8589934591G", "9223372036854775807"},
       {"-1", "1T", "M", "1.5G", "64MB", "8589934592G", "-1G"}},
      {"kubeflow", {"", "True", "anything at all"}, {}},
  };
  for (const Case& one : cases) {
    for (const char* text : one.good) EXPECT_TRUE(Accepts(one.name, text)) << Canonical(one.name, text);
    for (const char* text : one.bad) EXPECT_FALSE(Accepts(one.name, text)) << one.name << "=" << text;
  }
  std::string untested;
  for (const Parameter& parameter : ParameterTable()) {
    const auto is_this = [&](const Case& one) { return one.name == parameter.name; };
    if (std::ranges::none_of(cases, is_this) && parameter.group != ParameterGroup::kIgnored) untested += parameter.name;
  }
  EXPECT_EQ(untested, "");
}

TEST(ParameterValueTest, ValuesHaveOneSpelling) {
  EXPECT_EQ(Canonical("enable-job-restart", "tRUE"), "True");
  EXPECT_EQ(Canonical("job-execution-mode", "async"), "Async");
  EXPECT_EQ(Canonical("max-num-of-job-restart", "+007"), "7");
  EXPECT_EQ(Canonical("max-tolerated-failure-rate", "0.30"), "0.3");
  EXPECT_EQ(Canonical("max-tolerated-failure-rate", "-1.0"), "-1");
  EXPECT_EQ(Canonical("max-tolerated-failure-rate", "-0"), "0");
  EXPECT_EQ(Canonical("collect-window", "00.250"), "0.25");
  EXPECT_EQ(Canonical("collect-window", "1.005"), "1.005");
  EXPECT_EQ(Canonical("log-max-bytes", "64M"), "67108864");
  EXPECT_EQ(Canonical("devices", " 3 , 1 "), "3,1");
  EXPECT_EQ(Canonical("c4d-common-envs", "B=2, A=1"), "A=1,B=2");
}

TEST(ParameterValueTest, AnErrorNamesParameterValueAndWhatIsAllowed) {
  EXPECT_EQ(Canonical("enable-job-restart", "yes"),
            "error: --enable-job-restart can't be 'yes'; allowed: True, False (as in --enable-job-restart=True)");
  EXPECT_EQ(Canonical("fault-tolerant-policy", "Always"),
            "error: --fault-tolerant-policy can't be 'Always'; allowed: OnFailure, ExitCodeAndErrorMsg, Never (as in "
            "--fault-tolerant-policy=ExitCodeAndErrorMsg)");
  EXPECT_EQ(Canonical("max-num-of-job-restart", "3.0"),
            "error: --max-num-of-job-restart can't be '3.0'; allowed: a whole number from 0 to 4294967295 (as in "
            "--max-num-of-job-restart=3)");
  EXPECT_EQ(Canonical("max-num-of-job-restart", "  "),
            "error: --max-num-of-job-restart has no value; allowed: a whole number from 0 to 4294967295 (as in "
            "--max-num-of-job-restart=3)");
  EXPECT_EQ(Canonical("max-tolerated-failure-rate", "30%"),
            "error: --max-tolerated-failure-rate can't be '30%'; allowed: -1, or a number from 0 to 1 (as in "
            "--max-tolerated-failure-rate=0.3)");
  EXPECT_EQ(Canonical("job-hang-interval", "-1"),
            "error: --job-hang-interval can't be '-1'; allowed: whole seconds from 1 to 1000000000, without a unit (as "
            "in --job-hang-interval=1800); -1 is for the SDK's reset_config only; to leave the detection off, write "
            "--enable-job-hang-detection=False");
  EXPECT_EQ(
      Canonical("log-hang-interval-in-seconds", "0"),
      "error: --log-hang-interval-in-seconds can't be '0'; allowed: whole seconds from 1 to 1000000000, without a "
      "unit (as in --job-hang-interval=1800)");
  EXPECT_EQ(
      Canonical("c4d-common-envs", "C4D_HANG_TIMES=often"),
      "error: --c4d-common-envs: C4D_HANG_TIMES can't be 'often'; allowed: a whole number from 1 to 1000000 (as in "
      "--c4d-common-envs=C4D_HANG_TIMEOUT=10s,C4D_HANG_TIMES=18)");
  EXPECT_EQ(Canonical("c4d-common-envs", "18"),
            "error: --c4d-common-envs: '18' is not NAME=VALUE, with a name of letters, digits and '_' (as in "
            "--c4d-common-envs=C4D_HANG_TIMEOUT=10s,C4D_HANG_TIMES=18)");
  EXPECT_EQ(Canonical("devices", "0,0"), "error: --devices: '0' is there twice (as in --devices=0,1,2,3)");
}

}  // namespace
}  // namespace aimaster
