#include <array>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/report.h"
#include "core/parameter_page.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {
    Option{.name = "--json", .help = "as a JSON array"},
    Option{.name = "--markdown", .help = "as the page docs/parameters.md"},
};

nlohmann::json ToJson(const ParameterDescription& parameter) {
  return {{"name", parameter.name},
          {"aliases", parameter.aliases},
          {"group", parameter.group},
          {"type", parameter.type},
          {"values", parameter.values},
          {"choices", parameter.choices},
          {"default", parameter.default_text},
          {"unit", parameter.unit},
          {"help", parameter.help},
          {"details", parameter.details},
          {"example", parameter.example},
          {"since", parameter.since},
          {"ignored", parameter.ignored}};
}

int Run(const Arguments& arguments) {
  if (arguments.Has("--markdown")) return Print(ParametersMarkdown());
  if (!arguments.Has("--json")) return Print(ParametersText());
  nlohmann::json parameters = nlohmann::json::array();
  for (const ParameterDescription& parameter : DescribeParameters()) parameters.push_back(ToJson(parameter));
  return PrintJson(parameters);
}

}  // namespace

const Command kParamsCommand = {
    .name = "params",
    .summary = "every parameter of a job, its default and its meaning",
    .details =
        "Lists what can be set about a job: the fault-tolerance parameters, with the names that the DLC service has "
        "for "
        "them, and the options of `aimaster run` that are values of the job. All of them are flags of `aimaster run`; "
        "the "
        "fault-tolerance parameters can also be given as one string with --error-monitoring-args.",
    .examples = "aimaster params\naimaster params --json | jq -r '.[] | [.name, .default] | @tsv'",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
