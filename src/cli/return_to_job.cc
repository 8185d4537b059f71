#include "cli/return_to_job.h"

#include <poll.h>
#include <signal.h>

#include <optional>
#include <vector>

#include "cli/follower.h"
#include "cli/interrupts.h"
#include "cli/job_care.h"
#include "cli/job_lookup.h"
#include "cli/notify_file.h"
#include "cli/report.h"
#include "cli/starter.h"

namespace aimaster::cli {
namespace {

constexpr int kLookAgainMs = 100;

std::string EndText(const JobDirectory& directory, const JobSummary& end) {
  const std::string id = directory.path().filename().string();
  const std::string reason = end.reason_message.empty() ? "" : ": " + end.reason_message;
  return "job " + id + " has ended, " + std::string(Name(end.status)) + reason +
         (end.status == JobStatus::kSucceeded ? "" : " (aimaster explain " + id + ")");
}

// A job that has ended may have words left that it could not get rid of. Its next master has nothing else to do.
void TellWhatWaits(const JobDirectory& directory, const JobSpec& spec, Interrupts& interrupts) {
  const auto look = [&]() -> std::vector<SinkState> {
    Result<JobReader> reader = JobReader::Open(directory);
    if (!reader) return {};
    return ReadSinkStates(directory, spec, *reader).value_or(std::vector<SinkState>());
  };
  if (Waiting(look()) == 0) return;
  Starter starter(interrupts);
  const Result<LookedAfter> looked_after = starter.EnsureSupervisor(directory.path());
  if (!looked_after) {
    Complain(looked_after.error());
    return;
  }
  // Its master leaves when all is sent, or when the time for that is over.
  const ProcessHandle supervisor(looked_after->supervisor);
  while (!supervisor.HasEnded() && !starter.interrupted_by()) {
    if (const std::optional<int> number = interrupts.Next(); number && *number != SIGWINCH) return;
    pollfd ended{.fd = supervisor.descriptor(), .events = POLLIN, .revents = 0};
    poll(&ended, 1, kLookAgainMs);
  }
  for (const SinkState& sink : look()) {
    Complain({ErrorKind::kEnvironment, "notifications of " + spec.id.text() + ": " + Describe(sink)});
  }
}

}  // namespace

int ReturnToJob(const Arguments& arguments, WhenUnattended unattended) {
  Interrupts interrupts;
  const Result<JobDirectory> directory = LookUpJob(arguments.operands.front());
  if (!directory) return Complain(directory.error());
  const Result<JobSpec> spec = directory->ReadSpec();
  if (!spec) return Complain(spec.error());
  const Result<std::optional<JobSummary>> end = ReadEnd(*directory);
  if (!end) {
    // What can't be read may still run; then there is something to come back to.
    Complain(WithWhatRuns(*directory, end.error()));
    if (end.error().kind == ErrorKind::kVersion || !FindLivingParts(*directory).any()) return kExitFailure;
  } else if (*end) {
    if (unattended == WhenUnattended::kStartMaster) TellWhatWaits(*directory, *spec, interrupts);
    Complain({ErrorKind::kNotFound, EndText(*directory, **end)});
    return ExitCodeOf(**end);
  }
  FollowOptions options{.from_the_start = false};
  if (arguments.Has("--tee")) options.tee = ParseTee(arguments.Text("--tee"));
  if (unattended == WhenUnattended::kStartMaster) {
    Starter starter(interrupts);
    const Result<LookedAfter> looked_after = starter.EnsureSupervisor(directory->path());
    if (starter.interrupted_by()) return 128 + *starter.interrupted_by();
    if (!looked_after) return Complain(looked_after.error());
    options.supervisor = looked_after->supervisor;
    if (arguments.Has("--detach")) {
      return Print("job " + spec->id.text() + (looked_after->started ? " is looked after again" : " is looked after") +
                   " (supervisor: process " + std::to_string(looked_after->supervisor.pid) + ")\n");
    }
  }
  return Follow(*directory, *spec, interrupts, std::move(options));
}

}  // namespace aimaster::cli
