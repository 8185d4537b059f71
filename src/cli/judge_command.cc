#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/job_texts.h"
#include "cli/log_input.h"
#include "cli/report.h"
#include "cli/rule_file.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "core/quote.h"
#include "detect/log_evidence.h"
#include "detect/log_judge.h"
#include "detect/pattern_matcher.h"

namespace aimaster::cli {
namespace {

using nlohmann::json;

constexpr std::array kOptions = {
    Option{.name = "--exit-code",
           .value = "N",
           .help = "how it ended: 137, or -9 for signal 9; of several ranks: how the job ended"},
    Option{.name = "--rules",
           .value = "FILE",
           .help = "rules of your own (YAML, docs/rules.md), which override and add to the built-in ones"},
    Option{.name = "--json", .help = "as a JSON object"},
};
constexpr size_t kFilesMax = 100'000;

Status ReadLog(const std::string& path, LogEvidence& evidence) {
  Result<LogInput> input = LogInput::Open(path);
  if (!input) return std::unexpected(input.error());
  evidence.Begin(path == kStandardInput ? "standard input" : path);
  while (true) {
    const Result<std::string_view> bytes = input->Read();
    if (!bytes) return std::unexpected(bytes.error());
    if (bytes->empty()) break;
    evidence.Feed(*bytes);
  }
  evidence.End();
  return {};
}

json JudgementJson(const LogJudgement& judgement) {
  json root = nullptr;
  if (judgement.all_ranks) root = "all";
  if (judgement.root_rank) root = *judgement.root_rank;
  return {{"label", Name(judgement.label)},
          {"class", Name(judgement.fault_class)},
          {"code", judgement.code},
          {"message", judgement.message},
          {"node_suspect", judgement.node_suspect},
          {"root_rank", root},
          {"line", judgement.line ? json(judgement.line->line) : json(nullptr)},
          {"rule", judgement.rule},
          {"reasons", judgement.reasons}};
}

Colour ColourOf(RetryLabel label) {
  switch (label) {
    case RetryLabel::kRetryable:
      return Colour::kGreen;
    case RetryLabel::kNotRetryable:
      return Colour::kRed;
    case RetryLabel::kAmbiguous:
      return Colour::kYellow;
  }
  return Colour::kNone;
}

std::string LabelText(RetryLabel label) {
  switch (label) {
    case RetryLabel::kRetryable:
      return "worth another try";
    case RetryLabel::kNotRetryable:
      return "not worth another try";
    case RetryLabel::kAmbiguous:
      return "may be worth another try";
  }
  return "";
}

std::string Where(const LogJudgement& judgement) {
  if (judgement.all_ranks) return ", on all ranks alike";
  return judgement.root_name.empty() ? "" : ", " + judgement.root_name + " began";
}

std::string Story(const LogJudgement& judgement, const Terminal& terminal) {
  std::string text = terminal.Paint(ColourOf(judgement.label), LabelText(judgement.label)) + ": " +
                     terminal.Paint(Colour::kBold, judgement.code) + OneLine(Where(judgement)) + "\n";
  text += Hanging(judgement.meaning + (judgement.advice.empty() ? "" : " " + judgement.advice), "  ", terminal);
  if (judgement.node_suspect) text += Hanging("This speaks against the node: keep jobs off it.", "  ", terminal);
  if (judgement.line) {
    text +=
        "\n" + terminal.Paint(Colour::kDim, OneLine(PositionIn(judgement.line->file, judgement.line->offset))) + "\n";
    text += Hanging(judgement.line->line, "  ", terminal);
  }
  text += "\n" + terminal.Paint(Colour::kDim, "Because:") + "\n";
  // The line and the rule are told above.
  text += Hanging(judgement.reasons.front(), "  - ", terminal);
  for (size_t i = judgement.about_cause; i < judgement.reasons.size(); ++i) {
    text += Hanging(judgement.reasons[i], "  - ", terminal);
  }
  return text;
}

int JudgeBy(const RulesInForce& rules, const std::optional<RankExit>& exit, const Arguments& arguments) {
  PatternMatcher matcher(rules);
  LogEvidence evidence(matcher);
  for (const std::string& file : arguments.operands) {
    if (const Status read = ReadLog(file, evidence); !read) return Complain(read.error());
  }
  if (!matcher.error().empty()) return Complain({ErrorKind::kEnvironment, matcher.error()});
  const LogJudgement judgement = JudgeLogs(evidence.Ranks(), exit, matcher.rules());
  return arguments.Has("--json") ? PrintJson(JudgementJson(judgement)) : Print(Story(judgement, LookAt(1)));
}

int Run(const Arguments& arguments) {
  std::optional<RankExit> exit;
  if (arguments.Has("--exit-code")) {
    exit = ParseExitCode(arguments.Text("--exit-code"));
    if (!exit) {
      return Complain({ErrorKind::kUsage, "--exit-code is " + Quoted(arguments.Text("--exit-code")) +
                                              "; allowed: an exit code from 0 to 255, or -1 to -64 for a signal"});
    }
  }
  if (std::ranges::count(arguments.operands, kStandardInput) > 1) {
    return Complain({ErrorKind::kUsage, "standard input (-) can be read once only"});
  }
  if (!arguments.Has("--rules")) return JudgeBy(RulesInForce::BuiltIn(), exit, arguments);
  const Result<LoadedRules> rules = LoadRuleFile(arguments.Text("--rules"));
  if (!rules) return Complain(rules.error());
  if (!rules->note.empty()) Complain({ErrorKind::kEnvironment, rules->note});
  return JudgeBy(rules->in_force, exit, arguments);
}

}  // namespace

const Command kJudgeCommand = {
    .name = "judge",
    .operands = "FILE…",
    .operands_min = 1,
    .operands_max = kFilesMax,
    .summary = "what logs say about why a job failed, without the job",
    .details =
        "Reads logs of any job, started by whatever, and says whether another try would be worth it, what went wrong, "
        "on which rank, by which line, and why. A FILE may be a pipe, or - for standard input.\n\n"
        "A file named rank3.err or rank3.out is rank 3's (so is .../3/stderr.log, as torchrun writes it). Several "
        "other files are a rank each, in their order. Where lines of one file say whose they are ([rank3]:, "
        "[1,3]<stderr>:, worker-0: and others), each is held to be that rank's; lines that say nothing are the "
        "launcher's or the machine's.\n\n"
        "--exit-code belongs to the rank where there is one alone. Of several it is how the job ended, and counts only "
        "where no rank says more.\n\n"
        "--json prints one object: label (retryable, not_retryable, ambiguous), class (user_code, user_config, "
        "user_resource, user_action, gpu_hw, gpu_or_driver, node_system, network, storage, external_service, "
        "scheduler_external, software_race, unknown), code (the rule of docs/rules.md that fits), message, "
        "node_suspect, root_rank (a number; \"all\" when all ranks failed alike; null when none can be named), line "
        "(the telling one, or null), rule (that this line, or the way in which a process ended, matches), reasons. "
        "The exit code is 0 whenever there is a judgement.",
    .examples =
        "aimaster judge train.log\naimaster judge --exit-code 137 logs/rank*.err\n"
        "aimaster judge --rules cluster.yaml train.log\n"
        "kubectl logs job/train | aimaster judge --json - | jq -r .label",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
