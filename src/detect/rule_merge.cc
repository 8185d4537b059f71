#include "detect/rule_merge.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "core/fnv1a.h"

namespace aimaster {
namespace {

const Rule* Find(const RuleSet& set, std::string_view code) {
  const auto found = std::ranges::find(set.rules, code, &Rule::code);
  return found == set.rules.end() ? nullptr : &*found;
}

template <typename T>
bool Holds(const std::vector<T>& items, const auto& item) {
  return std::ranges::find(items, item) != items.end();
}

template <typename T>
void TakeAway(std::vector<T>& from, const std::vector<T>& taken) {
  std::erase_if(from, [&taken](const T& each) { return Holds(taken, each); });
}

}  // namespace

RuleSet MergeRules(const RuleSet& base, const RuleSet& own) {
  RuleSet merged;
  for (const Rule& rule : own.rules) {
    if (!Find(base, rule.code)) merged.rules.push_back(rule);
  }
  for (Rule rule : base.rules) {
    if (const Rule* instead = Find(own, rule.code)) {
      merged.rules.push_back(*instead);
      continue;
    }
    for (const Rule& other : own.rules) {
      TakeAway(rule.exit_codes, other.exit_codes);
      TakeAway(rule.signals, other.signals);
      TakeAway(rule.endings, other.endings);
    }
    merged.rules.push_back(std::move(rule));
  }
  merged.never_root = base.never_root;
  for (const std::string& line : own.never_root) {
    if (!Holds(base.never_root, line)) merged.never_root.push_back(line);
  }
  return merged;
}

std::vector<Pattern> NewPatterns(const RuleSet& base, const RuleSet& own) {
  std::vector<Pattern> patterns = ListPatterns(own);
  std::erase_if(patterns, [&](const Pattern& pattern) {
    if (pattern.kind == PatternKind::kNeverRoot) return Holds(base.never_root, pattern.text);
    const Rule* rule = Find(base, own.rules[pattern.rule].code);
    if (rule == nullptr) return false;
    return Holds(pattern.kind == PatternKind::kLine ? rule->patterns : rule->frames, pattern.text);
  });
  return patterns;
}

std::string HashOf(const RuleSet& set) {
  uint64_t hash = kFnv1aOfNothing;
  // Each text with its length, so that no two sets are written alike.
  const auto add = [&hash](std::string_view text) {
    hash = Fnv1a(text, Fnv1a(std::to_string(text.size()) + ":", hash));
  };
  const auto add_all = [&](const auto& items, auto text) {
    add(std::to_string(items.size()));
    for (const auto& item : items) add(text(item));
  };
  const auto itself = [](const std::string& text) { return text; };
  const auto number = [](int value) { return std::to_string(value); };
  for (const Rule& rule : set.rules) {
    add(rule.code), add(Name(rule.category)), add(Name(rule.fault_class)), add(Name(rule.role)),
        add(Name(rule.retryable));
    add(number(static_cast<int>(rule.severity))), add(rule.node_suspect ? "suspect" : "");
    add(rule.message), add(rule.advice);
    add_all(rule.patterns, itself), add_all(rule.frames, itself);
    add_all(rule.exit_codes, number), add_all(rule.signals, number);
    add_all(rule.endings, [](Ending ending) { return std::string(Name(ending)); });
  }
  add_all(set.never_root, itself);
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace aimaster
