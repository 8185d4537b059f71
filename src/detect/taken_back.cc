#include "detect/taken_back.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "detect/line_text.h"

namespace aimaster {
namespace {

constexpr size_t kContextBytes = 256;  // of a line before and behind the words
constexpr size_t kWordsTried = 16;     // in which the words of a fault begin
constexpr int kMatchesTried = 6;       // in one line
constexpr int kFillersMax = 5;

template <size_t kCount>
using Vocabulary = std::array<std::string_view, kCount>;

// "no new uncorrectable ECC errors", "if the GPU has fallen off the bus"
constexpr Vocabulary<27> kFillers{"any",   "new",    "further",  "recent", "other",   "pending", "such",
                                  "known", "active", "a",        "an",     "the",     "its",     "this",
                                  "that",  "has",    "have",     "had",    "was",     "were",    "is",
                                  "been",  "gpu",    "hardware", "single", "unknown", "all"};
constexpr Vocabulary<14> kNegations{"no",    "not",    "never",  "without", "zero",    "nor",    "neither",
                                    "isn't", "wasn't", "hasn't", "haven't", "weren't", "aren't", "didn't"};
constexpr Vocabulary<19> kSuppositions{"if",        "whether",    "unless",     "simulate", "simulates",
                                       "simulated", "simulating", "simulation", "inject",   "injects",
                                       "injected",  "injecting",  "ignore",     "ignores",  "ignored",
                                       "ignoring",  "skipping",   "pretend",    "faking"};
constexpr Vocabulary<20> kSearches{"check",   "checks", "checking",  "checked",  "look", "looks",  "looking",
                                   "looked",  "watch",  "watches",   "watching", "scan", "scans",  "scanning",
                                   "scanned", "search", "searching", "searched", "test", "testing"};
constexpr Vocabulary<12> kBeforeCount{"found", "detected", "with", "reported", "reports", "had",
                                      "has",   "saw",      "seen", "and",      "shows",   "counted"};
// Between a fault and how often it was: "uncorrectable ECC error count (total) = 0"
constexpr Vocabulary<22> kCountWords{"s",        "es",        "error",       "errors", "count",  "counts",
                                     "counter",  "total",     "event",       "events", "number", "rate",
                                     "volatile", "aggregate", "detected",    "found",  "seen",   "encountered",
                                     "reported", "current",   "occurrences", "errs"};
constexpr Vocabulary<14> kNothing{"0",     "0.0",  "no",     "none", "nil",  "null",    "false",
                                  "clean", "pass", "passed", "ok",   "okay", "healthy", "negative"};
constexpr Vocabulary<15> kIgnored{"ignored",   "ignoring",   "reopened",   "skipped",   "skipping",
                                  "tolerated", "suppressed", "continuing", "simulated", "backing",
                                  "recovered", "harmless",   "swallowed",  "carrying",  "discarded"};
constexpr Vocabulary<9> kBeforeIgnored{"is", "was", "are", "were", "be", "will", "and", "now", "safely"};
// In the name of a list of what a program would look for.
constexpr Vocabulary<24> kListNames{"retry",  "retri",     "restart", "policy", "pattern", "keyword",
                                    "phrase", "signature", "ignore",  "filter", "rules",   "option",
                                    "config", "expect",    "known",   "watch",  "match",   "handle",
                                    "args",   "argv",      "trigger", "one of", "any of",  "tolerate"};
constexpr Vocabulary<7> kCommands{"grep ", "awk ", "sed ", "journalctl ", "rg ", "echo ", "printf "};

template <size_t kCount>
bool IsOneOf(std::string_view word, const Vocabulary<kCount>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '\''; }
bool IsQuote(char c) { return c == '"' || c == '\'' || c == '`'; }
bool EndsClause(char c) { return c == ',' || c == ';' || c == '|'; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// The last word of a text, and what is before it. Quotes around a word go; any other mark ends the sentence.
std::string_view TakeLastWord(std::string_view& text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || IsQuote(text.back()))) text.remove_suffix(1);
  size_t begin = text.size();
  while (begin > 0 && IsWordCharacter(text[begin - 1])) --begin;
  const std::string_view word = text.substr(begin);
  text = text.substr(0, begin);
  return word;
}

std::string_view TakeWordBehindFillers(std::string_view& before) {
  std::string_view word = TakeLastWord(before);
  for (int i = 0; i < kFillersMax && IsOneOf(word, kFillers); ++i) word = TakeLastWord(before);
  return word;
}

// "found 0 uncorrectable ECC errors"; but "GPU 0 has fallen off the bus".
bool IsCountOfZero(std::string_view word, std::string_view before) {
  if (word != "0") return false;
  const bool begins = before.find_last_not_of(" \t") == std::string_view::npos ||
                      std::string_view(":;,([").find(before[before.find_last_not_of(" \t")]) != std::string_view::npos;
  return begins || IsOneOf(TakeLastWord(before), kBeforeCount);
}

// "ignoring OSError: [Errno 116] " → "ignoring "
std::string_view WithoutException(std::string_view before) {
  if (before.ends_with("] ") && before.find("[errno ") != std::string_view::npos) {
    before = before.substr(0, before.rfind("[errno "));
  }
  for (std::string_view name : {"error: ", "exception: "}) {
    if (!before.ends_with(name)) continue;
    const size_t blank = before.find_last_of(" \t", before.size() - name.size());
    return before.substr(0, blank == std::string_view::npos ? 0 : blank + 1);
  }
  return before;
}

// `is_many`: the words are in the plural, as what is counted.
bool IsDeniedBefore(std::string_view lower_before, bool is_many) {
  std::string_view before = WithoutException(lower_before);
  const std::string_view word = TakeWordBehindFillers(before);
  if (IsOneOf(word, kNegations) || IsOneOf(word, kSuppositions)) return true;
  if (is_many && IsCountOfZero(word, before)) return true;
  return word == "for" && IsOneOf(TakeLastWord(before), kSearches);
}

// "s: 0 (volatile)", " count = 0", ": no", "\" in dmesg ... none"
bool IsDeniedBehind(std::string_view behind) {
  const std::string_view clause = behind.substr(0, std::min(behind.find_first_of(",;|"), behind.size()));
  std::string_view rest = clause;
  bool is_count = false, is_separated = false, is_strange = false;
  while (!rest.empty()) {
    if (!IsWordCharacter(rest[0])) {
      is_separated = is_separated || rest[0] == ':' || rest[0] == '=' || rest[0] == '?' || rest.starts_with("..") ||
                     rest.starts_with("->");
      rest.remove_prefix(1);
      continue;
    }
    size_t end = 0;
    while (end < rest.size() &&
           (IsWordCharacter(rest[end]) || (rest[end] == '.' && end + 1 < rest.size() && IsDigit(rest[end + 1])))) {
      ++end;
    }
    while (end > 1 && IsQuote(rest[end - 1])) --end;
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end);
    const bool is_zero = word == "0" || word == "0.0";
    const bool may_be_value = is_separated || (is_zero && is_count);
    if (may_be_value && IsOneOf(word, kNothing)) {
      // What follows the value belongs to it, or it is no value: "fallen off the bus: no response".
      const size_t next = rest.find_first_not_of(" \t\"'");
      const bool ends =
          next == std::string_view::npos || std::string_view(")]}(.").find(rest[next]) != std::string_view::npos;
      std::string_view more = rest.substr(std::min(next, rest.size()));
      more = more.substr(0, std::min(more.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), more.size()));
      return (ends || IsOneOf(more, kCountWords)) && !(is_zero && is_strange);
    }
    if (is_separated) return false;
    is_count = is_count || IsOneOf(word, kCountWords);
    is_strange = is_strange || !IsOneOf(word, kCountWords);
    if (std::any_of(word.begin(), word.end(), IsDigit)) return false;
  }
  return false;
}

