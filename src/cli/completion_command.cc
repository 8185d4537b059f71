// Completion scripts for shells, written out of the commands' descriptions, so that a new option completes by itself.
// Job names are asked for when they are needed, of `aimaster list`.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/report.h"
#include "core/parameter_table.h"

namespace aimaster::cli {
namespace {

bool TakesJob(const Command& command) { return command.operands.starts_with("JOB"); }
bool TakesInstance(const Command& command) { return command.operands.starts_with("INSTANCE"); }
bool TakesFiles(const Command& command) { return command.operands.contains("FILE"); }

std::string Joined(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

// Of a synopsis what is written as it stands there: "test" and "events" of "test FILE | events".
std::string LiteralWords(std::string_view synopsis) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : std::string(synopsis) + " ") {
    if (c != ' ' && c != '|') {
      word += c;
    } else if (const std::string whole = std::exchange(word, {}); !whole.empty()) {
      if (std::ranges::all_of(whole, [](char letter) { return letter >= 'a' && letter <= 'z'; }))
        words.push_back(whole);
    }
  }
  return Joined(words);
}

std::string ChoicesOf(const Parameter& parameter) {
  if (parameter.type == ParameterType::kBool) return "True False";
  return Joined({parameter.choices.begin(), parameter.choices.end()});
}

// An option or parameter that takes a value, and what that may be; empty: anything.
struct ValuedOption {
  std::string name;  // with its dashes
  std::string choices;
};

std::vector<ValuedOption> ValuedOptions(const Command& command) {
  std::vector<ValuedOption> valued;
  for (const Option& option : command.options) {
    if (option.value.empty()) continue;
    const std::string choices = Joined({option.choices.begin(), option.choices.end()});
    valued.push_back({std::string(option.name), choices});
    if (!option.short_name.empty()) valued.push_back({std::string(option.short_name), choices});
  }
  for (const Parameter& parameter : ParameterTable()) {
    if (!Takes(command, parameter)) continue;
    valued.push_back({"--" + std::string(parameter.name), ChoicesOf(parameter)});
  }
  return valued;
}

std::vector<std::string> OptionNames(const Command& command) {
  std::vector<std::string> names;
  for (const Option& option : command.options) names.emplace_back(option.name);
  for (const Parameter& parameter : ParameterTable()) {
    if (Takes(command, parameter)) names.push_back("--" + std::string(parameter.name));
  }
  names.emplace_back("--help");
  return names;
}

std::string CommandNames() {
  std::vector<std::string> names;
  for (const Command* command : Commands()) names.emplace_back(command->name);
  return Joined(names);
}

std::string BashWords() {
  std::string cases;
  for (const Command* command : Commands()) {
    std::string words = Joined(OptionNames(*command));
    if (TakesJob(*command)) words += " $(_aimaster_jobs)";
    if (TakesInstance(*command)) words += " $(_aimaster_instances)";
    if (command == &kHelpCommand) words += " " + CommandNames();
    words += " " + LiteralWords(command->operands);
    cases += "    " + std::string(command->name) + ") words=\"" + words + "\" ;;\n";
  }
  return cases;
}

// Where the value may be anything nothing is said, and bash offers files.
std::string BashValues() {
  std::string cases;
  for (const Command* command : Commands()) {
    std::string any;
    for (const ValuedOption& option : ValuedOptions(*command)) {
      const std::string pattern = "\"" + std::string(command->name) + " " + option.name + "\"";
      if (option.choices.empty()) {
        any += (any.empty() ? "" : "|") + pattern;
      } else {
        cases +=
            "    " + pattern + ") COMPREPLY=($(compgen -W \"" + option.choices + "\" -- \"$current\")); return ;;\n";
      }
    }
    if (!any.empty()) cases += "    " + any + ") return ;;\n";
  }
  return cases;
}

// The same function serves zsh by its bashcompinit.
std::string BashScript() {
  return "# bash completion for aimaster:  source <(aimaster completion bash)\n"
         "_aimaster_jobs() { aimaster list --limit 100 --ids --names 2>/dev/null; }\n"
         "_aimaster_instances() { aimaster list --limit 100 --instances 2>/dev/null; }\n"
         "_aimaster() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" words i\n"
         "  COMPREPLY=()\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    if [[ ${COMP_WORDS[i]} == -- ]]; then COMPREPLY=($(compgen -f -- \"$current\")); return; fi\n"
         "  done\n"
         "  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W \"" +
         CommandNames() +
         " --help --version\" -- \"$current\")); return; fi\n"
         "  # Of --name=value bash makes three words.\n"
         "  if [[ $current == = ]]; then current=\"\"\n"
         "  elif [[ $previous == = ]]; then previous=\"${COMP_WORDS[COMP_CWORD-2]}\"; fi\n"
         "  case \"${COMP_WORDS[1]} $previous\" in\n" +
         BashValues() +
         "  esac\n"
         "  case \"${COMP_WORDS[1]}\" in\n" +
         BashWords() +
         "    *) words=\"\" ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _aimaster aimaster\n";
}

std::string ZshScript() {
  return "# zsh completion for aimaster:  source <(aimaster completion zsh)\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         BashScript();
}

std::string FishQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return quoted + "'";
}

