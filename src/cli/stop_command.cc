#include <array>
#include <chrono>
#include <cstdint>

#include "cli/command.h"
#include "cli/follower.h"
#include "cli/interrupts.h"
#include "cli/job_care.h"
#include "cli/job_lookup.h"
#include "cli/report.h"
#include "cli/starter.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {
    Option{.name = "--now", .help = "kill the job's processes at once, without SIGTERM and --stop-grace"},
    Option{.name = "--timeout", .value = "SECONDS", .help = "how long to wait for the end; default: until it has come"},
};
constexpr uint64_t kTimeoutMax = 1'000'000'000;

int Run(const Arguments& arguments) {
  const Result<std::optional<uint64_t>> timeout = arguments.Number("--timeout", 0, kTimeoutMax);
  if (!timeout) return Complain(timeout.error());
  Interrupts interrupts;
  const Result<JobDirectory> directory = LookUpJob(arguments.operands.front());
  if (!directory) return Complain(directory.error());
  const Result<JobSpec> spec = directory->ReadSpec();
  if (!spec) return Complain(spec.error());
  const std::string id = spec->id.text();
  const Result<std::optional<JobSummary>> end = ReadEnd(*directory);
  if (!end) {
    // A journal that can't be read keeps nobody from stopping what runs.
    Complain(WithWhatRuns(*directory, end.error()));
    if (end.error().kind == ErrorKind::kVersion) return kExitFailure;
    if (!FindLivingParts(*directory).any()) return kExitFailure;
  } else if (*end) {
    return Print("job " + id + " has ended already: " + std::string(Name((*end)->status)) + "\n");
  }
  FollowOptions options{.tee = Tee::kNone, .from_the_start = false, .interrupt_stops_job = false};
  options.stop = FollowOptions::Stop{.at_once = arguments.Has("--now"), .by = "aimaster stop"};
  if (*timeout) options.give_up_after = std::chrono::seconds(**timeout);
  // Its processes may well be running, and only a master can tell them from others and record how they ended; and
  // should the master die over it, somebody has to start it again.
  const bool had_master = directory->FindLiveMaster().has_value();
  Starter starter(interrupts, options.give_up_after);
  const Result<LookedAfter> looked_after = starter.EnsureSupervisor(directory->path());
  if (starter.interrupted_by()) return 128 + *starter.interrupted_by();
  if (!looked_after) return Complain(looked_after.error());
  options.supervisor = looked_after->supervisor;
  if (looked_after->started) {
    Complain({ErrorKind::kEnvironment, had_master
                                           ? "job " + id + " had no supervisor any more; it has one again"
                                           : "no master ran for job " + id + "; it was started again to stop the job"});
  }
  return Follow(*directory, *spec, interrupts, std::move(options));
}

}  // namespace

const Command kStopCommand = {
    .name = "stop",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "stop a job and wait until nothing of it runs any more",
    .details =
        "The job's processes get SIGTERM, have its --stop-grace to write a checkpoint, say, and are killed after that, "
        "with "
        "all their descendants. The job ends as Stopped. Ctrl-C ends the waiting, not the stopping. Where the job's "
        "master "
        "and its supervisor are gone, the master is started again (as `aimaster resume` does) so that it can stop the "
        "job. "
        "The exit code is 0 once the job is stopped, also when it had ended before; 1 when --timeout ran out.",
    .examples = "aimaster stop nightly\naimaster stop --now dlc1a2b3c4d5e6f7",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
