#include "detect/pattern_matcher.h"

#include <hs/hs_common.h>
#include <hs/hs_runtime.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace aimaster {
namespace {

void FreeDatabase(hs_database* database) { hs_free_database(database); }
void FreeScratch(hs_scratch* scratch) { hs_free_scratch(scratch); }

struct Collected {
  const std::vector<PatternMeaning>& meanings;
  PatternMatcher::Found& found;
};

void KeepStronger(PatternMatcher::Found& found, RuleIndex rule, size_t end) {
  if (found.line == rule) found.line_end = std::min(found.line_end, end);
  if (found.line && *found.line <= rule) return;
  found.line = rule;
  found.line_end = end;
}

int OnMatch(unsigned id, unsigned long long, unsigned long long end, unsigned, void* context) {
  auto& [meanings, found] = *static_cast<Collected*>(context);
  if (id >= meanings.size()) return 0;
  switch (meanings[id].kind) {
    case PatternKind::kLine:
      if (const auto rule = meanings[id].rule) KeepStronger(found, *rule, end);
      break;
    case PatternKind::kFrame:
      if (const auto rule = meanings[id].rule) found.frame = std::min(found.frame.value_or(*rule), *rule);
      break;
    case PatternKind::kNeverRoot:
      found.never_root = true;
      break;
  }
  return 0;
}

int OnWord(unsigned, unsigned long long, unsigned long long end, unsigned, void* context) {
  static_cast<std::vector<uint32_t>*>(context)->push_back(static_cast<uint32_t>(end));
  return 0;
}

}  // namespace

PatternMatcher::PatternMatcher(const RulesInForce& rules)
    : rules_(rules), error_(rules.error()), scratch_(nullptr, FreeScratch) {}

PatternMatcher::~PatternMatcher() = default;

PatternMatcher::Database PatternMatcher::Load(std::span<const char> serialised) {
  Database none(nullptr, FreeDatabase);
  if (serialised.empty()) return none;
  hs_database_t* loaded = nullptr;
  const hs_error_t status = hs_deserialize_database(serialised.data(), serialised.size(), &loaded);
  if (status == HS_ARCH_ERROR) {
    error_ = "this CPU has no SSE4.2, which scanning logs for error patterns needs: only exit statuses are judged";
    return none;
  }
  if (status != HS_SUCCESS) {
    error_ = "some error patterns can't be loaded: build again with this machine's Vectorscan; they are not looked for";
    return none;
  }
  Database database(loaded, FreeDatabase);
  hs_scratch_t* scratch = scratch_.release();
  const bool allocated = hs_alloc_scratch(loaded, &scratch) == HS_SUCCESS;
  scratch_.reset(scratch);
  if (allocated) return database;
  error_ = "no memory to scan logs for error patterns: only exit statuses are judged";
  return none;
}

void PatternMatcher::Load() {
  loaded_ = true;
  for (const PatternPart& part : rules_.parts()) {
    Part loaded{.lines = Load(part.lines),
                .words = Load(part.words),
                .short_words = Load(part.short_words),
                .meanings = &part.meanings};
    const bool has_all_words = (part.words.empty() || loaded.words) && (part.short_words.empty() || loaded.short_words);
    every_line_ = every_line_ || part.every_line || !has_all_words;
    if (loaded.lines) parts_.push_back(std::move(loaded));
  }
}

PatternMatcher::Found PatternMatcher::Match(std::string_view line) {
  if (!loaded_) Load();
  // Vectorscan 5.4.9 misses some matches that end with the last byte that it is given. `$` matches before a newline
  // too.
  line_.assign(line);
  line_ += '\n';
  Found found;
  for (const Part& part : parts_) {
    Collected collected{*part.meanings, found};
    hs_scan(part.lines.get(), line_.data(), static_cast<unsigned>(line_.size()), 0, scratch_.get(), OnMatch,
            &collected);
  }
  return found;
}

bool PatternMatcher::FindWords(std::string_view text, std::vector<uint32_t>& ends) {
  if (!loaded_) Load();
  if (every_line_) return false;
  for (const Part& part : parts_) {
    for (const Database& words : {std::cref(part.words), std::cref(part.short_words)}) {
      if (words)
        hs_scan(words.get(), text.data(), static_cast<unsigned>(text.size()), 0, scratch_.get(), OnWord, &ends);
    }
  }
  return true;
}

}  // namespace aimaster
