// RuleTable: a set of rules that is known to be complete, with quick ways into it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/failure.h"
#include "detect/rule.h"

namespace aimaster {

using RuleIndex = uint32_t;  // place in the order of the rules: smaller is stronger

// Whether such an errno says that something was used up or failing, and not that the command is wrong.
bool IsWantOfResources(int error);

// Immutable once made. Every ending of a process finds a rule in it.
class RuleTable {
 public:
  // Refuses a set that leaves an ending without a rule, or that names a code, an exit code or a signal twice.
  static Result<RuleTable> Make(RuleSet set);
  // The rules of rules/errors.yaml as of the build.
  static const RuleTable& BuiltIn();

  const Rule& rule(RuleIndex index) const { return set_.rules[index]; }
  RuleIndex size() const { return static_cast<RuleIndex>(set_.rules.size()); }
  const RuleSet& set() const { return set_; }
  std::optional<RuleIndex> Find(std::string_view code) const;

  // What the way in which the process ended says, whatever it printed.
  RuleIndex ForEnding(const RankFailure& failure) const;

 private:
  static constexpr RuleIndex kNone = UINT32_MAX;
  static constexpr size_t kEndings = 9, kExitCodes = 256, kSignals = 65;

  RuleTable() = default;
  RuleIndex For(Ending ending) const { return by_ending_[static_cast<size_t>(ending)]; }

  RuleSet set_;
  std::map<std::string, RuleIndex, std::less<>> by_code_;
  std::array<RuleIndex, kEndings> by_ending_{};
  std::array<RuleIndex, kExitCodes> by_exit_code_{};
  std::array<RuleIndex, kSignals> by_signal_{};
  RuleIndex unknown_error_ = 0;
};

}  // namespace aimaster
