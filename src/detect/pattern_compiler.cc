#include "detect/pattern_compiler.h"

#include <hs/hs.h>

#include <algorithm>
#include <cctype>
#include <compare>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "detect/pattern_literals.h"

namespace aimaster {
namespace {

// Vectorscan looks for many words twice as fast where none is shorter than this.
constexpr size_t kLongWordBytes = 6;

// Whether a line matches is all that we ask.
constexpr unsigned kFlags = HS_FLAG_SINGLEMATCH;

hs_platform_info_t AnyMachine() {
  hs_platform_info_t platform{};
  platform.tune = HS_TUNE_FAMILY_GENERIC;
  return platform;
}

// Takes the database over.
Result<std::string> Serialise(hs_database_t* database) {
  char* bytes = nullptr;
  size_t length = 0;
  const bool serialised = hs_serialize_database(database, &bytes, &length) == HS_SUCCESS;
  hs_free_database(database);
  if (!serialised) return Fail(ErrorKind::kEnvironment, "no memory to compile the patterns");
  std::string text(bytes, length);
  std::free(bytes);
  return text;
}

std::string TakeMessage(hs_compile_error_t* error) {
  std::string message = error->message;
  hs_free_compile_error(error);
  return message;
}

Result<std::string> CompileLines(std::span<const Pattern> patterns) {
  if (patterns.empty()) return std::string();
  std::vector<std::string> texts;
  for (const Pattern& pattern : patterns) texts.emplace_back(pattern.text);
  std::vector<const char*> expressions;
  std::vector<unsigned> ids;
  for (const std::string& text : texts) {
    ids.push_back(static_cast<unsigned>(expressions.size()));
    expressions.push_back(text.c_str());
  }
  const std::vector<unsigned> flags(texts.size(), kFlags);
  const hs_platform_info_t platform = AnyMachine();
  hs_database_t* database = nullptr;
  hs_compile_error_t* error = nullptr;
  if (hs_compile_multi(expressions.data(), flags.data(), ids.data(), static_cast<unsigned>(texts.size()), HS_MODE_BLOCK,
                       &platform, &database, &error) != HS_SUCCESS) {
    const int number = error->expression;
    const bool known = number >= 0 && static_cast<size_t>(number) < texts.size();
    return Fail(ErrorKind::kUsage,
                (known ? "the pattern '" + texts[static_cast<size_t>(number)] + "'" : "the patterns") +
                    " can't be compiled: " + TakeMessage(error));
  }
  return Serialise(database);
}

struct Word {
  std::string text;  // lower case where case is ignored
  bool ignore_case = false;
  auto operator<=>(const Word&) const = default;
};

// Whether a line that holds `longer` holds `shorter` too.
bool Implies(const Word& longer, const Word& shorter) {
  if (longer.ignore_case && !shorter.ignore_case) return false;
  if (longer.ignore_case || !shorter.ignore_case) return longer.text.find(shorter.text) != std::string::npos;
  std::string lower = longer.text;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find(shorter.text) != std::string::npos;
}

std::vector<Word> WordsOf(std::span<const Pattern> patterns, std::span<const std::string_view> also,
                          std::string_view ordinary) {
  std::set<Word> words;
  for (const std::string_view text : also) words.insert({std::string(text), false});
  for (const Pattern& pattern : patterns) {
    if (pattern.kind != PatternKind::kLine) continue;
    const std::optional<Literals> literals = RequiredLiterals(pattern.text, ordinary);
    if (!literals) continue;
    for (const std::string& text : literals->texts) words.insert({text, literals->ignore_case});
  }
  std::vector<Word> needed;
  for (const Word& word : words) {
    const bool is_implied =
        std::ranges::any_of(words, [&](const Word& other) { return other != word && Implies(word, other); });
    if (!is_implied) needed.push_back(word);
  }
  return needed;
}

Result<std::string> CompileWords(const std::vector<Word>& words) {
  if (words.empty()) return std::string();
  std::vector<const char*> texts;
  std::vector<unsigned> flags;
  std::vector<size_t> lengths;
  for (const Word& word : words) {
    texts.push_back(word.text.data());
    flags.push_back(word.ignore_case ? HS_FLAG_CASELESS : 0);
    lengths.push_back(word.text.size());
  }
  const std::vector<unsigned> ids(words.size(), 0);
  const hs_platform_info_t platform = AnyMachine();
  hs_database_t* database = nullptr;
  hs_compile_error_t* error = nullptr;
  if (hs_compile_lit_multi(texts.data(), flags.data(), ids.data(), lengths.data(), static_cast<unsigned>(words.size()),
                           HS_MODE_BLOCK, &platform, &database, &error) != HS_SUCCESS) {
    return Fail(ErrorKind::kUsage, "the patterns' words can't be compiled: " + TakeMessage(error));
  }
  return Serialise(database);
}

}  // namespace

Result<CompiledPatterns> CompilePatterns(std::span<const Pattern> patterns, std::span<const std::string_view> also,
                                         std::string_view ordinary) {
  CompiledPatterns compiled;
  if (const Result<std::string> lines = CompileLines(patterns)) {
    compiled.lines = *lines;
  } else {
    return std::unexpected(lines.error());
  }
  std::vector<Word> words = WordsOf(patterns, also, ordinary), short_words;
  const auto first_short =
      std::ranges::partition(words, [](const Word& word) { return word.text.size() >= kLongWordBytes; }).begin();
  short_words.assign(first_short, words.end());
  words.erase(first_short, words.end());
  for (const auto& [from, to] : {std::pair(&words, &compiled.words), {&short_words, &compiled.short_words}}) {
    const Result<std::string> database = CompileWords(*from);
    if (!database) return std::unexpected(database.error());
    *to = *database;
  }
  compiled.every_line = FindWithoutWords(patterns) != nullptr;
  return compiled;
}

Status CheckPattern(std::string_view text) {
  const hs_platform_info_t platform = AnyMachine();
  hs_database_t* database = nullptr;
  hs_compile_error_t* error = nullptr;
  if (hs_compile(std::string(text).c_str(), kFlags, HS_MODE_BLOCK, &platform, &database, &error) != HS_SUCCESS) {
    return Fail(ErrorKind::kUsage, TakeMessage(error));
  }
  hs_free_database(database);
  return {};
}

}  // namespace aimaster
