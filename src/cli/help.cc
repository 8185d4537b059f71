#include "cli/help.h"

#include <algorithm>
#include <vector>

#include "cli/text.h"
#include "core/parameter_table.h"
#include "core/parameter_value.h"

namespace aimaster::cli {
namespace {

constexpr size_t kTextWidthMax = 100;  // longer lines are hard to read, however wide the terminal is
constexpr size_t kIndent = 4;

constexpr std::string_view kIntroduction =
    "AIMaster keeps a distributed training job alive: it starts the job's processes, watches them, finds out why one "
    "failed, restarts what has to be restarted, and keeps a record that says why.";

struct ExitCode {
  std::string_view code, meaning;
};
constexpr ExitCode kExitCodes[] = {
    {"0", "success; of a job that is followed: it succeeded"},
    {"1", "something failed; of a job: it failed for a reason that is no process's exit, or its master is gone"},
    {"2", "the command line is wrong; nothing was done"},
    {"126", "run: the command is not executable"},
    {"127", "run: the command was not found"},
    {"129", "run, attach, resume: the terminal went away; the job goes on"},
    {"130, 143", "run, attach, resume: the job was stopped because of SIGINT (Ctrl-C), SIGTERM"},
    {"other",
     "run, attach, resume: the exit code of the process that made the job fail, 128 + n when signal n killed it"},
};

struct Variable {
  std::string_view name, meaning;
};
constexpr Variable kVariables[] = {
    {"AIMASTER_HOME",
     "where jobs, their journals and logs are kept; default: $XDG_STATE_HOME/aimaster, or "
     "~/.local/state/aimaster"},
    {"NO_COLOR", "set and not empty: no colours"},
    {"TERM", "dumb: no colours, no status line"},
};

size_t TextWidth(const Terminal& terminal) {
  return terminal.width > 0 ? std::clamp<size_t>(static_cast<size_t>(terminal.width), 40, kTextWidthMax)
                            : kTextWidthMax;
}

std::string Indented(std::string_view text, size_t indent, size_t width) {
  std::string out;
  for (const std::string& line : Wrap(text, width - indent)) {
    out += line.empty() ? "\n" : std::string(indent, ' ') + line + "\n";
  }
  return out;
}

std::string Heading(const Terminal& terminal, std::string_view text) {
  return terminal.Paint(Colour::kBold, text) + "\n";
}

// A term and what it means; on one line where the term is short.
std::string HelpEntry(const Terminal& terminal, std::string_view term, std::string_view meaning, size_t column) {
  std::string out = std::string(kIndent, ' ') + terminal.Paint(Colour::kBold, term);
  const size_t used = kIndent + DisplayWidth(term);
  if (used + 2 > column) {
    out += "\n" + std::string(column, ' ');
  } else {
    out += std::string(column - used, ' ');
  }
  bool first = true;
  for (const std::string& line : Wrap(meaning, TextWidth(terminal) - column)) {
    out += (first ? "" : std::string(column, ' ')) + line + "\n";
    first = false;
  }
  return out;
}

std::string Written(const Option& option) {
  std::string written = option.short_name.empty() ? "" : std::string(option.short_name) + ", ";
  written += option.name;
  if (!option.value.empty()) written += " " + std::string(option.value);
  return written;
}

std::string_view ValueWord(ParameterType type) {
  switch (type) {
    case ParameterType::kBool:
      return "True|False";
    case ParameterType::kChoice:
      return "CHOICE";
    case ParameterType::kInteger:
      return "N";
    case ParameterType::kSeconds:
      return "SECONDS";
    case ParameterType::kReal:
      return "NUMBER";
    case ParameterType::kEnvironment:
      return "K=V,K=V";
    case ParameterType::kBytes:
      return "BYTES";
    case ParameterType::kList:
      return "A,B,C";
    case ParameterType::kAny:
      return "[VALUE]";
  }
  return "VALUE";
}

std::string Written(const Parameter& parameter) {
  std::string written = "--" + std::string(parameter.name) + " ";
  if (parameter.choices.empty()) return written + std::string(ValueWord(parameter.type));
  for (const std::string_view choice : parameter.choices) {
    written += (choice == parameter.choices.front() ? "" : "|") + std::string(choice);
  }
  return written;
}

std::string Meaning(const Parameter& parameter) {
  std::string meaning(parameter.help);
  if (parameter.type == ParameterType::kAny) return meaning;
  const std::string default_text = DefaultText(parameter);
  meaning += " Default: " + (default_text.empty() ? "none" : default_text) + ".";
  return meaning;
}

constexpr ParameterGroup kGroups[] = {ParameterGroup::kRun,  ParameterGroup::kRestart, ParameterGroup::kJudging,
                                      ParameterGroup::kHang, ParameterGroup::kC4d,     ParameterGroup::kIgnored};

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : c == '<' ? std::string("&lt;") : std::string(1, c);
  return out;
}

std::string PageSection(const Command& command) {
  std::string page = "## aimaster " + std::string(command.name) + "\n\n" + std::string(command.summary) + ".\n\n```\n" +
                     Synopsis(command) + "\n```\n\n" + std::string(command.details) + "\n\n";
  if (!command.options.empty()) page += "| option | meaning |\n|---|---|\n";
  for (const Option& option : command.options) {
    page += "| `" + Escaped(Written(option)) + "` | " + Escaped(option.help) + " |\n";
  }
  if (!command.options.empty()) page += "\n";
  if (command.takes_parameters == TakesParameters::kYes) {
    page +=
        "And every parameter of [parameters.md](parameters.md): those of the group *Options of `aimaster run`*, the "
        "fault-tolerance parameters, and their older names.\n\n";
  } else if (command.takes_parameters == TakesParameters::kFaultTolerance) {
    page += "And every fault-tolerance parameter of [parameters.md](parameters.md), and their older names.\n\n";
  }
  if (!command.examples.empty()) page += "```\n" + std::string(command.examples) + "\n```\n\n";
  return page;
}

}  // namespace

