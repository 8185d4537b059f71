// Regular expressions as databases of Vectorscan. Only what compiles rules needs this; programs that scan load what was
// compiled, with a library that is a tenth of the size and starts at once.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "detect/rule.h"

namespace aimaster {

struct CompiledPatterns {
  std::string lines;        // the expressions, to be tried on one line at a time; numbered as they were given
  std::string words;        // plain texts: a line in which none of them stands matches no expression of kind kLine
  std::string short_words;  // the few short ones among them; apart, both are found faster
  bool every_line = false;  // but for some expressions, so that each line has to be tried
  bool operator==(const CompiledPatterns&) const = default;
};

// For any x86-64 that Vectorscan runs on, so that a build, or a job's directory, serves a whole cluster. `also` are
// further texts for `words`; `ordinary` is an example of logs that should hold few of them.
Result<CompiledPatterns> CompilePatterns(std::span<const Pattern> patterns, std::span<const std::string_view> also = {},
                                         std::string_view ordinary = {});

// Whether it compiles, alone; the error is what Vectorscan says about it.
Status CheckPattern(std::string_view text);

}  // namespace aimaster
