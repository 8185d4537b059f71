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
std::string_view Name(RuleRole role) { return NameIn(kRoles, role); }
std::string_view Name(Ending ending) { return NameIn(kEndings, ending); }
std::optional<Category> ParseCategory(std::string_view name) { return ParseIn(kCategories, name); }
std::optional<RuleRole> ParseRuleRole(std::string_view name) { return ParseIn(kRoles, name); }
std::optional<Ending> ParseEnding(std::string_view name) { return ParseIn(kEndings, name); }

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
