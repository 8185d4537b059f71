// Rule: one kind of failure that the taxonomy (rules/errors.yaml) knows, as data.
//
// Think of a field guide: how to tell a kind, and what it means for the job. Kinds written as code were rejected:
// people who run clusters learn new kinds faster than we release, and a table can be read, extended and tested line by
// line. The order of the rules is the strength of their evidence: where two rules speak about one rank, the earlier one
// wins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"

namespace aimaster {

enum class Category { kHardware, kNetwork, kStorage, kSystem, kFramework, kUser, kPreemption };
std::string_view Name(Category category);  // "hardware"
std::optional<Category> ParseCategory(std::string_view name);

// Whose fault it is, as finely as advice differs: what `aimaster judge` answers. kUnknown: it may be the program's or
// the machine's, and nobody can tell from this alone.
enum class FaultClass {
  kUserCode,      // a bug
  kUserConfig,    // settings, versions, paths, rights
  kUserResource,  // it wants more memory, disk or time than there is
  kUserAction,    // somebody stopped it
  kGpuHardware,
  kGpuOrDriver,
  kNodeSystem,  // the machine beside its accelerators, and what runs on it
  kNetwork,
  kStorage,
  kExternalService,    // hubs, registries, trackers
  kSchedulerExternal,  // pre-emption, eviction, a kill from outside
  kSoftwareRace,       // a crash or failure that most often does not come back
  kUnknown,
};
std::string_view Name(FaultClass fault_class);  // "user_code"
std::optional<FaultClass> ParseFaultClass(std::string_view name);
FaultClass UsualClass(Category category);

// What such a failure says about who began.
enum class RuleRole {
  kRoot,          // this rank's own fault
  kCascade,       // a peer was gone: never the root while a better candidate exists
  kEither,        // may be both, so it yields to every root
  kConfirmation,  // backs up other evidence, decides only where there is none
};
std::string_view Name(RuleRole role);  // "root"
std::optional<RuleRole> ParseRuleRole(std::string_view name);

// An ending that is neither an exit code nor a signal alone.
enum class Ending {
  kCommandNotFound,
  kCommandNotExecutable,
  kNoResources,      // the node lacked what a start needs: processes, memory, descriptors, disk
  kOrphaned,         // stopped, since no master was there for too long
  kOutOfMemoryKill,  // SIGKILL by the kernel for want of memory
  kNodeLost,
  kProcessLost,  // its shim is gone, its status unknown
  kAnyExitCode,  // any exit code that no other rule names
  kAnySignal,    // any signal that no other rule names
};
std::string_view Name(Ending ending);  // "command_not_found"
std::optional<Ending> ParseEnding(std::string_view name);

struct Rule {
  std::string code;  // "CudaOutOfMemory"
  Category category = Category::kUser;
  FaultClass fault_class = FaultClass::kUserCode;
  RuleRole role = RuleRole::kRoot;
  Retryable retryable = Retryable::kNo;
  Severity severity = Severity::kRestartProcesses;
  bool node_suspect = false;
  std::string message;  // what it means, one sentence
  std::string advice;   // what a person can do; may be empty
  // It matches when any of these does.
  std::vector<std::string> patterns;  // regular expressions over a line of output
  std::vector<std::string> frames;    // the same over source lines inside a Python traceback
  std::vector<int> exit_codes;
  std::vector<int> signals;
  std::vector<Ending> endings;
  bool operator==(const Rule&) const = default;
};

struct RuleSet {
  std::vector<Rule> rules;              // strongest first
  std::vector<std::string> never_root;  // lines that look telling and never are
  bool operator==(const RuleSet&) const = default;
};

enum class PatternKind { kLine, kFrame, kNeverRoot };

// One regular expression of a set. Its place in the list is its number in the compiled database.
struct Pattern {
  PatternKind kind = PatternKind::kLine;
  uint32_t rule = 0;  // index into RuleSet::rules; meaningless for kNeverRoot
  std::string_view text;
};
std::vector<Pattern> ListPatterns(const RuleSet& set);

// Rules that code refers to by name; every rule table has them.
inline constexpr std::string_view kUnknownErrorCode = "UnknownError";
inline constexpr std::string_view kAddressInUseCode = "AddressInUse";
// Of an exception at the end of a traceback that no pattern knows. Without it such a one is of no rule.
inline constexpr std::string_view kUserExceptionCode = "UserException";

}  // namespace aimaster
