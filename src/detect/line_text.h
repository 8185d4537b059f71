// Text from the outside, made fit to be matched, kept and shown: no colours, no control characters, valid UTF-8, and
// without the labels that launchers put in front of each line.
#pragma once

#include <string>
#include <string_view>

namespace aimaster {

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }  // whatever the locale

// The line without ANSI sequences and trailing blanks; backspaces take back what was before them, other control
// characters become blanks and broken UTF-8 becomes U+FFFD. Answers with a view of `line` itself when there is nothing
// to change, else of `buffer`.
std::string_view CleanLine(std::string_view line, std::string& buffer);

// The first byte from `from` on by which the words of a line may look interrupted before it is clean: a control
// character that ends no line. The size of the text where there is none.
size_t FindControl(std::string_view text, size_t from);

struct RankLine {
  std::string_view label;  // whose output it is, as the launcher says; the same for all its lines; may be empty
  std::string_view text;
};

// Takes off what launchers and collectors put in front: "[rank3]:", "[rank3]", "[Rank 3]", "[default3]:", "[rank: 3]"
// (Lightning),
// "[1,3]<stderr>:", "[prterun-n1-811@1,3]<stderr>:", "[0]<stdout>:" (mpirun, horovodrun; with a date before it too),
// "[3] " (MPICH), "worker-0:", "node01:", "10.0.0.4:" (pdsh), "(Actor pid=12)" (Ray), "  7:" (srun --label),
// "[pod/w-0/main]" (kubectl), "worker_1  | " (compose), and timestamps of container logs; also where several are.
// Progress bars that the text is glued to go too. Blanks beyond the separating one stay: indentation means something.
RankLine SplitRankLabels(std::string_view line);

// The text alone.
inline std::string_view StripRankPrefixes(std::string_view line) { return SplitRankLabels(line).text; }

// One clean line out of any text, at most max_bytes, cut between characters with "…" where it was longer.
std::string OneLine(std::string_view text, size_t max_bytes);

}  // namespace aimaster
