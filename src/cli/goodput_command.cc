#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/job_lookup.h"
#include "cli/report.h"
#include "cli/table.h"
#include "core/clocks.h"
#include "journal/goodput.h"
#include "journal/job_json.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {Option{.name = "--json", .help = "as a JSON object"}};

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return text;
}

std::string Text(const Goodput& goodput, const Terminal& terminal) {
  std::string text = "goodput " + terminal.Paint(Colour::kBold, Percent(goodput.share())) + ": " +
                     FormatDuration(goodput.productive) + " of " + FormatDuration(goodput.wall) +
                     " went into work that counts\n";
  const std::vector<Column> columns = {{.title = "LOST TO", .may_be_cut = true},
                                       {.title = "TIMES", .align = Column::Align::kRight},
                                       {.title = "TIME"},
                                       {.title = "RESTARTING"},
                                       {.title = "DONE AGAIN"}};
  std::vector<std::vector<Cell>> rows;
  for (const LostTime& lost : goodput.lost) {
    if (lost.total() == Duration::zero()) continue;
    rows.push_back({lost.cause, std::to_string(lost.times), FormatDuration(lost.total()),
                    FormatDuration(lost.restarting), FormatDuration(lost.redone)});
  }
  if (!rows.empty()) text += FormatTable(columns, rows, terminal);
  if (!goodput.knows_checkpoints) {
    text += "no checkpoint was told (jm.report_checkpoint): work that had to be done again counts as if it had not\n";
  }
  return text;
}

int Run(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  const Result<JobSnapshot> snapshot = job->reader.ReadSnapshot();
  if (!snapshot) return Complain(snapshot.error());
  const Goodput goodput = MeasureGoodput(*snapshot, WallNow());
  if (arguments.Has("--json")) return PrintJson(GoodputJson(goodput));
  return Print(Text(goodput, LookAt(1)));
}

}  // namespace

const Command kGoodputCommand = {
    .name = "goodput",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "how much of the job's time went into work that counts, and what took the rest",
    .details =
        "Productive is the time in which all ranks ran, less what ran after the last checkpoint before a failure: that "
        "is done again by the next round. Checkpoints are what the training tells (jm.report_checkpoint). RESTARTING "
        "counts from a failure, or the submission, until all ranks were ready; an instance that was restarted alone "
        "counts with its share of the job.",
    .examples = "aimaster goodput nightly\naimaster goodput --json nightly | jq .goodput",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
