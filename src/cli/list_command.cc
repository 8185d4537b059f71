#include <array>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/job_care.h"
#include "cli/job_texts.h"
#include "cli/report.h"
#include "cli/table.h"
#include "core/quote.h"
#include "engine/layout.h"
#include "journal/job_json.h"
#include "journal/job_reader.h"

namespace aimaster::cli {
namespace {

constexpr std::chrono::milliseconds kAnswerMax{200};

constexpr std::array kOptions = {
    Option{.name = "--json", .help = "as a JSON array"},
    Option{.name = "--ids", .help = "the ids alone, one a line"},
    Option{.name = "--names", .help = "the names alone, each once, one a line; with --ids behind them"},
    Option{.name = "--instances", .help = "the instances of jobs that have not ended, one a line"},
    Option{.name = "--status", .value = "STATUS", .help = "only jobs in this status: Running, Failed, …"},
    Option{.name = "--limit", .short_name = "-n", .value = "N", .help = "at most so many jobs"},
};

std::string DurationText(const ListedJob& job, Wall now) {
  if (!IsEnd(job.summary.status)) return WholeSeconds(now - job.spec.create_time);
  return job.summary.end_time ? FormatDuration(*job.summary.end_time - job.spec.create_time) : "-";
}

// Why nothing is decided about a job that has not ended; empty: somebody leads it.
std::string TroubleOf(const Home& home, const ListedJob& job) {
  if (!job.problem.empty() || IsEnd(job.summary.status)) return "";
  const Result<JobDirectory> directory = JobDirectory::Open(home.jobs() / job.spec.id.text());
  if (!directory || directory->FindLiveMaster()) return "";
  return LookAtCare(*directory, kAnswerMax).trouble;
}

std::vector<Cell> Row(const Home& home, const ListedJob& job, Wall now) {
  if (!job.problem.empty()) {
    return {job.spec.id.text(),
            job.spec.name,
            Cell("unreadable", Colour::kRed),
            "-",
            DateTime(job.spec.create_time),
            "-",
            Cell(job.problem, Colour::kRed)};
  }
  const std::string trouble = TroubleOf(home, job);
  const Cell reason = !trouble.empty()                              ? Cell(trouble, Colour::kRed)
                      : job.summary.status == JobStatus::kSucceeded ? Cell("")
                                                                    : Cell(job.summary.reason_message);
  return {job.spec.id.text(),
          job.spec.name,
          Cell(std::string(Name(job.summary.status)), ColourOf(job.summary.status)),
          std::to_string(job.summary.restarts),
          DateTime(job.spec.create_time),
          DurationText(job, now),
          reason};
}

std::string Table(const Home& home, const std::vector<ListedJob>& jobs) {
  const std::vector<Column> columns = {{.title = "JOB"},
                                       {.title = "NAME", .may_be_cut = true},
                                       {.title = "STATUS"},
                                       {.title = "RESTARTS", .align = Column::Align::kRight, .left_out = 2},
                                       {.title = "CREATED", .left_out = 3},
                                       {.title = "DURATION"},
                                       {.title = "REASON", .may_be_cut = true, .left_out = 1}};
  const Wall now{std::chrono::system_clock::now().time_since_epoch()};
  std::vector<std::vector<Cell>> rows;
  for (const ListedJob& job : jobs) rows.push_back(Row(home, job, now));
  return FormatTable(columns, rows, LookAt(1));
}

std::string InstancesOf(const std::vector<ListedJob>& jobs) {
  std::string names;
  for (const ListedJob& job : jobs) {
    if (!job.problem.empty() || IsEnd(job.summary.status)) continue;
    for (const InstanceState& instance : LayOutInstances(job.spec)) names += instance.name + "\n";
  }
  return names;
}

int Run(const Arguments& arguments) {
  const Result<std::optional<uint64_t>> limit = arguments.Number("--limit", 0, UINT32_MAX);
  if (!limit) return Complain(limit.error());
  std::optional<JobStatus> status;
  if (arguments.Has("--status")) {
    status = ParseJobStatus(arguments.Text("--status"));
    if (!status) {
      return Complain(
          {ErrorKind::kUsage, "--status is " + Quoted(arguments.Text("--status")) +
                                  "; allowed: Creating, Queuing, EnvPreparing, Running, Restarting, Stopping, "
                                  "Succeeded, Failed, Stopped"});
    }
  }
  const Result<Home> home = Home::Find();
  if (!home) return Complain(home.error());
  std::vector<ListedJob> jobs = ListJobs(*home);
  std::erase_if(
      jobs, [&](const ListedJob& job) { return status && (!job.problem.empty() || job.summary.status != *status); });
  if (*limit && jobs.size() > **limit) jobs.resize(**limit);

  if (arguments.Has("--json")) {
    nlohmann::json list = ListJson(jobs);
    for (size_t i = 0; i < jobs.size(); ++i) list[i]["trouble"] = TroubleOf(*home, jobs[i]);
    return PrintJson(list);
  }
  if (arguments.Has("--ids") || arguments.Has("--names")) {
    std::string lines;
    std::set<std::string> names;
    for (const ListedJob& job : jobs) {
      if (arguments.Has("--ids")) lines += job.spec.id.text() + "\n";
      names.insert(job.spec.name);
    }
    if (arguments.Has("--names")) {
      for (const std::string& name : names) lines += name + "\n";
    }
    return Print(lines);
  }
  if (arguments.Has("--instances")) return Print(InstancesOf(jobs));
  if (jobs.empty()) {
    const bool selects = arguments.Has("--status") || arguments.Has("--limit");
    return Print((selects ? "no such jobs in " : "no jobs in ") + home->path().string() + "\n");
  }
  return Print(Table(*home, jobs));
}

}  // namespace

const Command kListCommand = {
    .name = "list",
    .summary = "all jobs of this home, newest first",
    .details =
        "Reads the jobs' journals; nothing has to run for that. A job whose journal can't be read is listed with the "
        "reason, and one that has not ended and that nobody leads with what to do. The home is AIMASTER_HOME.",
    .examples = "aimaster list\naimaster list --status Failed --limit 10\naimaster list --json | jq -r '.[0].job_id'",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
