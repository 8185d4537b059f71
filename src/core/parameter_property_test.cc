// Whatever the parameters are, their text brings them back.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/parameter_parser.h"
#include "core/parameter_table.h"

namespace aimaster {
namespace {

using std::chrono::seconds;

rc::Gen<seconds> AnySeconds(int64_t from) {
  return rc::gen::map(rc::gen::inRange<int64_t>(from, kParameterSecondsMax.count() + 1),
                      [](int64_t n) { return seconds(n); });
}

rc::Gen<std::string> AnyWord(std::string alphabet, bool may_be_empty) {
  const auto word = rc::gen::container<std::string>(rc::gen::elementOf(std::move(alphabet)));
  return may_be_empty ? word : rc::gen::nonEmpty(word);
}

// Settings as the parser would leave them: values without commas, and without blanks around them.
rc::Gen<std::map<std::string, std::string>> AnyEnvironment() {
  const auto value = rc::gen::suchThat(AnyWord("aZ09_=- '\"\\$#/:;.", true), [](const std::string& text) {
    return text.empty() || (text.front() != ' ' && text.back() != ' ');
  });
  return rc::gen::container<std::map<std::string, std::string>>(AnyWord("XYZ_", false), value);
}

rc::Gen<double> AnyRate() {
  return rc::gen::oneOf(rc::gen::just(-1.0), rc::gen::element(0.0, 1.0, 0.1, 0.3),
                        rc::gen::map(rc::gen::inRange<uint32_t>(0, UINT32_MAX),
                                     [](uint32_t n) { return static_cast<double>(n) / UINT32_MAX; }));
}

FaultToleranceParameters AnyParameters() {
  FaultToleranceParameters p;
  p.execution_mode = *rc::gen::element(ExecutionMode::kSync, ExecutionMode::kAsync);
  p.enable_job_restart = *rc::gen::arbitrary<bool>();
  p.max_num_of_job_restart = *rc::gen::arbitrary<uint32_t>();
  p.enable_job_hang_detection = *rc::gen::arbitrary<bool>();
  p.job_hang_interval = *AnySeconds(1);
  p.enable_c4d_hang_detection = *rc::gen::arbitrary<bool>();
  p.enable_job_exit_hang_detection = *rc::gen::arbitrary<bool>();
  p.job_exit_hang_interval = *AnySeconds(1);
  p.fault_tolerant_policy = *rc::gen::element(FaultTolerantPolicy::kOnFailure,
                                              FaultTolerantPolicy::kExitCodeAndErrorMsg, FaultTolerantPolicy::kNever);
  p.max_num_of_same_error = *rc::gen::inRange<uint32_t>(1, UINT32_MAX);
  p.max_tolerated_failure_rate = *AnyRate();
  p.c4d_log_level = *rc::gen::element(C4dLogLevel::kInfo, C4dLogLevel::kWarning, C4dLogLevel::kError);
  p.c4d_common_envs = *AnyEnvironment();
  p.job_restart_timeout = *AnySeconds(0);
  p.no_progress_limit = *rc::gen::arbitrary<uint32_t>();
  return p;
}

RC_GTEST_PROP(ParameterPropertyTest, ParseIsTheInverseOfFormat, ()) {
  const FaultToleranceParameters parameters = AnyParameters();
  const std::string text = FormatParameters(parameters);
  RC_LOG() << text << std::endl;
  const Result<ParsedParameters> parsed = ParseParameterString(text);
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(parsed->fault_tolerance == parameters);
}

RC_GTEST_PROP(ParameterPropertyTest, AnyWordSurvivesItsQuotes, (const std::string& word)) {
  const auto given = SplitParameterString("--kubeflow=" + QuoteParameterWord(word));
  RC_ASSERT(given.has_value());
  RC_ASSERT(given->size() == 1u);
  RC_ASSERT(given->front().value == word);
}

}  // namespace
}  // namespace aimaster
