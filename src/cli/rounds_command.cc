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

constexpr std::array kOptions = {Option{.name = "--json", .help = "as a JSON array"}};

Colour ColourOf(RoundResult result) {
  switch (result) {
    case RoundResult::kRunning:
      return Colour::kBlue;
    case RoundResult::kSucceeded:
      return Colour::kGreen;
    case RoundResult::kFailed:
      return Colour::kRed;
    case RoundResult::kStopped:
      return Colour::kYellow;
  }
  return Colour::kNone;
}

std::string RoundText(const RoundState& round, const Terminal& terminal) {
  const std::string lasted = round.end ? ", lasted " + FormatDuration(*round.end - round.start.wall) : "";
  std::string text = terminal.Paint(Colour::kBold, "round " + std::to_string(Value(round.round))) + "  " +
                     DateTime(round.start.wall) + "  " + terminal.Paint(ColourOf(round.result), Name(round.result)) +
                     lasted + "\n";
  if (!round.reason.empty()) text += "    " + OneLine(round.reason) + "\n";
  for (const StageTime& stage : round.stages) {
    const std::string name(Name(stage.stage));
    text += "    " + name + std::string(9 - std::min<size_t>(name.size(), 8), ' ') + ClockTime(stage.start.wall) +
            "  " + (stage.duration ? FormatDuration(*stage.duration) : "…") + "\n";
  }
  return text;
}

int Run(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  const Result<JobSnapshot> snapshot = job->reader.ReadSnapshot();
  if (!snapshot) return Complain(snapshot.error());
  if (arguments.Has("--json")) return PrintJson(RoundsJson(*snapshot));
  if (snapshot->rounds.empty()) return Print("job " + job->spec.id.text() + " has not begun its first round\n");
  const Terminal terminal = LookAt(1);
  std::string text;
  for (const RoundState& round : snapshot->rounds) text += RoundText(round, terminal);
  if (const std::string lost = TimeLost(snapshot->rounds); !lost.empty())
    text += "time lost to restarts: " + lost + "\n";
  return Print(text);
}

}  // namespace

const Command kRoundsCommand = {
    .name = "rounds",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "the job's lives between restarts, and how long each stage took",
    .details =
        "A round is one life of the whole job. Its stages are those that brought it up: acquire, start and ready for "
        "the "
        "first one; from detect (of the failure that ended the round before) to ready for a later one.",
    .examples = "aimaster rounds nightly",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
