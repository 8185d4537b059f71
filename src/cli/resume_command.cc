#include <array>

#include "cli/command.h"
#include "cli/follower.h"
#include "cli/return_to_job.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {kTeeOption};

int Run(const Arguments& arguments) { return ReturnToJob(arguments, WhenUnattended::kStartMaster); }

}  // namespace

const Command kResumeCommand = {
    .name = "resume",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "start the master of a job again where even its supervisor is gone, and follow",
    .details =
        "After a reboot, say, or when somebody killed everything. The new master reads the journal and finds out what "
        "still "
        "runs: processes that live are taken over as they are, those that were lost count as failed and are judged as "
        "usual. "
        "Then it follows the job as `aimaster run` does, with the same signals and exit codes. Where a master is there "
        "already, it only follows; of a job that has ended, the result is told at once.",
    .examples = "aimaster resume dlc1a2b3c4d5e6f7",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