std::string FishScript() {
  std::string script =
      "# fish completion for aimaster:  aimaster completion fish | source\n"
      "complete -c aimaster -f\n";
  for (const Command* command : Commands()) {
    const std::string name(command->name);
    script += "complete -c aimaster -n __fish_use_subcommand -a " + name + " -d " + FishQuoted(command->summary) + "\n";
    const std::string prefix = "complete -c aimaster -n '__fish_seen_subcommand_from " + name + "' ";
    const auto value = [](std::string_view what, const std::string& choices) {
      if (!choices.empty()) return " -x -a " + FishQuoted(choices);
      return std::string(what == "FILE" || what == "DIR" ? " -r -F" : " -x");
    };
    for (const Option& option : command->options) {
      script += prefix + "-l " + std::string(option.name.substr(2));
      if (!option.short_name.empty()) script += " -s " + std::string(option.short_name.substr(1));
      if (!option.value.empty()) {
        script += value(option.value, Joined({option.choices.begin(), option.choices.end()}));
      }
      script += " -d " + FishQuoted(option.help) + "\n";
    }
    for (const Parameter& parameter : ParameterTable()) {
      if (!Takes(*command, parameter)) continue;
      script += prefix + "-l " + std::string(parameter.name) + value("", ChoicesOf(parameter)) + " -d " +
                FishQuoted(parameter.help) + "\n";
    }
    if (TakesJob(*command)) script += prefix + "-a '(aimaster list --limit 100 --ids --names 2>/dev/null)'\n";
    if (TakesInstance(*command)) script += prefix + "-a '(aimaster list --limit 100 --instances 2>/dev/null)'\n";
    if (TakesFiles(*command)) script += prefix + "-F\n";
    if (command == &kHelpCommand) script += prefix + "-a '" + CommandNames() + "'\n";
    if (const std::string words = LiteralWords(command->operands); !words.empty()) {
      script += prefix + "-a " + FishQuoted(words) + "\n";
    }
  }
  return script;
}

int Run(const Arguments& arguments) {
  const std::string& shell = arguments.operands.front();
  if (shell == "bash") return Print(BashScript());
  if (shell == "zsh") return Print(ZshScript());
  if (shell == "fish") return Print(FishScript());
  return Complain({ErrorKind::kUsage, "no completion for '" + shell + "'; there is one for bash, zsh and fish"});
}

}  // namespace

const Command kCompletionCommand = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "a script that completes commands, options, their values and jobs in a shell",
    .details = "Prints the script; a shell reads it once per session, or from one of its start files.",
    .examples =
        "source <(aimaster completion bash)\naimaster completion fish > ~/.config/fish/completions/aimaster.fish",
    .options = {},
    .run = &Run,
};

}  // namespace aimaster::cli
