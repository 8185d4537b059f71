// PatternMatcher: all patterns of the rules, tried on one line at once.
// Think of a sieve with one hole per known kind. Trying std::regex after std::regex was rejected: it is a thousand
// times slower, and ranks can print gigabytes.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detect/rule_table.h"

struct hs_database;
struct hs_scratch;

namespace aimaster {

// Lives on one thread; any number of LineScanners of that thread share it. The database is loaded at the first Match
// (a few milliseconds). Where it can't be loaded, on a machine without SSE4.2 say, nothing ever matches and
// error() says why: exit statuses still judge.
class PatternMatcher {
 public:
  // The built-in rules and their database.
  PatternMatcher();
  // The database must hold ListPatterns(rules.set()), which must outlive the matcher.
  PatternMatcher(const RuleTable& rules, std::span<const char> serialised);
  ~PatternMatcher();
  PatternMatcher(PatternMatcher&&) = delete;

  struct Found {
    std::optional<RuleIndex> line;   // strongest rule by its `patterns`
    std::optional<RuleIndex> frame;  // strongest rule by its `frames`
    bool never_root = false;
  };
  Found Match(std::string_view line);

  const RuleTable& rules() const { return rules_; }
  const std::string& error() const { return error_; }  // empty as long as all is well

 private:
  void Load();

  const RuleTable& rules_;
  std::span<const char> serialised_;
  std::vector<Pattern> patterns_;
  bool loaded_ = false;
  std::string error_;
  std::unique_ptr<hs_database, void (*)(hs_database*)> database_;
  std::unique_ptr<hs_scratch, void (*)(hs_scratch*)> scratch_;
};

}  // namespace aimaster
