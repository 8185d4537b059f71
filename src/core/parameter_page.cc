#include "core/parameter_page.h"

#include <algorithm>

#include "core/c4d_environment.h"
#include "core/parameter_value.h"

namespace aimaster {
namespace {

constexpr std::string_view kHead = R"(# Parameters

Everything that can be set about a job: first the fault-tolerance parameters, whose names and meanings are those of the
DLC service, then the options of `aimaster run`. `aimaster params` prints the same list. This page is written by the
program from its own table.

## How to write them

- As flags of `aimaster run`: `aimaster run --enable-job-restart=True --workers 4 -- python train.py`.
- As one string, `--error-monitoring-args STRING`, which is what the service calls `ErrorMonitoringArgs`. It holds
  fault-tolerance parameters only. Flags and the string may be used together.

`--name=value` and `--name value` mean the same; the value may be negative, as in `--max-tolerated-failure-rate -1`. Case
does not matter in True and False and in choices: `sync`, `TRUE` and `onfailure` are fine. A whole number may have a sign,
but no decimal point and no unit. In the string, blanks, tabs and line breaks separate; a backslash at the end of a line is
a blank; single and double quotes keep a value with blanks together.

Every flag needs its value. `--enable-job-restart` alone is an error, not True: strings of the service always give the
value, and a string that works here should work there.

What is unknown, out of range or contradictory is one error that says what is allowed, and nothing is started. The same
parameter twice is fine as long as both say the same; an older name counts as its new one.

What is accepted and has no effect is said in a note of the job.
)";

std::string Code(std::string_view text) { return "`" + std::string(text) + "`"; }

std::string_view Unit(ParameterType type) {
  if (type == ParameterType::kSeconds) return "seconds";
  if (type == ParameterType::kBytes) return "bytes";
  return "";
}

std::vector<std::string> Strings(std::span<const std::string_view> views) { return {views.begin(), views.end()}; }

std::string Default(const Parameter& parameter) {
  const std::string text = DefaultText(parameter);
  return text.empty() ? "empty" : text;
}

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

// The text in lines that fit into an editor.
std::string Wrapped(std::string_view text) {
  constexpr size_t kWidth = 120;
  std::string lines;
  while (text.size() > kWidth) {
    const size_t blank = text.rfind(' ', kWidth);
    if (blank == std::string_view::npos) break;
    lines += std::string(text.substr(0, blank)) + "\n";
    text.remove_prefix(blank + 1);
  }
  return lines + std::string(text);
}

void AppendSection(const Parameter& parameter, std::string& page) {
  page += "\n### `--" + std::string(parameter.name) + "`\n\n" + Wrapped(parameter.details) + "\n\n";
  page += "- Values: " + AllowedText(parameter) + "\n";
  page += "- Default: " + Code(Default(parameter)) + "\n";
  page += "- Example: " + Code("--" + std::string(parameter.name) + "=" + std::string(parameter.example)) + "\n";
  for (const std::string_view alias : parameter.aliases) {
    page += "- Older name: " + Code("--" + std::string(alias)) + ", accepted with a note\n";
  }
  page += "- Since: " + std::string(parameter.since) + "\n";
}

void AppendC4dSettings(std::string& page) {
  page += "\n| setting | values | default | meaning |\n|---|---|---|---|\n";
  for (const C4dSetting& setting : C4dSettings()) {
    page += "| " + Code(setting.name) + " | " + std::string(setting.allowed) + " | " +
            std::string(setting.default_text) + " | " + std::string(setting.help) + " |\n";
  }
}

void AppendIgnored(std::string& page) {
  page += "\n## " + std::string(Title(ParameterGroup::kIgnored)) +
          "\n\nFlags of the service whose meaning is not published. They are accepted with or without a value, so that "
          "existing\nstrings work unchanged, and have no effect but a note.\n\n";
  for (const Parameter& parameter : ParameterTable()) {
    if (parameter.group == ParameterGroup::kIgnored) page += "- " + Code("--" + std::string(parameter.name)) + "\n";
  }
}

}  // namespace

std::vector<ParameterDescription> DescribeParameters() {
  std::vector<ParameterDescription> descriptions;
  for (const Parameter& parameter : ParameterTable()) {
    descriptions.push_back({
        .name = std::string(parameter.name),
        .aliases = Strings(parameter.aliases),
        .group = std::string(Name(parameter.group)),
        .type = std::string(Name(parameter.type)),
        .values = AllowedText(parameter),
        .choices = parameter.type == ParameterType::kBool ? std::vector<std::string>{"True", "False"}
                                                          : Strings(parameter.choices),
        .default_text = DefaultText(parameter),
        .unit = std::string(Unit(parameter.type)),
        .help = std::string(parameter.help),
        .details = std::string(parameter.details),
        .example = std::string(parameter.example),
        .since = std::string(parameter.since),
        .ignored = parameter.group == ParameterGroup::kIgnored,
    });
  }
  return descriptions;
}

std::string ParametersText() {
  size_t name_width = 0;
  size_t default_width = 0;
  for (const Parameter& parameter : ParameterTable()) {
    name_width = std::max(name_width, parameter.name.size() + 4);
    default_width = std::max(default_width, Default(parameter).size() + 2);
  }
  const std::string indent(name_width + default_width, ' ');
  std::string text = Padded("PARAMETER", name_width) + Padded("DEFAULT", default_width) + "MEANING\n";
  std::string_view title;
  for (const Parameter& parameter : ParameterTable()) {
    if (title != Title(parameter.group)) text += "\n" + std::string(title = Title(parameter.group)) + "\n";
    const std::string name = "--" + std::string(parameter.name);
    if (parameter.group == ParameterGroup::kIgnored) {
      text += name + "\n";
      continue;
    }
    text += Padded(name, name_width) + Padded(Default(parameter), default_width) + std::string(parameter.help) + "\n";
    text += indent + AllowedText(parameter) + "\n";
    for (const std::string_view alias : parameter.aliases)
      text += indent + "older name: --" + std::string(alias) + "\n";
  }
  std::erase(text, '`');
  return text;
}

std::string ParametersMarkdown() {
  std::string page(kHead);
  std::string_view title;
  for (const Parameter& parameter : ParameterTable()) {
    if (parameter.group == ParameterGroup::kIgnored) continue;
    if (title != Title(parameter.group)) page += "\n## " + std::string(title = Title(parameter.group)) + "\n";
    AppendSection(parameter, page);
    if (parameter.type == ParameterType::kEnvironment) AppendC4dSettings(page);
  }
  AppendIgnored(page);
  return page;
}

}  // namespace aimaster
