#include <array>
#include <vector>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/report.h"
#include "cli/text.h"
#include "core/nearest_name.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {Option{.name = "--markdown", .help = "all commands, as the page docs/cli.md"}};

int Run(const Arguments& arguments) {
  if (arguments.Has("--markdown")) return Print(CommandLinePage());
  if (arguments.operands.empty()) return Print(OverviewHelp(LookAt(1)));
  const std::string& name = arguments.operands.front();
  if (const Command* command = FindCommand(name)) return Print(CommandHelp(*command, LookAt(1)));
  std::vector<std::string_view> names;
  for (const Command* command : Commands()) names.push_back(command->name);
  return Complain({ErrorKind::kUsage, "there is no command " + InQuotes(name) + DidYouMean(name, names)});
}

}  // namespace

const Command kHelpCommand = {
    .name = "help",
    .operands = "[COMMAND]",
    .operands_max = 1,
    .summary = "what a command does, takes and prints",
    .details = "Without COMMAND: what commands there are, the exit codes, and the environment variables.",
    .examples = "aimaster help run",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
