#include "core/parameter_parser.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "core/parameter_notes.h"
#include "core/parameter_table.h"
#include "core/parameter_value.h"
#include "core/quote.h"

namespace aimaster {
namespace {

constexpr size_t kComparedMaxBytes = 64;  // of an unknown name, when looking for the nearest known one

char Folded(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == '_' ? '-' : c;
}

// How many characters have to be inserted, removed or changed; case and the kind of dash don't count.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t change = diagonal + (Folded(a[i]) != Folded(b[j]));
      diagonal = std::exchange(row[j + 1], std::min({row[j + 1] + 1, row[j] + 1, change}));
    }
  }
  return row.back();
}

bool MayBeGiven(const Parameter& parameter, bool run_options) {
  return run_options || parameter.group != ParameterGroup::kRun;
}

std::string NearestName(std::string_view unknown, bool run_options) {
  unknown = unknown.substr(0, kComparedMaxBytes);
  std::string_view nearest;
  size_t nearest_distance = std::string_view::npos;
  const auto consider = [&](std::string_view name) {
    const size_t distance = EditDistance(unknown, name);
    if (distance < nearest_distance) {
      nearest = name;
      nearest_distance = distance;
    }
  };
  for (const Parameter& parameter : ParameterTable()) {
    if (!MayBeGiven(parameter, run_options)) continue;
    consider(parameter.name);
    for (const std::string_view alias : parameter.aliases) consider(alias);
  }
  return std::string(nearest);
}

std::string UnknownParameter(const GivenParameter& given, bool run_options) {
  const std::string nearest = NearestName(given.name, run_options);
  const Parameter* parameter = FindParameter(nearest);
  std::string message = "unknown parameter --" + Printable(given.name);
  if (!given.value.empty()) message += "=" + Printable(given.value);
  message += "; the nearest known one is --" + nearest;
  if (parameter != nullptr) message += " (allowed: " + AllowedText(*parameter) + ")";
  return message + "; `aimaster params` lists all";
}

// A checked parameter, before it is set.
struct Checked {
  const Parameter* parameter;
  std::string written_name;
  ParameterValue value;
};

std::string Contradiction(const Checked& first, const Checked& second) {
  const auto written = [](const Checked& checked) {
    return "--" + checked.written_name + "=" + Printable(ValueText(*checked.parameter, checked.value));
  };
  std::string message = written(first) + " and " + written(second) + " contradict each other";
  if (first.written_name != second.written_name) {
    const Checked& older = first.written_name == first.parameter->name ? second : first;
    message += ": --" + older.written_name + " is an older name of --" + std::string(first.parameter->name);
  }
  return message + "; give one of them";
}

Result<Checked> Check(const GivenParameter& given, bool run_options) {
  const std::string_view name = std::string_view(given.name).substr(given.name.starts_with("--") ? 2 : 0);
  const Parameter* parameter = FindParameter(name);
  if (parameter == nullptr) {
    return Fail(ErrorKind::kUsage, UnknownParameter({std::string(name), given.value}, run_options));
  }
  if (!MayBeGiven(*parameter, run_options)) {
    return Fail(ErrorKind::kUsage, "--" + std::string(name) +
                                       " is an option of `aimaster run` and no fault-tolerance "
                                       "parameter, so it can't be given here");
  }
  Result<ParameterValue> value = ParseValue(*parameter, name, given.value);
  if (!value) return std::unexpected(value.error());
  return Checked{parameter, std::string(name), *std::move(value)};
}

Result<std::vector<Checked>> CheckAll(std::span<const GivenParameter> given, bool run_options) {
  std::vector<Checked> all;
  for (const GivenParameter& one : given) {
    Result<Checked> checked = Check(one, run_options && !one.fault_tolerance_only);
    if (!checked) return std::unexpected(checked.error());
    const auto same = std::ranges::find(all, checked->parameter, &Checked::parameter);
    if (same != all.end() && same->value != checked->value) {
      return Fail(ErrorKind::kUsage, Contradiction(*same, *checked));
    }
    all.push_back(*std::move(checked));
  }
  return all;
}

std::vector<ParameterOrigin> Set(const std::vector<Checked>& all, JobSpec& spec) {
  std::vector<ParameterOrigin> origins;
  for (const Checked& checked : all) {
    const std::string name(checked.parameter->name);
    if (std::ranges::find(origins, name, &ParameterOrigin::name) != origins.end()) continue;
    if (checked.parameter->set != nullptr) checked.parameter->set(spec, checked.value);
    origins.push_back({name, checked.written_name, ValueText(*checked.parameter, checked.value)});
  }
  return origins;
}

// Instances that are independent of each other have nothing to restart together for, unless somebody wants it so.
void ChooseMode(const std::vector<ParameterOrigin>& origins, JobSpec& spec) {
  if (spec.framework != Framework::kElasticBatch) return;
  if (std::ranges::find(origins, "job-execution-mode", &ParameterOrigin::name) != origins.end()) return;
  spec.fault_tolerance.execution_mode = ExecutionMode::kAsync;
  spec.notes.push_back("--framework=elasticbatch: the instances are independent, so --job-execution-mode is Async");
}

Result<std::vector<ParameterOrigin>> Apply(std::span<const GivenParameter> given, bool run_options, JobSpec& spec) {
  Result<std::vector<Checked>> all = CheckAll(given, run_options);
  if (!all) return std::unexpected(all.error());
  std::vector<ParameterOrigin> origins = Set(*all, spec);
  ChooseMode(origins, spec);
  std::vector<WrittenParameter> written;
  for (const Checked& checked : *all) written.push_back({checked.parameter, checked.written_name});
  const std::vector<std::string> notes = ParameterNotes(written, spec.fault_tolerance);
  spec.notes.insert(spec.notes.end(), notes.begin(), notes.end());
  return origins;
}

}  // namespace

Result<ParsedParameters> ParseParameters(std::span<const GivenParameter> given, const FaultToleranceParameters& base) {
  JobSpec spec{.fault_tolerance = base};
  Result<std::vector<ParameterOrigin>> origins = Apply(given, false, spec);
  if (!origins) return std::unexpected(origins.error());
  return ParsedParameters{std::move(spec.fault_tolerance), std::move(spec.notes), *std::move(origins)};
}

Result<ParsedParameters> ParseParameterString(std::string_view text) {
  Result<std::vector<GivenParameter>> given = SplitParameterString(text);
  if (!given) return std::unexpected(given.error());
  return ParseParameters(*given);
}

Result<std::vector<ParameterOrigin>> ApplyParameters(std::span<const GivenParameter> given, JobSpec& spec) {
  return Apply(given, true, spec);
}

std::string FormatParameters(const FaultToleranceParameters& parameters) {
  const JobSpec spec{.fault_tolerance = parameters};
  std::string text;
  for (const Parameter& parameter : ParameterTable()) {
    if (!IsFaultTolerance(parameter)) continue;
    const ParameterValue value = parameter.get(spec);
    if (value == DefaultValue(parameter)) continue;
    if (!text.empty()) text += ' ';
    text += QuoteParameterWord("--" + std::string(parameter.name) + "=" + ValueText(parameter, value));
  }
  return text;
}

}  // namespace aimaster
