#include <array>

#include "cli/command.h"
#include "cli/follower.h"
#include "cli/job_lookup.h"
#include "cli/report.h"
#include "cli/return_to_job.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {kTeeOption};

int Run(const Arguments& arguments) { return ReturnToJob(arguments, WhenUnattended::kSaySo); }

}  // namespace

const Command kAttachCommand = {
    .name = "attach",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "follow a running job as run does",
    .details =
        "Shows what happens from now on, after the last lines of rank 0's output, and ends with the job, with the exit "
        "code "
        "that `aimaster run` would have. Signals mean the same as there: Ctrl-C stops the job. To look without that, "
        "use "
        "`aimaster events -f JOB` and `aimaster logs -f JOB`; closing the terminal leaves the job running too. Any "
        "number of "
        "people may be attached. Of a job that has ended, the result is told at once.",
    .examples = "aimaster attach dlc1a2b3c4d5e6f7\naimaster attach nightly --tee all",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
