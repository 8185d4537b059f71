// Text from the outside, made fit to be matched, kept and shown: no colours, no control characters, valid UTF-8, and
// without the labels that launchers put in front of each line.
#pragma once

#include <string>
#include <string_view>

namespace aimaster {

// The line without ANSI sequences and trailing blanks; control characters become blanks and broken UTF-8 becomes
// U+FFFD. Answers with a view of `line` itself when there is nothing to change, else of `buffer`.
std::string_view CleanLine(std::string_view line, std::string& buffer);

// Without "[rank3]:", "[default3]:", "[1,3]<stderr>:", "worker-0:", "(Actor pid=12)" and "  7:" (srun --label) in
// front, also where several are. Blanks beyond the separating one stay: indentation means something.
std::string_view StripRankPrefixes(std::string_view line);

// One clean line out of any text, at most max_bytes, cut between characters with "…" where it was longer.
std::string OneLine(std::string_view text, size_t max_bytes);

}  // namespace aimaster
