#include <array>
#include <vector>

#include "cli/command.h"
#include "cli/job_lookup.h"
#include "cli/job_texts.h"
#include "cli/report.h"
#include "cli/table.h"
#include "journal/job_json.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {
    Option{.name = "--json", .help = "as a JSON array, with the details of every failed rank"}};

Colour ColourOf(RestartResult result) {
  switch (result) {
    case RestartResult::kRestarting:
      return Colour::kBlue;
    case RestartResult::kRestarted:
      return Colour::kGreen;
    case RestartResult::kFailed:
      return Colour::kRed;
    case RestartResult::kStopped:
      return Colour::kYellow;
  }
  return Colour::kNone;
}

std::string ErrorCode(const Judgement& judgement) {
  return judgement.error_code ? std::to_string(*judgement.error_code) : judgement.fault;
}

std::string Table(const std::vector<RestartRecord>& records) {
  const std::vector<Column> columns = {{.title = "RESTARTS", .align = Column::Align::kRight},
                                       {.title = "SCOPE"},
                                       {.title = "RESTART TIME"},
                                       {.title = "NODE NAME", .may_be_cut = true},
                                       {.title = "INSTANCE NAME"},
                                       {.title = "ERROR CODE", .may_be_cut = true},
                                       {.title = "ERROR SOURCE"},
                                       {.title = "RESULT"},
                                       {.title = "DURATION"},
                                       {.title = "ERROR MESSAGE", .may_be_cut = true}};
  std::vector<std::vector<Cell>> rows;
  for (const RestartRecord& record : records) {
    rows.push_back({std::to_string(record.restarts), record.scope == RestartScope::kJob ? "job" : "instance",
                    DateTime(record.restart_time.wall), record.node_name, record.instance_name,
                    ErrorCode(record.judgement), std::string(Name(record.judgement.source)),
                    Cell(std::string(Name(record.result)), ColourOf(record.result)),
                    record.duration ? FormatDuration(*record.duration) : "", record.judgement.message});
  }
  return FormatTable(columns, rows, LookAt(1));
}

int Run(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  const Result<JobSnapshot> snapshot = job->reader.ReadSnapshot();
  if (!snapshot) return Complain(snapshot.error());
  if (arguments.Has("--json")) return PrintJson(RecordsJson(*snapshot));
  if (snapshot->records.empty()) return Print("job " + job->spec.id.text() + " has no restarts\n");
  return Print(Table(snapshot->records));
}

}  // namespace

const Command kRecordsCommand = {
    .name = "records",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "the job's restarts: when, where and why",
    .details =
        "One row per restart: its number, its scope, when it was decided, the node and the instance of the root cause, "
        "the error code (the exit status where a process's exit is the cause, else the name of the fault), the error "
        "message, and where the message comes from. SCOPE is job, or instance where an Async job restarted that "
        "instance alone; RESTARTS then counts those of this instance.\n\n"
        "RESULT is Restarting while the new round, or the instance, is being brought up, Restarted once all of its "
        "ranks are ready, Failed when it did not get so far, Stopped when somebody stopped the job meanwhile. DURATION "
        "is the time that the restart cost: from the failure until it was ready; empty before that.",
    .examples = "aimaster records nightly\naimaster records --json nightly | jq '.[].details'",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
