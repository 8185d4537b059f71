// A command of `aimaster`, as data: what it is called, what it takes, what it says about itself, and the function that
// does it. Help, completion, the docs page and the parser all read this one description.
//
// A parser library (CLI11 2.1) was rejected: it gives `--name=` the next word as its value and takes a `--` for a
// missing one, so that a slip in a flag silently changes which program is started.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/parameter_table.h"
#include "core/parameter_words.h"

namespace aimaster::cli {

struct Option {
  std::string_view name;        // "--follow"
  std::string_view short_name;  // "-f", or empty
  std::string_view value;       // what stands for its value in texts, "N"; empty: a switch without a value
  std::string_view help;        // one line
  bool repeatable = false;
  std::span<const std::string_view> choices = {};  // of its value; empty: any
  bool value_is_flags = false;  // the value may itself start with two dashes, even in a word of its own
};

// What was written behind a command's name.
class Arguments {
 public:
  bool Has(std::string_view option) const { return values_.contains(option); }
  // The value that was given last; empty when there is none.
  std::string Text(std::string_view option) const;
  // All of them, in order.
  std::vector<std::string> Texts(std::string_view option) const;
  // A whole number from `minimum` to `maximum`; none when the option was not given.
  Result<std::optional<uint64_t>> Number(std::string_view option, uint64_t minimum, uint64_t maximum) const;

  std::vector<std::string> operands;
  std::vector<GivenParameter> parameters;  // of the parameter table, for a command that takes them

  void Add(std::string_view option, std::string value) { values_[option].push_back(std::move(value)); }

 private:
  std::map<std::string_view, std::vector<std::string>> values_;
};

// Of the parameter table. kFaultTolerance: not those that describe the job itself.
enum class TakesParameters { kNo, kFaultTolerance, kYes };

struct Command {
  std::string_view name;
  std::string_view operands;  // as in a synopsis: "JOB"
  size_t operands_min = 0;
  size_t operands_max = 0;
  std::string_view summary;  // one line, without a full stop
  std::string_view details;  // paragraphs
  std::string_view examples;
  std::span<const Option> options;
  int (*run)(const Arguments& arguments) = nullptr;
  TakesParameters takes_parameters = TakesParameters::kNo;
  bool operands_end_options = false;  // from the first operand on nothing is an option: `run python train.py --lr 1`
};

bool Takes(const Command& command, const Parameter& parameter);

// In the order in which people should read them.
std::span<const Command* const> Commands();
const Command* FindCommand(std::string_view name);

extern const Command kRunCommand, kAttachCommand, kResumeCommand, kStopCommand, kListCommand, kGetCommand,
    kRoundsCommand, kGoodputCommand, kRecordsCommand, kExplainCommand, kJudgeCommand, kC4dCommand, kReplayCommand,
    kEventsCommand, kNotifyCommand, kLogsCommand, kExecCommand, kStacksCommand, kParamsCommand, kCompletionCommand,
    kHelpCommand;

}  // namespace aimaster::cli
