#include <poll.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "cli/directory_watch.h"
#include "cli/job_lookup.h"
#include "cli/job_texts.h"
#include "cli/report.h"
#include "cli/text.h"
#include "journal/job_json.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {
    Option{.name = "--follow", .short_name = "-f", .help = "go on until the job has ended"},
    Option{.name = "--json", .help = "one JSON object per line"},
};
constexpr int kLookAgainMs = 200;

std::string Line(const NumberedEvent& event, bool json, const Terminal& terminal) {
  if (json) return EventJson(event).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const std::string subject = event.event.subject.empty() ? "" : "  " + OneLine(event.event.subject);
  return terminal.Paint(Colour::kDim, DateTime(event.event.at.wall)) + "  " + OneLine(event.event.type) + subject +
         "  " + terminal.Paint(ColourOfEvent(event.event.type), OneLine(event.event.message)) + "\n";
}

int Run(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  const Terminal terminal = LookAt(1);
  DirectoryWatch watch(job->directory.path());
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
      text += Line(event, arguments.Has("--json"), terminal);
      last = event.number;
    }
    if (const int code = Print(text); code != kExitSuccess) return code;
    if (!arguments.Has("--follow") || IsEnd(summary->status)) return kExitSuccess;
    pollfd changed{.fd = watch.descriptor(), .events = POLLIN, .revents = 0};
    poll(&changed, 1, kLookAgainMs);
  }
}

}  // namespace

const Command kEventsCommand = {
    .name = "events",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "what happened to the job, in the order of time",
    .details = "One line per event: when, its type, what it is about, and what happened.",
    .examples = "aimaster events nightly\naimaster events -f --json nightly | jq -r .message",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
