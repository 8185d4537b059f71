// The program `aimaster`: finds the command, parses what belongs to it, does it.
#include <fcntl.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "core/nearest_name.h"
#include "master/master.h"

namespace aimaster::cli {
namespace {

// How a supervisor starts us; no command for people, so it stands in no list and takes no other form.
bool IsMasterCall(const std::vector<std::string>& words) {
  return words.size() == 3 && words[0] == "master" && words[1] == "--job-dir";
}

int UnknownCommand(const std::string& word) {
  std::vector<std::string_view> names;
  for (const Command* command : Commands()) names.push_back(command->name);
  const std::string meant = DidYouMean(word, names);
  return Complain({ErrorKind::kUsage, "there is no command " + InQuotes(word) +
                                          (meant.empty() ? "; `aimaster help` lists what there is" : meant)});
}

// Where a script closed a standard descriptor, the next file that we open would take its place: a socket would be
// printed into, and an end of it waited for.
void HoldStandardDescriptors() {
  int descriptor = -1;
  do {
    descriptor = open("/dev/null", O_RDWR);
  } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor >= 0) close(descriptor);
}

int RunProgram(const std::vector<std::string>& words) {
  if (IsMasterCall(words)) return RunMaster(std::filesystem::path(words[2]));
  if (words.empty()) {
    return Complain(
        {ErrorKind::kUsage, "which command? `aimaster run -- CMD` starts a job, `aimaster help` lists the rest"});
  }
  const std::string& name = words.front();
  if (name == "--version" || name == "-V") return Print("aimaster " + std::string(kVersion) + "\n");
  if (name == "--help" || name == "-h") return Print(OverviewHelp(LookAt(1)));
  const Command* command = FindCommand(name);
  if (command == nullptr) return UnknownCommand(name);
  const Result<Arguments> arguments = ParseArguments(*command, std::span(words).subspan(1));
  if (!arguments) return Complain(arguments.error());
  if (arguments->Has(kHelpOption)) return Print(CommandHelp(*command, LookAt(1)));
  return command->run(*arguments);
}

}  // namespace
}  // namespace aimaster::cli

int main(int argc, char** argv) {
  aimaster::cli::HoldStandardDescriptors();
  // Without a name of our own (argc 0) there are no words either.
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  try {
    return aimaster::cli::RunProgram(words);
  } catch (const std::exception& failure) {  // of a library; ours are values
    return aimaster::cli::Complain(
        {aimaster::ErrorKind::kEnvironment, std::string("internal error: ") + failure.what()});
  }
}
