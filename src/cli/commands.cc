#include <algorithm>
#include <array>

#include "cli/command.h"

namespace aimaster::cli {

std::span<const Command* const> Commands() {
  static constexpr std::array kCommands = {
      &kRunCommand,    &kAttachCommand,     &kResumeCommand,  &kStopCommand,    &kListCommand,   &kGetCommand,
      &kRoundsCommand, &kGoodputCommand,    &kRecordsCommand, &kExplainCommand, &kJudgeCommand,  &kC4dCommand,
      &kReplayCommand, &kEventsCommand,     &kNotifyCommand,  &kLogsCommand,    &kStacksCommand, &kExecCommand,
      &kParamsCommand, &kCompletionCommand, &kHelpCommand,
  };
  return kCommands;
}

bool Takes(const Command& command, const Parameter& parameter) {
  switch (command.takes_parameters) {
    case TakesParameters::kNo:
      return false;
    case TakesParameters::kFaultTolerance:
      return IsFaultTolerance(parameter);
    case TakesParameters::kYes:
      return true;
  }
  return false;
}

const Command* FindCommand(std::string_view name) {
  const auto found = std::ranges::find(Commands(), name, &Command::name);
  return found == Commands().end() ? nullptr : *found;
}

}  // namespace aimaster::cli