// ", ignored", " (ignored, reopened)", "; backing off 2 s", " ... skipped". A clause that goes on about it is one too.
bool WasIgnored(std::string_view behind) {
  bool begins = false;
  while (!behind.empty()) {
    if (!IsWordCharacter(behind[0])) {
      begins = begins || std::string_view(",;:(.-").find(behind[0]) != std::string_view::npos;
      behind.remove_prefix(1);
      continue;
    }
    size_t end = 0;
    while (end < behind.size() && IsWordCharacter(behind[end])) ++end;
    const std::string_view word = behind.substr(0, end);
    behind.remove_prefix(end);
    if (begins && IsOneOf(word, kIgnored)) return word != "backing" || behind.starts_with(" off");
    begins = begins && IsOneOf(word, kBeforeIgnored);
  }
  return false;
}

bool NamesAList(std::string_view before) {
  constexpr size_t kNameMax = 32;
  const std::string_view name = before.substr(before.size() - std::min(before.size(), kNameMax));
  return std::any_of(kListNames.begin(), kListNames.end(),
                     [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

// "retryable_errors: [\"…\", …]", "--retry-on=NodeNotReady,Evicted", "- \"uncorrectable ECC error encountered\""
bool IsListed(std::string_view lower_before, std::string_view behind) {
  int depth = 0;
  for (size_t at = lower_before.size(); at > 0; --at) {
    const char c = lower_before[at - 1];
    if (c == ']' || c == '}' || c == ')') ++depth;
    if (c != '[' && c != '{' && c != '(') continue;
    if (depth-- > 0) continue;
    if (NamesAList(lower_before.substr(0, at - 1))) return true;
    depth = 0;
  }
  if (const size_t colon = lower_before.rfind(" for: "); colon != std::string_view::npos) {  // "watches for: …, …"
    std::string_view before = lower_before.substr(0, colon);
    if (IsOneOf(TakeLastWord(before), kSearches)) return true;
  }
  const size_t blank = lower_before.find_last_of(" \t");
  const std::string_view token = lower_before.substr(blank == std::string_view::npos ? 0 : blank + 1);
  if (token.starts_with("--")) return true;
  if (const size_t equals = token.find('='); equals != std::string_view::npos && NamesAList(token.substr(0, equals))) {
    return true;
  }
  std::string_view opening = lower_before.substr(std::min(lower_before.find_first_not_of(" \t"), lower_before.size()));
  if (opening.starts_with("- ")) opening.remove_prefix(2);
  while (!behind.empty() && (behind.back() == ',' || behind.back() == ' ')) behind.remove_suffix(1);
  return !opening.empty() && !behind.empty() && IsQuote(opening[0]) && behind.back() == opening[0] &&
         opening.find(opening[0], 1) == std::string_view::npos && behind.find(opening[0]) == behind.size() - 1;
}

// "+ dmesg | grep -i 'fallen off the bus'"
bool IsCommand(std::string_view lower_before) {
  const size_t pluses = std::min(lower_before.find_first_not_of('+'), lower_before.size());
  if (pluses > 0 && pluses < lower_before.size() && lower_before[pluses] == ' ') return true;
  if (lower_before.starts_with("$ ")) return true;
  return std::any_of(kCommands.begin(), kCommands.end(), [&](std::string_view command) {
    const size_t at = lower_before.find(command);
    return at != std::string_view::npos &&
           (at == 0 || !std::isalpha(static_cast<unsigned char>(lower_before[at - 1])) || lower_before[at - 1] == 'e' ||
            lower_before[at - 1] == 'z');
  });
}

// Where the words begin that end at `end`: the last word with which the rule still knows them.
size_t BeginOf(PatternMatcher& matcher, std::string_view line, size_t end, RuleIndex rule) {
  size_t begin = end, tried = 0;
  for (size_t at = end; at > 0 && tried < kWordsTried; --at) {
    const bool begins_word = IsWordCharacter(line[at - 1]) && (at == 1 || !IsWordCharacter(line[at - 2]));
    if (!begins_word) continue;
    ++tried;
    if (matcher.Match(line.substr(at - 1, end - at + 1)).line == rule) return at - 1;
    begin = at - 1;
  }
  return begin;
}

std::optional<RuleIndex> Stronger(std::optional<RuleIndex> a, std::optional<RuleIndex> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

// What stands of the bytes [from, to) of a line, in which `found` was found.
std::optional<RuleIndex> StandingIn(PatternMatcher& matcher, std::string_view line, size_t from, size_t to,
                                    const PatternMatcher::Found& found, int& tries) {
  if (!found.line || matcher.rules().rule(*found.line).category == Category::kUser) return found.line;
  if (tries-- == 0) return std::nullopt;
  const size_t end = std::min(from + found.line_end, to);
  const size_t begin = std::max(BeginOf(matcher, line, end, *found.line), from);
  if (!IsTakenBack(line, begin, end)) return found.line;
  // Something else in the line may stand. Mistakes of the program are told from the line's beginning on.
  const auto other = [&](size_t other_from, size_t other_to) -> std::optional<RuleIndex> {
    if (other_from >= other_to) return std::nullopt;
    const PatternMatcher::Found part = matcher.Match(line.substr(other_from, other_to - other_from));
    const auto rule = StandingIn(matcher, line, other_from, other_to, part, tries);
    return rule && matcher.rules().rule(*rule).category == Category::kUser ? std::nullopt : rule;
  };
  return Stronger(other(from, begin), other(end, to));
}

}  // namespace

bool IsTakenBack(std::string_view line, size_t begin, size_t end) {
  const size_t before_begin = begin - std::min(begin, kContextBytes);
  const std::string before = Lower(line.substr(before_begin, begin - before_begin));
  const std::string behind = Lower(line.substr(end, kContextBytes));
  const bool sentence_ended = end > 0 && EndsClause(line[end - 1]);
  const bool is_many = behind.starts_with("s") || behind.starts_with(" errors") || behind.starts_with(" events") ||
                       (end > 0 && line[end - 1] == 's');
  return (!sentence_ended && IsDeniedBehind(behind)) || WasIgnored(behind) || IsDeniedBefore(before, is_many) ||
         IsListed(before, behind) || IsCommand(before);
}

std::optional<RuleIndex> StandingRule(PatternMatcher& matcher, std::string_view line,
                                      const PatternMatcher::Found& found) {
  int tries = kMatchesTried;
  return StandingIn(matcher, line, 0, line.size(), found, tries);
}

}  // namespace aimaster
