#include <array>
#include <vector>

#include "cli/command.h"
#include "cli/job_lookup.h"
#include "cli/job_texts.h"
#include "cli/report.h"
#include "cli/text.h"
#include "journal/job_json.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {Option{.name = "--json", .help = "as a JSON array of decisions with their reasons"}};
constexpr size_t kReasonIndent = 16;

// A text behind an indent; what does not fit on a line goes on below, under its start.
std::string Hanging(const std::string& text, size_t indent, std::string_view first, const Terminal& terminal) {
  const size_t width =
      terminal.width > 0 ? std::max<size_t>(static_cast<size_t>(terminal.width), indent + 30) : SIZE_MAX / 2;
  std::string out;
  for (const std::string& line : Wrap(OneLine(text), width - indent)) {
    out += (out.empty() ? std::string(first) : std::string(indent, ' ')) + line + "\n";
  }
  return out;
}

std::string DecisionText(const Decision& decision, const Terminal& terminal) {
  std::string text =
      terminal.Paint(Colour::kDim, ClockTime(decision.at.wall) + " round " + std::to_string(Value(decision.round))) +
      "  " + terminal.Paint(Colour::kBold, OneLine(decision.kind + ": " + decision.summary)) + "\n";
  for (const std::string& reason : decision.reasons) {
    text += Hanging(reason, kReasonIndent + 2, std::string(kReasonIndent, ' ') + "- ", terminal);
  }
  return text;
}

int Run(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  const Result<std::vector<Decision>> decisions = job->reader.ReadDecisions();
  if (!decisions) return Complain(decisions.error());
  if (arguments.Has("--json")) return PrintJson(ExplainJson(*decisions));
  const Result<JobSummary> summary = job->reader.ReadSummary();
  if (!summary) return Complain(summary.error());
  const Terminal terminal = LookAt(1);
  const std::string reason = summary->reason_message.empty() ? "" : ": " + summary->reason_message;
  std::string text = terminal.Paint(Colour::kBold, OneLine("job " + job->spec.id.text() + " (" + job->spec.name +
                                                           "): " + std::string(Name(summary->status)) + reason)) +
                     "\n\n";
  for (const Decision& decision : *decisions) text += DecisionText(decision, terminal);
  return Print(text);
}

}  // namespace

const Command kExplainCommand = {
    .name = "explain",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "what was decided about the job, and why",
    .details =
        "First how the job stands, then every decision in the order of time, each with the chain of reasons that led "
        "to it: "
        "which rank ended first, which line of its output tells why, which rule and which limit were applied.",
    .examples = "aimaster explain nightly\naimaster explain --json nightly | jq '.[-1].reasons'",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
