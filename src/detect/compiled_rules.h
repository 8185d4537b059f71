// CompiledRules: a user's rules file as programs read it, so that neither a job's master nor its agents have to know
// YAML or compile anything. It lies in the job's directory (rules.compiled) and in the cache of the home.
//
//   "AIMRULES"  number 1  text build  text source
//   number of rules { text code, category, class, role, retryable; number severity; number node_suspect; text message,
//   advice;
//                     texts patterns, frames; numbers exit_codes, signals; texts endings }
//   texts never_root  text lines, words, short_words  number every_line
//   8 bytes: FNV-1a of all before
//
// A number is 4 bytes, little-endian; a text its length as a number, then its bytes; texts and numbers are their count,
// then each. Promise: a reader takes format 1 for ever, so that a job can be judged by the rules that it was started
// with; the two databases count for the build that made them alone.
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "detect/pattern_compiler.h"
#include "detect/rule.h"

namespace aimaster {

inline constexpr size_t kCompiledRulesMaxBytes = 64 << 20;
inline constexpr const char* kCompiledRulesFile = "rules.compiled";  // in the job's directory

struct CompiledRules {
  std::string build;          // which program compiled them, see ThisBuild
  std::string source;         // the file
  RuleSet rules;              // the user's, complete: what a rule took over from the built-in one of its code is in it
  CompiledPatterns patterns;  // of NewPatterns(built-in rules, rules)
  bool operator==(const CompiledRules&) const = default;
};

// Names this program's version, its built-in rules and its Vectorscan: what compiled patterns depend on.
std::string ThisBuild();

std::string Encode(const CompiledRules& rules);
// Survives any bytes.
Result<CompiledRules> DecodeCompiledRules(std::string_view bytes);

}  // namespace aimaster
