#include <array>
#include <set>
#include <string>
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
    Option{.name = "--aggregate", .help = "what failed, where and how often, over all restarts"},
    Option{.name = "--json", .help = "as a JSON array, with the details of every failed instance"},
};

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

// A terminal is narrow, and who sits at it knows the job.
std::string InstanceText(const JobSpec& spec, const std::string& name, const Terminal& terminal) {
  return terminal.width > 0 ? ShortName(spec, name) : name;
}

std::string Table(const JobSpec& spec, const std::vector<RestartRecord>& records) {
  const Terminal terminal = LookAt(1);
  const std::vector<Column> columns = {{.title = "RESTARTS", .align = Column::Align::kRight},
                                       {.title = "SCOPE", .left_out = 2},
                                       {.title = "RESTART TIME"},
                                       {.title = "NODE NAME", .may_be_cut = true},
                                       {.title = "INSTANCE NAME", .may_be_cut = true},
                                       {.title = "ERROR CODE", .may_be_cut = true},
                                       {.title = "ERROR SOURCE", .left_out = 3},
                                       {.title = "RESULT"},
                                       {.title = "DURATION", .left_out = 1},
                                       {.title = "ERROR MESSAGE", .may_be_cut = true, .may_go_below = true}};
  std::vector<std::vector<Cell>> rows;
  for (const RestartRecord& record : records) {
    rows.push_back({std::to_string(record.restarts), record.scope == RestartScope::kJob ? "job" : "instance",
                    DateTime(record.restart_time.wall), record.node_name,
                    InstanceText(spec, record.instance_name, terminal), ErrorCode(record.judgement),
                    std::string(Name(record.judgement.source)),
                    Cell(std::string(Name(record.result)), ColourOf(record.result)),
                    record.duration ? FormatDuration(*record.duration) : "", record.judgement.message});
  }
  return FormatTable(columns, rows, terminal);
}

std::string Joined(const std::set<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : ", ") + word;
  return joined;
}

std::string AggregateTable(const JobSpec& spec, const std::vector<AggregatedFault>& faults) {
  const Terminal terminal = LookAt(1);
  const std::vector<Column> columns = {{.title = "FAULT", .may_be_cut = true},
                                       {.title = "NODE NAME", .may_be_cut = true},
                                       {.title = "INSTANCE NAME", .may_be_cut = true},
                                       {.title = "TIMES", .align = Column::Align::kRight},
                                       {.title = "ROOT", .align = Column::Align::kRight},
                                       {.title = "ISOLATED", .align = Column::Align::kRight, .left_out = 2},
                                       {.title = "CODE", .may_be_cut = true, .left_out = 1},
                                       {.title = "LAST TIME"},
                                       {.title = "LAST MESSAGE", .may_be_cut = true, .may_go_below = true}};
  std::vector<std::vector<Cell>> rows;
  for (const AggregatedFault& fault : faults) {
    rows.push_back({Cell(fault.fault, fault.roots > 0 ? Colour::kRed : Colour::kNone), fault.node_name,
                    InstanceText(spec, fault.instance_name, terminal), std::to_string(fault.count),
                    std::to_string(fault.roots), std::to_string(fault.isolations), Joined(fault.codes),
                    DateTime(fault.last_time), fault.message});
  }
  return FormatTable(columns, rows, terminal);
}

int Run(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  const Result<JobSnapshot> snapshot = job->reader.ReadSnapshot();
  if (!snapshot) return Complain(snapshot.error());
  const bool aggregate = arguments.Has("--aggregate");
  const std::vector<AggregatedFault> faults = aggregate ? AggregateFaults(*snapshot) : std::vector<AggregatedFault>();
  if (arguments.Has("--json")) return PrintJson(aggregate ? AggregateJson(faults) : RecordsJson(*snapshot));
  if (snapshot->records.empty()) return Print("job " + job->spec.id.text() + " has no restarts\n");
  return Print(aggregate ? AggregateTable(job->spec, faults) : Table(job->spec, snapshot->records));
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
        "is the time that the restart cost: from the failure until it was ready; empty before that.\n\n"
        "A hang has its row also where the job may not be restarted for it: RESULT is Failed then. Its message names "
        "the "
        "ranks that keep the others waiting, where the call stacks show them.\n\n"
        "--json adds details to each record, one entry per failed instance: node, instance, rank, code, message, "
        "source, whether it was the root cause or a consequence, and whether its node was isolated. Of a hang there "
        "are "
        "culprits, the ranks to blame, and stacks, the file of the call stacks within the job's directory; "
        "advised_job_hang_interval is set where a watchdog was faster than AIMaster.\n\n"
        "--aggregate groups the details of all records by fault, node and instance: how often (TIMES), how often as "
        "the "
        "root cause (ROOT), and how often its node was isolated for it. A node on which one fault comes back, whatever "
        "the instance, is a bad node; an instance that fails wherever it runs has a bug or bad data.",
    .examples =
        "aimaster records nightly\naimaster records --aggregate nightly\n"
        "aimaster records --json nightly | jq '.[].details'",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
