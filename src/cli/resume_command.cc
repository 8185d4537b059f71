#include <array>

#include "cli/command.h"
#include "cli/follower.h"
#include "cli/return_to_job.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {
    kTeeOption,
    Option{.name = "--detach", .short_name = "-d", .help = "return as soon as a supervisor is there"},
};

int Run(const Arguments& arguments) { return ReturnToJob(arguments, WhenUnattended::kStartMaster); }

}  // namespace

const Command kResumeCommand = {
    .name = "resume",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "look after a job again whose supervisor is gone, and follow it",
    .details =
        "After a reboot, say, or when somebody killed everything, or the supervisor alone. A new supervisor starts a "
        "new "
        "master, which reads the journal and finds out what still runs: processes that live are taken over as they "
        "are, those that were lost count as failed and are judged as usual. A master that was left without a "
        "supervisor "
        "is taken over from as well; the ranks do not notice. Then it follows the job as `aimaster run` does, with the "
        "same signals and exit codes. Where a supervisor is there already, it only follows; of a job that has ended, "
        "the result is told at once. But where notifications of it are still waiting, a master is started that sends "
        "them, and what became of them is told first.",
    .examples = "aimaster resume dlc1a2b3c4d5e6f7\naimaster resume --detach nightly",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
