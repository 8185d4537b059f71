#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "cli/directory_watch.h"
#include "cli/job_lookup.h"
#include "cli/job_texts.h"
#include "cli/notify_file.h"
#include "cli/report.h"
#include "cli/text.h"
#include "cli/trouble_watch.h"
#include "core/count.h"
#include "notify/cloud_event.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {
    Option{.name = "--follow", .short_name = "-f", .help = "go on until the job has ended"},
    Option{.name = "--json", .help = "one JSON object per line"},
};
constexpr int kLookAgainMs = 200;

std::string Line(const JobSpec& spec, const NumberedEvent& event, bool json, const Terminal& terminal) {
  if (json) return notify::OneLineOf(notify::CloudEvent(spec, event)) + "\n";
  const std::string subject = event.event.subject.empty() ? "" : "  " + OneLine(event.event.subject);
  return terminal.Paint(Colour::kDim, DateTime(event.event.at.wall)) + "  " + OneLine(event.event.type) + subject +
         "  " + terminal.Paint(ColourOfEvent(event.event.type), OneLine(event.event.message)) + "\n";
}

// To people alone, and of a job that is over: what of this the sinks have not been told.
int SayWhatWaits(OpenedJob& job) {
  const Result<std::vector<SinkState>> sinks = ReadSinkStates(job.directory, job.spec, job.reader);
  if (!sinks || job.directory.FindLiveMaster()) return kExitSuccess;
  for (const SinkState& sink : *sinks) {
    if (sink.waiting == 0) continue;
    Complain({ErrorKind::kEnvironment, Count(static_cast<uint64_t>(sink.waiting), "event") + " not delivered to sink " +
                                           InQuotes(sink.name) +
                                           (sink.trouble.empty() ? "" : " (" + OneLine(sink.trouble) + ")") +
                                           "; `aimaster resume " + job.spec.id.text() + "` tries again"});
  }
  return kExitSuccess;
}

int Run(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  const Terminal terminal = LookAt(1);
  DirectoryWatch watch(job->directory.path());
  TroubleWatch trouble(job->directory.path());
  int64_t last = 0;
  while (true) {
    watch.Clear();
    // The status first: what happened before the end is then among the events that are read after it.
    const Result<JobSummary> summary = job->reader.ReadSummary();
    if (!summary) return Complain(summary.error());
    const Result<std::vector<NumberedEvent>> events = job->reader.ReadEventsAfter(last);
    if (!events) return Complain(events.error());
    std::string text;
    for (const NumberedEvent& event : *events) {
      text += Line(job->spec, event, arguments.Has("--json"), terminal);
      last = event.number;
    }
    if (const int code = Print(text); code != kExitSuccess) return code;
    if (IsEnd(summary->status)) return SayWhatWaits(*job);
    if (!arguments.Has("--follow")) return kExitSuccess;
    if (const auto changed = trouble.Look(std::chrono::steady_clock::now())) {
      Complain({ErrorKind::kEnvironment, *changed});
    }
    watch.Await(kLookAgainMs);
  }
}

}  // namespace

const Command kEventsCommand = {
    .name = "events",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "what happened to the job, in the order of time",
    .details =
        "One line per event: when, its type, what it is about, and what happened. With --follow it also says, on "
        "standard error, when nobody leads the job, and why nothing is decided.\n\n"
        "--json prints CloudEvents 1.0, an object per line, as webhooks get them (docs/notifications.md); number, "
        "title, severity and message are in its data.",
    .examples = "aimaster events nightly\naimaster events -f --json nightly | jq -r .data.message",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
