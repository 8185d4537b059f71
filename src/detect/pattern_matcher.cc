#include "detect/pattern_matcher.h"

#include <hs/hs_common.h>
#include <hs/hs_runtime.h>

#include <algorithm>

#include "detect/built_in_rules.h"

namespace aimaster {
namespace {

void FreeDatabase(hs_database* database) { hs_free_database(database); }
void FreeScratch(hs_scratch* scratch) { hs_free_scratch(scratch); }

struct Collected {
  const std::vector<Pattern>& patterns;
  PatternMatcher::Found found;
};

void Strengthen(std::optional<RuleIndex>& best, RuleIndex rule) { best = best ? std::min(*best, rule) : rule; }

int OnMatch(unsigned id, unsigned long long, unsigned long long, unsigned, void* context) {
  auto& [patterns, found] = *static_cast<Collected*>(context);
  if (id >= patterns.size()) return 0;
  switch (patterns[id].kind) {
    case PatternKind::kLine:
      Strengthen(found.line, patterns[id].rule);
      break;
    case PatternKind::kFrame:
      Strengthen(found.frame, patterns[id].rule);
      break;
    case PatternKind::kNeverRoot:
      found.never_root = true;
      break;
  }
  return 0;
}

}  // namespace

PatternMatcher::PatternMatcher() : PatternMatcher(RuleTable::BuiltIn(), BuiltInPatternDatabase()) {}

PatternMatcher::PatternMatcher(const RuleTable& rules, std::span<const char> serialised)
    : rules_(rules), serialised_(serialised), database_(nullptr, FreeDatabase), scratch_(nullptr, FreeScratch) {}

PatternMatcher::~PatternMatcher() = default;

void PatternMatcher::Load() {
  loaded_ = true;
  hs_database_t* database = nullptr;
  const hs_error_t status = hs_deserialize_database(serialised_.data(), serialised_.size(), &database);
  if (status == HS_ARCH_ERROR) {
    error_ = "this CPU has no SSE4.2, which scanning logs for error patterns needs: only exit statuses are judged";
    return;
  }
  if (status != HS_SUCCESS) {
    error_ =
        "the error patterns can't be loaded: build again with this machine's Vectorscan; only exit statuses are judged";
    return;
  }
  database_.reset(database);
  hs_scratch_t* scratch = nullptr;
  if (hs_alloc_scratch(database, &scratch) != HS_SUCCESS) {
    error_ = "no memory to scan logs for error patterns: only exit statuses are judged";
    return;
  }
  scratch_.reset(scratch);
  patterns_ = ListPatterns(rules_.set());
}

PatternMatcher::Found PatternMatcher::Match(std::string_view line) {
  if (!loaded_) Load();
  if (!scratch_) return {};
  Collected collected{patterns_, {}};
  hs_scan(database_.get(), line.data(), static_cast<unsigned>(line.size()), 0, scratch_.get(), OnMatch, &collected);
  return collected.found;
}

}  // namespace aimaster
