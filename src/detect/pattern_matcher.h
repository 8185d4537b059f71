// PatternMatcher: all patterns of the rules at once, in two steps. Its words say which lines of a long text are worth a
// look, at the speed of memory; its patterns, which rules know a line.
//
// Think of a sieve with one hole per known kind, and of a shovel before it. Trying std::regex after std::regex was
// rejected: it is a thousand times slower, and ranks can print gigabytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detect/rules_in_force.h"

struct hs_database;
struct hs_scratch;

namespace aimaster {

// Lives on one thread; any number of LineScanners of that thread share it. The databases are loaded at the first use
// (a few milliseconds). Where one can't be loaded, on a machine without SSE4.2 say, what it holds never matches and
// error() says why: exit statuses still judge.
class PatternMatcher {
 public:
  PatternMatcher() : PatternMatcher(RulesInForce::BuiltIn()) {}
  // The rules must outlive the matcher.
  explicit PatternMatcher(const RulesInForce& rules);
  ~PatternMatcher();
  PatternMatcher(PatternMatcher&&) = delete;

  struct Found {
    std::optional<RuleIndex> line;   // strongest rule by its `patterns`
    size_t line_end = 0;             // where in the line the words end by which it is known, the first such
    std::optional<RuleIndex> frame;  // strongest rule by its `frames`
    bool never_root = false;
  };
  // Of one clean line without labels.
  Found Match(std::string_view line);

  // Appends where in `text` words end, in no order; one may be there twice. A line that holds none of them, however it
  // is cut out of the text, matches no pattern of a line and none of kTracebackWords stands in it. False: the words do
  // not tell, every line has to be tried.
  bool FindWords(std::string_view text, std::vector<uint32_t>& ends);

  bool is_loaded() const { return loaded_; }
  const RuleTable& rules() const { return rules_.table(); }
  const std::string& error() const { return error_; }  // empty as long as all is well

 private:
  using Database = std::unique_ptr<hs_database, void (*)(hs_database*)>;
  struct Part {
    Database lines, words, short_words;
    const std::vector<PatternMeaning>* meanings = nullptr;
  };

  void Load();
  Database Load(std::span<const char> serialised);

  const RulesInForce& rules_;
  std::vector<Part> parts_;
  bool loaded_ = false;
  bool every_line_ = false;
  std::string error_;
  std::string line_;  // the one that is tried, see Match
  std::unique_ptr<hs_scratch, void (*)(hs_scratch*)> scratch_;
};

}  // namespace aimaster
