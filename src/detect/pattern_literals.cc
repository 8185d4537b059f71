#include "detect/pattern_literals.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <limits>
#include <set>
#include <unordered_set>
#include <utility>

#include "detect/line_text.h"

namespace aimaster {
namespace {

using Texts = std::set<std::string>;

constexpr size_t kTextsMax = 64;          // of one expression
constexpr size_t kRunMaxBytes = 64;       // of a text while it is put together; of it the rarest part is taken
constexpr size_t kFrequencyOfBytes = 24;  // beyond it is rare enough
constexpr size_t kClassMax = 4;           // characters of a class that are told apart
constexpr int kDepthMax = 50;
constexpr int kRepeatMax = 8;
constexpr int kNoLimit = std::numeric_limits<int>::max();

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsPrintable(char c) { return c >= 0x20 && c < 0x7f; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// How often a character is met in the logs of trainings, roughly; what is rare counts most.
double FrequencyOf(char c) {
  constexpr std::string_view kCommon = "eationrs";
  constexpr std::string_view kLessCommon = "lcdpmuhgfywbkv";
  if (c == ' ') return 0.12;
  if (kCommon.find(c) != std::string_view::npos) return 0.055;
  if (kLessCommon.find(c) != std::string_view::npos) return 0.02;
  if (IsDigit(c)) return 0.025;
  if (std::string_view(".:/_-=,[]").find(c) != std::string_view::npos) return 0.015;
  return 0.004;
}

// Words that are in every log, of which the product of their letters would say that they are rare.
constexpr std::array<std::string_view, 227> kWords{
    "accuracy",     "across",     "allocat",    "amount",      "average",   "backend",    "backward",   "batch",
    "begin",        "block",      "buffer",     "bytes",       "cache",     "cation",     "channel",    "checkpoint",
    "clip",         "collective", "comm",       "complete",    "config",    "connection", "consumed",   "count",
    "created",      "cuda",       "current",    "dataset",     "decay",     "default",    "device",     "directory",
    "display",      "distri",     "download",   "dropout",     "duration",  "elapsed",    "enabled",    "entries",
    "epoch",        "error",      "evaluat",    "exception",   "exit",      "expected",   "fail",       "finished",
    "forward",      "found",      "global",     "gradient",    "graph",     "group",      "hidden",     "host",
    "image",        "import",     "index",      "info",        "initial",   "input",      "install",    "interval",
    "invalid",      "item",       "iteration",  "job",         "kernel",    "key",        "label",      "latency",
    "layer",        "learning",   "length",     "level",       "library",   "limit",      "listen",     "loader",
    "local",        "loss",       "mask",       "master",      "match",     "max",        "mean",       "memory",
    "message",      "method",     "metric",     "millisecond", "min",       "model",      "module",     "momentum",
    "name",         "nccl",       "network",    "next",        "node",      "norm",       "number",     "object",
    "offset",       "operation",  "optimizer",  "option",      "output",    "overflow",   "page",       "parallel",
    "parameter",    "partition",  "path",       "peak",        "perform",   "pipeline",   "platform",   "pool",
    "position",     "prefetch",   "previous",   "print",       "process",   "profile",    "progress",   "property",
    "python",       "quant",      "queue",      "random",      "range",     "rank",       "rate",       "ready",
    "receive",      "record",     "reduc",      "region",      "register",  "remain",     "rendezvous", "report",
    "request",      "reset",      "resource",   "response",    "result",    "retry",      "root",       "run",
    "sample",       "saved",      "saving",     "scal",        "schedul",   "scope",      "script",     "section",
    "seed",         "select",     "send",       "sequence",    "server",    "session",    "setting",    "shape",
    "shard",        "size",       "skip",       "socket",      "speed",     "split",      "stage",      "start",
    "state",        "status",     "step",       "stop",        "storage",   "stream",     "string",     "style",
    "successfully", "support",    "switch",     "system",      "table",     "target",     "task",       "tensor",
    "test",         "thread",     "throughput", "timer",       "token",     "topology",   "torch",      "total",
    "trace",        "train",      "transfer",   "transform",   "transport", "tree",       "type",       "unit",
    "update",       "user",       "using",      "util",        "value",     "vector",     "version",    "virtual",
    "visible",      "wait",       "warmup",     "warning",     "weight",    "window",     "with",       "worker",
    "world",        "write",      "zero"};
constexpr size_t kWordPartMin = 3, kWordMax = 12;
constexpr double kFrequencyOfWord = 0.002;

// All parts of such words.
const std::unordered_set<std::string_view>& PartsOfWords() {
  static const std::unordered_set<std::string_view> parts = [] {
    std::unordered_set<std::string_view> made;
    for (const std::string_view word : kWords) {
      for (size_t at = 0; at < word.size(); ++at) {
        for (size_t length = kWordPartMin; at + length <= word.size(); ++length) made.insert(word.substr(at, length));
      }
    }
    return made;
  }();
  return parts;
}

// By the likeliest way to put it together of parts of words and characters. Never greater than that of a start of it.
double FrequencyOf(const std::string& text) {
  std::string lower = text.substr(0, kFrequencyOfBytes);
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  std::array<double, kFrequencyOfBytes + 1> of_start{1};
  double least = 1;
  for (size_t end = 1; end <= lower.size(); ++end) {
    of_start[end] = of_start[end - 1] * FrequencyOf(text[end - 1]);
    for (size_t length = kWordPartMin; length <= std::min(end, kWordMax); ++length) {
      if (!PartsOfWords().contains(std::string_view(lower).substr(end - length, length))) continue;
      of_start[end] = std::max(of_start[end], of_start[end - length] * kFrequencyOfWord);
    }
    least = std::min(least, of_start[end]);
  }
  return least;
}

double FrequencyOf(const Texts& texts) {
  double sum = 0;
  for (const std::string& text : texts) sum += FrequencyOf(text);
  return sum;
}

std::string RarestPart(const std::string& text, std::string_view ordinary) {
  std::string rarest = text.substr(0, kLiteralMaxBytes);
  const auto rarity = [ordinary](const std::string& part) {
    return std::pair(ordinary.find(part) != std::string_view::npos, FrequencyOf(part));
  };
  for (size_t at = 1; at + kLiteralMaxBytes <= text.size(); ++at) {
    std::string part = text.substr(at, kLiteralMaxBytes);
    if (rarity(part) < rarity(rarest)) rarest = std::move(part);
  }
  return rarest;
}

// What is known of a part of an expression.
struct Part {
  std::optional<Texts> exact;  // all that it matches
  std::optional<Texts> best;   // of these, one is in all that it matches; never holds ""
  double frequency = std::numeric_limits<double>::infinity();  // of `best`
};

void Consider(Part& part, const Texts& texts) {
  const auto is_short = [](const std::string& text) { return text.size() < kLiteralMinBytes; };
  if (texts.empty() || std::any_of(texts.begin(), texts.end(), is_short)) return;
  const double frequency = FrequencyOf(texts);
  if (frequency > part.frequency) return;  // of equal ones the later is longer
  part.best = texts;
  part.frequency = frequency;
}

void Consider(Part& part, const Part& other) {
  if (!other.best || other.frequency >= part.frequency) return;
  part.best = other.best;
  part.frequency = other.frequency;
}

Part Exactly(Texts texts) {
  Part part;
  Consider(part, texts);
  part.exact = std::move(texts);
  return part;
}

Part Nothing() { return Exactly({""}); }  // matches the empty text alone: anchors, word boundaries
Part Anything() { return {}; }

std::optional<Texts> Cross(const Texts& first, const Texts& second) {
  if (first.size() * second.size() > kTextsMax) return std::nullopt;
  Texts both;
  for (const std::string& a : first) {
    for (const std::string& b : second) {
      if (a.size() + b.size() > kRunMaxBytes) return std::nullopt;
      both.insert(a + b);
    }
  }
  return both;
}

// One part after another, each cross product a candidate for the best.
class Sequence {
 public:
  void Add(const Part& next) {
    Consider(sum_, next);
    std::optional<Texts> longer = next.exact ? Cross(run_, *next.exact) : std::nullopt;
    if (!longer) is_exact_ = false;
    run_ = longer ? std::move(*longer) : next.exact.value_or(Texts{""});
    Consider(sum_, run_);
  }
  Part Take() {
    if (is_exact_) sum_.exact = run_;
    return std::move(sum_);
  }

 private:
  Part sum_;
  Texts run_{""};  // what the end of the sequence matches
  bool is_exact_ = true;
};

// Knows as much of the syntax as people use, and says so where it does not know.
class Parser {
 public:
  explicit Parser(std::string_view pattern) : rest_(pattern) {}

  std::optional<Part> Parse() {
    Part part = Alternatives(0);
    if (!rest_.empty()) understood_ = false;
    return understood_ ? std::optional(std::move(part)) : std::nullopt;
  }
  bool ignore_case() const { return ignore_case_; }

 private:
  bool Take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  char TakeOne() {
    if (rest_.empty()) return GiveUp(), '\0';
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  Part GiveUp() {
    understood_ = false;
    rest_ = {};
    return Anything();
  }

  Part Alternatives(int depth) {
    Part sum = Concatenation(depth);
    while (Take("|")) sum = Either(sum, Concatenation(depth));
    return sum;
  }

  static Part Either(const Part& first, const Part& second) {
    Part either;
    if (first.best && second.best) {
      Texts texts = *first.best;
      texts.insert(second.best->begin(), second.best->end());
      if (texts.size() <= kTextsMax) Consider(either, texts);
    }
    if (first.exact && second.exact) {
      Texts texts = *first.exact;
      texts.insert(second.exact->begin(), second.exact->end());
      if (texts.size() <= kTextsMax) {
        Consider(either, texts);
        either.exact = std::move(texts);
      }
    }
    return either;
  }

  Part Concatenation(int depth) {
    Sequence sequence;
    while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') {
      const Part atom = Atom(depth);
      AddRepeated(atom, sequence);
    }
    return sequence.Take();
  }

  void AddRepeated(const Part& atom, Sequence& sequence) {
    int least = 1, most = 1;
    if (Take("*")) {
      least = 0, most = kNoLimit;
    } else if (Take("+")) {
      most = kNoLimit;
    } else if (Take("?")) {
      least = 0;
    } else if (!TakeBounds(least, most)) {
      return sequence.Add(atom);
    }
    Take("?");                                               // lazy matches the same
    if (rest_.starts_with('+') || rest_.starts_with('*')) {  // possessive, or not valid
      GiveUp();
    } else if (least == 0 && most == 1 && atom.exact) {
      Texts texts = *atom.exact;
      texts.insert("");
      sequence.Add(Exactly(std::move(texts)));
    } else {
      for (int i = 0; i < std::min(least, kRepeatMax); ++i) sequence.Add(atom);
      if (most != least || least > kRepeatMax) sequence.Add(Anything());
    }
  }

  // "{2,5}"; a brace that is none is a character.
  bool TakeBounds(int& least, int& most) {
    if (!rest_.starts_with('{')) return false;
    std::string_view text = rest_.substr(1);
    const auto number = [&text](int& value) {
      size_t digits = 0;
      int sum = 0;
      while (digits < text.size() && digits < 5 && IsDigit(text[digits])) sum = sum * 10 + (text[digits++] - '0');
      text.remove_prefix(digits);
      if (digits > 0) value = sum;
      return digits > 0;
    };
    int from = 0, to = 0;
    if (!number(from)) {
      if (text.starts_with(',')) GiveUp();  // a bound to some, characters to others
      return false;
    }
    to = from;
    if (text.starts_with(',')) {
      text.remove_prefix(1);
      if (!number(to)) to = kNoLimit;
    }
    if (!text.starts_with('}')) return false;
    text.remove_prefix(1);
    least = from, most = to, rest_ = text;
    return true;
  }

  Part Atom(int depth) {
    if (rest_.empty()) return GiveUp();
    const char c = TakeOne();
    switch (c) {
      case '(':
        return Group(depth);
      case '[':
        return Class();
      case '.':
        return Anything();
      case '^':
      case '$':
        return Nothing();
      case '\\':
        return Escape();
      case '*':
      case '+':
      case '?':
        return GiveUp();
      default:
        return Character(c);
    }
  }

  static Part Character(char c) { return IsPrintable(c) ? Exactly({std::string(1, c)}) : Anything(); }

  Part Group(int depth) {
    if (depth >= kDepthMax) return GiveUp();
    if (Take("?") && !Take(":")) {
      // Flags: for the group, or for what follows. Ignoring case in too much of the expression does no harm.
      bool is_open = false;
      while (true) {
        const char flag = TakeOne();
        if (flag == ')') break;
        if (flag == ':') {
          is_open = true;
          break;
        }
        if (flag != 'i' && flag != 's' && flag != 'm') return GiveUp();
        if (flag == 'i') ignore_case_ = true;
      }
      if (!is_open) return Nothing();
    }
    Part part = Alternatives(depth + 1);
    if (!Take(")")) return GiveUp();
    return part;
  }

  Part Escape() {
    const char c = TakeOne();
    if (!IsLetter(c) && !IsDigit(c)) return Character(c);
    constexpr std::string_view kNoWidth = "bBAZz", kOne = "dDwWsShHvVnrtfea";
    if (kNoWidth.find(c) != std::string_view::npos) return Nothing();
    if (kOne.find(c) != std::string_view::npos) return Anything();
    if (c == 'x' && rest_.size() >= 2 && IsHex(rest_[0]) && IsHex(rest_[1])) {
      rest_.remove_prefix(2);
      return Anything();
    }
    return GiveUp();
  }

  static bool IsHex(char c) { return IsDigit(c) || (Lower(c) >= 'a' && Lower(c) <= 'f'); }

  // "[abc]": the bracket was taken.
  Part Class() {
    const bool negated = Take("^");
    Texts members;
    bool is_small = !negated;
    for (bool first = true; first || !rest_.starts_with(']'); first = false) {
      const char c = TakeOne();
      if (!understood_) return Anything();
      if (c == '[' && (rest_.starts_with(':') || rest_.starts_with('.') || rest_.starts_with('='))) return GiveUp();
      const bool escaped = c == '\\';
      const char member = escaped ? TakeOne() : c;
      if (escaped && (member == 'Q' || member == 'E' || IsDigit(member))) return GiveUp();
      const bool is_character = IsPrintable(member) && !(escaped && IsLetter(member));
      const bool is_range = rest_.size() >= 2 && rest_[0] == '-' && rest_[1] != ']';
      is_small = is_small && is_character && !is_range;
      if (is_small) members.insert(std::string(1, member));
    }
    TakeOne();
    return is_small && members.size() <= kClassMax ? Exactly(std::move(members)) : Anything();
  }

  std::string_view rest_;
  bool understood_ = true;
  bool ignore_case_ = false;
};

}  // namespace

std::optional<Literals> RequiredLiterals(std::string_view pattern, std::string_view ordinary) {
  Parser parser(pattern);
  const std::optional<Part> part = parser.Parse();
  if (!part || !part->best) return std::nullopt;
  Literals literals{.texts = {}, .ignore_case = parser.ignore_case()};
  Texts texts;
  for (std::string text : *part->best) {
    if (literals.ignore_case) std::transform(text.begin(), text.end(), text.begin(), Lower);
    texts.insert(RarestPart(text, ordinary));
  }
  literals.texts.assign(texts.begin(), texts.end());
  return literals;
}

const Pattern* FindWithoutWords(std::span<const Pattern> patterns) {
  const auto found = std::ranges::find_if(patterns, [](const Pattern& pattern) {
    return pattern.kind == PatternKind::kLine && !RequiredLiterals(pattern.text);
  });
  return found == patterns.end() ? nullptr : &*found;
}

}  // namespace aimaster
