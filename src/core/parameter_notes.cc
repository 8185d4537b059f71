#include "core/parameter_notes.h"

#include <algorithm>

#include "core/c4d_environment.h"
#include "core/parameter_value.h"
#include "core/quote.h"

namespace aimaster {
namespace {

std::string Flag(std::string_view name) { return "--" + std::string(name); }

// Why a parameter of this name has no effect under these values; empty when it has one.
std::string_view ReasonForNoEffect(std::string_view name, ParameterGroup group,
                                   const FaultToleranceParameters& result) {
  const bool hang_flag = group == ParameterGroup::kHang || group == ParameterGroup::kC4d;
  if (hang_flag && result.execution_mode == ExecutionMode::kAsync) {
    return "in a job with --job-execution-mode=Async: hangs are detected in Sync jobs only";
  }
  if (group == ParameterGroup::kC4d && !result.enable_job_hang_detection) {
    return "without --enable-job-hang-detection=True";
  }
  if (group == ParameterGroup::kC4d && name != "enable-c4d-hang-detection" && !result.enable_c4d_hang_detection) {
    return "without --enable-c4d-hang-detection=True";
  }
  if ((name == "job-hang-interval" || name == "hang-requires") && !result.enable_job_hang_detection) {
    return "without --enable-job-hang-detection=True";
  }
  if (name == "job-exit-hang-interval" && !result.enable_job_exit_hang_detection) {
    return "without --enable-job-exit-hang-detection=True";
  }
  if ((name == "max-num-of-job-restart" || name == "job-restart-timeout") && !result.enable_job_restart) {
    return "without --enable-job-restart=True: the job is never restarted";
  }
  return {};
}

void AddNotesAboutEnvironment(const FaultToleranceParameters& result, std::vector<std::string>& notes) {
  for (const auto& [key, value] : result.c4d_common_envs) {
    if (FindC4dSetting(key) != nullptr) continue;
    notes.push_back("--c4d-common-envs: " + Printable(key) +
                    " is no setting of C4D that this version knows; it is passed on as it is");
  }
}

void AddNotesAbout(const Parameter& parameter, std::span<const WrittenParameter> given, const JobSpec& spec,
                   std::vector<std::string>& notes) {
  bool is_given = false;
  std::vector<std::string_view> names;
  for (const WrittenParameter& written : given) {
    if (written.parameter != &parameter) continue;
    is_given = true;
    if (written.written_name == parameter.name) continue;
    if (std::ranges::find(names, written.written_name) != names.end()) continue;
    names.push_back(written.written_name);
    notes.push_back(Flag(written.written_name) + " is an older name of " + Flag(parameter.name));
  }
  if (parameter.group == ParameterGroup::kIgnored) {
    if (is_given) notes.push_back(Flag(parameter.name) + " is accepted and ignored");
    return;
  }
  const ParameterValue value = parameter.get(spec);
  const bool set = value != DefaultValue(parameter);
  const bool switched_off = parameter.type == ParameterType::kBool && !std::get<bool>(value);
  const std::string written = Flag(parameter.name) + "=" + Printable(ValueText(parameter, value));
  const std::string_view reason = ReasonForNoEffect(parameter.name, parameter.group, spec.fault_tolerance);
  if ((is_given || set) && !switched_off && !reason.empty()) {
    notes.push_back(written + " has no effect " + std::string(reason));
  }
}

}  // namespace

std::vector<std::string> ParameterNotes(std::span<const WrittenParameter> given,
                                        const FaultToleranceParameters& result) {
  std::vector<std::string> notes;
  const JobSpec spec{.fault_tolerance = result};
  for (const Parameter& parameter : ParameterTable()) {
    if (parameter.group == ParameterGroup::kRun) continue;
    AddNotesAbout(parameter, given, spec, notes);
    if (parameter.type == ParameterType::kEnvironment) AddNotesAboutEnvironment(result, notes);
  }
  return notes;
}

}  // namespace aimaster
