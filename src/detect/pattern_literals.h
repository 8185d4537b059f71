// Of a regular expression, some plain texts of which at least one stands in everything that it matches.
//
// Think of looking for a person in a crowd: first for red coats, which is quick, then into the faces under them.
// Regular expressions are the faces, a few words out of each are the coats. To trust Vectorscan with it was rejected:
// it does the same inside, but for each expression as a whole, and it can't know that nearly all bytes never get to the
// second look.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detect/rule.h"

namespace aimaster {

// Scanners look for so many bytes at once; a longer text is cut to its rarest part.
inline constexpr size_t kLiteralMaxBytes = 8;
inline constexpr size_t kLiteralMinBytes = 3;  // shorter ones stand in every line

struct Literals {
  std::vector<std::string> texts;  // printable ASCII, none empty, each once, in order; lower case where that is ignored
  bool ignore_case = false;
};

// Such texts as are rare in logs. Nothing where there are none, as of `\d+ [a-z]+`, and for what is not understood: the
// caller then has to try the expression everywhere. `ordinary` is an example of logs in which they should not stand.
// Pure.
std::optional<Literals> RequiredLiterals(std::string_view pattern, std::string_view ordinary = {});

// The first expression over lines that has none; null: each has some.
const Pattern* FindWithoutWords(std::span<const Pattern> patterns);

}  // namespace aimaster