std::string Synopsis(const Command& command) {
  std::string synopsis = "aimaster " + std::string(command.name);
  if (!command.options.empty()) synopsis += " [OPTIONS]";
  if (!command.operands.empty()) synopsis += " " + std::string(command.operands);
  return synopsis;
}

std::string OverviewHelp(const Terminal& terminal) {
  std::string help = Indented(kIntroduction, 0, TextWidth(terminal));
  help += "\n" + Heading(terminal, "Usage") + "    aimaster COMMAND [OPTIONS] …\n    aimaster help COMMAND\n";
  help += "    aimaster --version\n\n" + Heading(terminal, "Commands");
  for (const Command* command : Commands()) help += HelpEntry(terminal, command->name, command->summary, 18);
  help += "\n" + Heading(terminal, "A job to try") +
          "    aimaster run --workers 2 -- python3 -c 'import os; print(\"rank\", os.environ[\"RANK\"])'\n\n";
  help += Heading(terminal, "Environment");
  for (const Variable& variable : kVariables) help += HelpEntry(terminal, variable.name, variable.meaning, 20);
  help += "\n" + Heading(terminal, "Exit codes");
  for (const ExitCode& exit : kExitCodes) help += HelpEntry(terminal, exit.code, exit.meaning, 16);
  return help;
}

std::string CommandHelp(const Command& command, const Terminal& terminal) {
  const size_t width = TextWidth(terminal);
  std::string help =
      Heading(terminal, "aimaster " + std::string(command.name)) + Indented(command.summary, kIndent, width);
  help += "\n" + Heading(terminal, "Usage") + "    " + Synopsis(command) + "\n\n" + Heading(terminal, "Description") +
          Indented(command.details, kIndent, width);
  if (!command.options.empty()) help += "\n" + Heading(terminal, "Options");
  for (const Option& option : command.options) help += HelpEntry(terminal, Written(option), option.help, 28);
  for (const ParameterGroup group : kGroups) {
    std::string entries;
    for (const Parameter& parameter : ParameterTable()) {
      if (parameter.group != group || !Takes(command, parameter)) continue;
      entries += HelpEntry(terminal, Written(parameter), Meaning(parameter), 28);
    }
    if (!entries.empty()) help += "\n" + Heading(terminal, Title(group)) + entries;
  }
  if (!command.examples.empty()) {
    help += "\n" + Heading(terminal, "Examples");
    std::string_view rest = command.examples;
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      help += std::string(kIndent, ' ') + std::string(rest.substr(0, end)) + "\n";
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }
  return help;
}

std::string CommandLinePage() {
  std::string page = "# The command line\n\n<!-- Written by `aimaster help --markdown`; change src/cli. -->\n\n";
  page += std::string(kIntroduction) + "\n\n";
  page +=
      "Every command says more about itself with `aimaster help COMMAND` or `aimaster COMMAND --help`. A job is "
      "named by its id, by the first letters of its id (four at least), or by its name, as long as that names one job "
      "only. Errors "
      "are one line on standard error that says what is wrong, where, and what to do.\n\n";
  page += "| command | what it does |\n|---|---|\n";
  for (const Command* command : Commands()) {
    page += "| [`" + std::string(command->name) + "`](#aimaster-" + std::string(command->name) + ") | " +
            Escaped(command->summary) + " |\n";
  }
  page += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n";
  for (const ExitCode& exit : kExitCodes)
    page += "| " + std::string(exit.code) + " | " + Escaped(exit.meaning) + " |\n";
  page += "\n## Environment\n\n| variable | meaning |\n|---|---|\n";
  for (const Variable& variable : kVariables) {
    page += "| `" + std::string(variable.name) + "` | " + Escaped(variable.meaning) + " |\n";
  }
  page += "\n";
  for (const Command* command : Commands()) page += PageSection(*command);
  while (page.ends_with("\n\n")) page.pop_back();
  return page;
}

}  // namespace aimaster::cli
