// The parameter table: everything that can be set about a job, described once. Flags, the ErrorMonitoringArgs string,
// the job file, the docs page and the web form all read this table, so that a parameter can't exist in one of them and
// be missing, or mean something else, in another. A parser per border with the help text beside it was rejected: that
// is how flags, docs and defaults drift apart.
//
// A row is plain data and two functions that reach the field inside a JobSpec. Rows of the groups before kRun are the
// fault-tolerance parameters, whose names and meanings are compatible with the DLC service; kRun holds the options of
// `aimaster run` that are values of the job too; kIgnored holds flags of the service that are accepted without effect.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/job_spec.h"

namespace aimaster {

enum class ParameterType {
  kBool,         // True, False
  kChoice,       // one of `choices`
  kInteger,      // a whole number
  kSeconds,      // a time, written in seconds
  kReal,         // a number
  kEnvironment,  // K=V,K=V
  kBytes,        // a size; K, M and G mean powers of 1024
  kList,         // A,B,C
  kAny,          // whatever it is, it is not looked at
};
std::string_view Name(ParameterType type);  // "integer"

enum class ParameterGroup { kRestart, kJudging, kHang, kC4d, kRun, kIgnored };
std::string_view Name(ParameterGroup group);   // "restart"
std::string_view Title(ParameterGroup group);  // "Restarting"

// Which of a row's choices.
enum class Choice : uint32_t {};

using ParameterValue = std::variant<bool, int64_t, double, std::chrono::milliseconds, Choice,
                                    std::map<std::string, std::string>, std::vector<std::string>>;

struct Parameter {
  std::string_view name;  // without dashes
  ParameterGroup group = ParameterGroup::kIgnored;
  ParameterType type = ParameterType::kAny;
  std::string_view help;                           // one line, for a terminal
  std::string_view details;                        // a paragraph, for the docs page
  std::string_view example;                        // a value
  std::span<const std::string_view> aliases = {};  // older names
  std::span<const std::string_view> choices = {};  // in the order of the enum's values
  int64_t minimum = 0;                             // kInteger, kBytes, kReal: as it is; kSeconds: in milliseconds
  int64_t maximum = 0;
  std::optional<int64_t> off = {};             // a value outside the range that switches the thing off
  std::chrono::milliseconds resolution{1000};  // kSeconds: what the value is a multiple of
  std::string_view refusal = {};               // said after "allowed", where people often mean something else
  std::string_view since = "0.1";
  ParameterValue (*get)(const JobSpec&) = nullptr;  // none for kIgnored
  void (*set)(JobSpec&, const ParameterValue&) = nullptr;
};

// In the order in which people should read it.
std::span<const Parameter> ParameterTable();
// By its name or an older one, without dashes; null when there is none.
const Parameter* FindParameter(std::string_view name);

inline bool IsFaultTolerance(const Parameter& parameter) {
  return parameter.group != ParameterGroup::kRun && parameter.group != ParameterGroup::kIgnored;
}

ParameterValue DefaultValue(const Parameter& parameter);

// Every time that a person may set, so that sums of a few of them fit into nanoseconds of 64 bits.
inline constexpr std::chrono::seconds kParameterSecondsMax{1'000'000'000};
static_assert(kParameterSecondsMax < std::chrono::duration_cast<std::chrono::seconds>(Duration::max()) / 8);

// Rank numbers are 32 bits wide.
inline constexpr int64_t kWorkersMax = 1'000'000;
inline constexpr int64_t kRanksPerInstanceMax = 1024;
static_assert(kWorkersMax * kRanksPerInstanceMax <= UINT32_MAX);

}  // namespace aimaster
