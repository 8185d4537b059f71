#include "detect/rule.h"

#include "core/names.h"

namespace aimaster {
namespace {

constexpr Names<Category, 7> kCategories{{{Category::kHardware, "hardware"},
                                          {Category::kNetwork, "network"},
                                          {Category::kStorage, "storage"},
                                          {Category::kSystem, "system"},
                                          {Category::kFramework, "framework"},
                                          {Category::kUser, "user"},
                                          {Category::kPreemption, "preemption"}}};

constexpr Names<FaultClass, 13> kClasses{{{FaultClass::kUserCode, "user_code"},
                                          {FaultClass::kUserConfig, "user_config"},
                                          {FaultClass::kUserResource, "user_resource"},
                                          {FaultClass::kUserAction, "user_action"},
                                          {FaultClass::kGpuHardware, "gpu_hw"},
                                          {FaultClass::kGpuOrDriver, "gpu_or_driver"},
                                          {FaultClass::kNodeSystem, "node_system"},
                                          {FaultClass::kNetwork, "network"},
                                          {FaultClass::kStorage, "storage"},
                                          {FaultClass::kExternalService, "external_service"},
                                          {FaultClass::kSchedulerExternal, "scheduler_external"},
                                          {FaultClass::kSoftwareRace, "software_race"},
                                          {FaultClass::kUnknown, "unknown"}}};

constexpr Names<RuleRole, 4> kRoles{{{RuleRole::kRoot, "root"},
                                     {RuleRole::kCascade, "cascade"},
                                     {RuleRole::kEither, "either"},
                                     {RuleRole::kConfirmation, "confirmation"}}};

constexpr Names<Ending, 9> kEndings{{{Ending::kCommandNotFound, "command_not_found"},
                                     {Ending::kCommandNotExecutable, "command_not_executable"},
                                     {Ending::kNoResources, "no_resources"},
                                     {Ending::kOrphaned, "orphaned"},
                                     {Ending::kOutOfMemoryKill, "out_of_memory_kill"},
                                     {Ending::kNodeLost, "node_lost"},
                                     {Ending::kProcessLost, "process_lost"},
                                     {Ending::kAnyExitCode, "any_exit_code"},
                                     {Ending::kAnySignal, "any_signal"}}};

}  // namespace

std::string_view Name(Category category) { return NameIn(kCategories, category); }
std::string_view Name(FaultClass fault_class) { return NameIn(kClasses, fault_class); }
std::string_view Name(RuleRole role) { return NameIn(kRoles, role); }
std::string_view Name(Ending ending) { return NameIn(kEndings, ending); }
std::optional<Category> ParseCategory(std::string_view name) { return ParseIn(kCategories, name); }
std::optional<FaultClass> ParseFaultClass(std::string_view name) { return ParseIn(kClasses, name); }
std::optional<RuleRole> ParseRuleRole(std::string_view name) { return ParseIn(kRoles, name); }
std::optional<Ending> ParseEnding(std::string_view name) { return ParseIn(kEndings, name); }

FaultClass UsualClass(Category category) {
  switch (category) {
    case Category::kHardware:
      return FaultClass::kGpuHardware;
    case Category::kNetwork:
      return FaultClass::kNetwork;
    case Category::kStorage:
      return FaultClass::kStorage;
    case Category::kSystem:
      return FaultClass::kNodeSystem;
    case Category::kFramework:
      return FaultClass::kSoftwareRace;
    case Category::kUser:
      return FaultClass::kUserCode;
    case Category::kPreemption:
      return FaultClass::kSchedulerExternal;
  }
  return FaultClass::kUnknown;
}

std::vector<Pattern> ListPatterns(const RuleSet& set) {
  std::vector<Pattern> patterns;
  for (uint32_t rule = 0; rule < set.rules.size(); ++rule) {
    for (const std::string& text : set.rules[rule].patterns) patterns.push_back({PatternKind::kLine, rule, text});
    for (const std::string& text : set.rules[rule].frames) patterns.push_back({PatternKind::kFrame, rule, text});
  }
  for (const std::string& text : set.never_root) patterns.push_back({PatternKind::kNeverRoot, 0, text});
  return patterns;
}

}  // namespace aimaster
