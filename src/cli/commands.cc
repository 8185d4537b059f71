#include <algorithm>
#include <array>

#include "cli/command.h"

namespace aimaster::cli {

std::span<const Command* const> Commands() {
  static constexpr std::array kCommands = {
      &kRunCommand,  &kAttachCommand, &kResumeCommand,     &kStopCommand,    &kListCommand,
      &kGetCommand,  &kRoundsCommand, &kRecordsCommand,    &kExplainCommand, &kEventsCommand,
      &kLogsCommand, &kParamsCommand, &kCompletionCommand, &kHelpCommand,
  };
  return kCommands;
}

const Command* FindCommand(std::string_view name) {
  const auto found = std::ranges::find(Commands(), name, &Command::name);
  return found == Commands().end() ? nullptr : *found;
}

}  // namespace aimaster::cli
