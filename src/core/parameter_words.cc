#include "core/parameter_words.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/parameter_table.h"
#include "core/parameter_value.h"
#include "core/quote.h"

namespace aimaster {
namespace {

// The blank at the start of the text, in bytes: ASCII's, and the ones that come along when a line is copied from a web
// page or typed with an East Asian keyboard. 0: none.
size_t BlankLength(std::string_view text) {
  constexpr std::array<std::string_view, 10> kBlanks = {" ",  "\t",     "\n",     "\r",     "\v",
                                                        "\f", "\u00a0", "\u3000", "\u200b", "\ufeff"};
  for (const std::string_view blank : kBlanks) {
    if (text.starts_with(blank)) return blank.size();
  }
  return 0;
}

bool IsFlag(std::string_view word) { return word.starts_with("--"); }

// Cuts words off the front of a text. Quotes may stand anywhere in a word, as in --name='a b'.
class WordReader {
 public:
  explicit WordReader(std::string_view text) : rest_(text) {}

  // The next word; nothing at the end.
  Result<std::optional<std::string>> Next() {
    while (const size_t length = SeparatorLength()) rest_.remove_prefix(length);
    if (rest_.empty()) return std::nullopt;
    std::string word;
    while (!rest_.empty() && SeparatorLength() == 0) {
      if (rest_[0] == '\'' || rest_[0] == '"') {
        if (Status status = ReadQuotes(word); !status) return std::unexpected(status.error());
      } else {
        ReadCharacter(word, "'\"\\");
      }
    }
    return word;
  }

 private:
  size_t SeparatorLength() const {
    if (!rest_.starts_with('\\')) return BlankLength(rest_);
    const std::string_view behind = rest_.substr(1);
    return behind.empty() ? 1 : BlankLength(behind) > 0 ? 1 + BlankLength(behind) : 0;
  }

  void ReadCharacter(std::string& word, std::string_view protected_by_backslash) {
    const bool protects =
        rest_.size() > 1 && rest_[0] == '\\' && protected_by_backslash.find(rest_[1]) != std::string_view::npos;
    if (protects) rest_.remove_prefix(1);
    word += rest_[0];
    rest_.remove_prefix(1);
  }

  Status ReadQuotes(std::string& word) {
    const std::string_view from = rest_;
    const char quote = rest_[0];
    rest_.remove_prefix(1);
    while (!rest_.empty() && rest_[0] != quote) ReadCharacter(word, quote == '"' ? "\"\\" : "");
    if (rest_.empty()) {
      return Fail(ErrorKind::kUsage,
                  std::string("a quote (") + quote + ") is never closed, from here on: " + Quoted(from));
    }
    rest_.remove_prefix(1);
    return {};
  }

  std::string_view rest_;
};

std::string UnexpectedWord(const std::string& word, const std::string& previous) {
  std::string message = "unexpected " + Quoted(word);
  if (!previous.empty()) message += " behind --" + Printable(previous);
  if (word.starts_with("–") || word.starts_with("—") || word.starts_with("−")) {
    return message + ": its dash is a typographic one; a parameter starts with two plain hyphens, --";
  }
  return message + ": parameters are written --name=value; a value with blanks needs quotes";
}

Result<std::vector<GivenParameter>> PairUp(std::span<const std::string> words, bool fault_tolerance_only) {
  std::vector<GivenParameter> given;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!IsFlag(word)) return Fail(ErrorKind::kUsage, UnexpectedWord(word, given.empty() ? "" : given.back().name));
    const size_t equals = word.find('=');
    GivenParameter parameter{.name = word.substr(2, equals == std::string::npos ? equals : equals - 2),
                             .fault_tolerance_only = fault_tolerance_only};
    if (parameter.name.empty())
      return Fail(ErrorKind::kUsage, UnexpectedWord(word, given.empty() ? "" : given.back().name));
    if (equals != std::string::npos) {
      parameter.value = word.substr(equals + 1);
    } else if (i + 1 < words.size() && !IsFlag(words[i + 1])) {
      parameter.value = words[++i];
    } else if (const Parameter* known = FindParameter(parameter.name); known && known->type != ParameterType::kAny) {
      return Fail(ErrorKind::kUsage, MissingValueText(*known, parameter.name));
    }
    given.push_back(std::move(parameter));
  }
  return given;
}

}  // namespace

Result<std::vector<GivenParameter>> SplitParameterString(std::string_view text) {
  if (text.size() > kParameterStringMaxBytes) {
    return Fail(ErrorKind::kUsage, "the parameters are " + std::to_string(text.size()) +
                                       " bytes long; allowed: at most " + std::to_string(kParameterStringMaxBytes));
  }
  std::vector<std::string> words;
  WordReader reader(text);
  while (true) {
    Result<std::optional<std::string>> word = reader.Next();
    if (!word) return std::unexpected(word.error());
    if (!*word) return PairUp(words, true);
    words.push_back(**std::move(word));
  }
}

Result<std::vector<GivenParameter>> SplitParameterArguments(std::span<const std::string> arguments) {
  return PairUp(arguments, false);
}

std::string QuoteParameterWord(std::string_view word) {
  bool plain = !word.empty();
  for (size_t i = 0; i < word.size(); ++i) {
    plain &= word[i] != '\'' && word[i] != '"' && word[i] != '\\' && BlankLength(word.substr(i)) == 0;
  }
  if (plain) return std::string(word);
  std::string quoted = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace aimaster
