#include "cli/arguments.h"

#include <algorithm>
#include <charconv>

#include "core/nearest_name.h"
#include "core/parameter_table.h"
#include "core/parameter_value.h"
#include "core/quote.h"

namespace aimaster::cli {
namespace {

// A word that starts like an option: "--name", "--name=value", "-n", "-nvalue". "-" and "-1" are operands.
bool LooksLikeOption(std::string_view word) {
  if (word.starts_with("--")) return word.size() > 2;
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

const Option* FindOption(const Command& command, std::string_view name) {
  for (const Option& option : command.options) {
    if (option.name == name || (!option.short_name.empty() && option.short_name == name)) return &option;
  }
  return nullptr;
}

std::string SeeHelp(const Command& command) {
  return " (`aimaster help " + std::string(command.name) + "` lists what there is)";
}

class Parser {
 public:
  Parser(const Command& command, std::span<const std::string> words) : command_(command), words_(words) {}

  Result<Arguments> Parse() {
    while (position_ < words_.size()) {
      if (Status status = ParseWord(words_[position_++]); !status) return std::unexpected(status.error());
      if (arguments_.Has(kHelpOption)) return arguments_;
    }
    if (Status status = CheckOperands(); !status) return std::unexpected(status.error());
    return arguments_;
  }

 private:
  Status ParseWord(const std::string& word) {
    if (only_operands_ || !LooksLikeOption(word)) {
      if (!only_operands_ && word == "--") {
        only_operands_ = true;
        return {};
      }
      arguments_.operands.push_back(word);
      only_operands_ |= command_.operands_end_options;
      return {};
    }
    if (word == kHelpOption || word == "-h") {
      arguments_.Add(kHelpOption, "");
      return {};
    }
    return word.starts_with("--") ? ParseLong(word) : ParseShort(word);
  }

  Status ParseLong(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = word.substr(equals + 1);
    if (const Option* option = FindOption(command_, name)) return Take(*option, name, std::move(value));
    if (const Parameter* parameter = FindParameter(name.substr(2)); parameter && Takes(command_, *parameter)) {
      return TakeParameter(*parameter, name.substr(2), std::move(value));
    }
    return Unknown(name);
  }

  Status ParseShort(const std::string& word) {
    const std::string name = word.substr(0, 2);
    const Option* option = FindOption(command_, name);
    if (option == nullptr) return Unknown(word);
    std::optional<std::string> value;
    if (word.size() > 2) value = word.substr(2);
    return Take(*option, name, std::move(value));
  }

  Status Take(const Option& option, const std::string& written, std::optional<std::string> value) {
    if (option.value.empty()) {
      if (value) return Fail(ErrorKind::kUsage, written + " takes no value, and got " + Quoted(*value));
      arguments_.Add(option.name, "");
      return {};
    }
    if (!value) value = option.value_is_flags ? NextWord() : NextValue();
    if (!value) {
      return Fail(ErrorKind::kUsage,
                  written + " needs a value: " + written + " " + std::string(option.value) + SeeHelp(command_));
    }
    if (!option.choices.empty() && std::ranges::find(option.choices, *value) == option.choices.end()) {
      std::string allowed;
      for (const std::string_view choice : option.choices)
        allowed += (allowed.empty() ? "" : ", ") + std::string(choice);
      return Fail(ErrorKind::kUsage, written + " is " + Quoted(*value) + "; allowed: " + allowed);
    }
    if (!option.repeatable && arguments_.Has(option.name) && arguments_.Text(option.name) != *value) {
      return Fail(ErrorKind::kUsage, written + " was given twice, as " + Quoted(arguments_.Text(option.name)) +
                                         " and as " + Quoted(*value));
    }
    arguments_.Add(option.name, *std::move(value));
    return {};
  }

  // Flags that are accepted and ignored may stand alone: what follows is theirs only when it can't be anything else.
  Status TakeParameter(const Parameter& parameter, std::string name, std::optional<std::string> value) {
    const bool ignored = parameter.type == ParameterType::kAny;
    if (!value && (!ignored || NextIsBoolean())) value = NextValue();
    if (!value && !ignored) return Fail(ErrorKind::kUsage, ParseValue(parameter, name, "").error().message);
    arguments_.parameters.push_back({.name = std::move(name), .value = value.value_or("")});
    return {};
  }

  bool NextIsBoolean() const {
    if (position_ >= words_.size()) return false;
    std::string word = words_[position_];
    std::ranges::transform(word, word.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    return word == "true" || word == "false";
  }

  std::optional<std::string> NextValue() {
    if (position_ >= words_.size() || words_[position_].starts_with("--")) return std::nullopt;
    return words_[position_++];
  }

  std::optional<std::string> NextWord() {
    if (position_ >= words_.size() || words_[position_] == "--") return std::nullopt;
    return words_[position_++];
  }

  Status Unknown(const std::string& name) const {
    std::vector<std::string> owned;
    for (const Option& option : command_.options) owned.emplace_back(option.name);
    for (const Parameter& parameter : ParameterTable()) {
      if (!Takes(command_, parameter)) continue;
      owned.push_back("--" + std::string(parameter.name));
      for (const std::string_view alias : parameter.aliases) owned.push_back("--" + std::string(alias));
    }
    owned.emplace_back(kHelpOption);
    const std::vector<std::string_view> names(owned.begin(), owned.end());
    const std::string meant = DidYouMean(name, names);
    return Fail(ErrorKind::kUsage, "aimaster " + std::string(command_.name) + " has no option " + Printable(name) +
                                       (meant.empty() ? SeeHelp(command_) : meant));
  }

  Status CheckOperands() const {
    const size_t count = arguments_.operands.size();
    if (count < command_.operands_min) {
      return Fail(ErrorKind::kUsage, "aimaster " + std::string(command_.name) + " needs more: aimaster " +
                                         std::string(command_.name) + " " + std::string(command_.operands));
    }
    if (count > command_.operands_max) {
      return Fail(ErrorKind::kUsage, "unexpected " + Quoted(arguments_.operands[command_.operands_max]) +
                                         " behind aimaster " + std::string(command_.name) + SeeHelp(command_));
    }
    return {};
  }

  const Command& command_;
  std::span<const std::string> words_;
  size_t position_ = 0;
  bool only_operands_ = false;
  Arguments arguments_;
};

}  // namespace

std::string Arguments::Text(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? "" : found->second.back();
}

std::vector<std::string> Arguments::Texts(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

Result<std::optional<uint64_t>> Arguments::Number(std::string_view option, uint64_t minimum, uint64_t maximum) const {
  if (!Has(option)) return std::nullopt;
  const std::string text = Text(option);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < minimum || number > maximum) {
    return Fail(ErrorKind::kUsage, std::string(option) + " is " + Quoted(text) + "; allowed: a whole number from " +
                                       std::to_string(minimum) + " to " + std::to_string(maximum));
  }
  return number;
}

Result<Arguments> ParseArguments(const Command& command, std::span<const std::string> words) {
  return Parser(command, words).Parse();
}

}  // namespace aimaster::cli
