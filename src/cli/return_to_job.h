// What `attach` and `resume` share: back to a job that is there already.
#pragma once

#include "cli/command.h"

namespace aimaster::cli {

enum class WhenUnattended { kSaySo, kStartMaster };

// The job is the first operand. The exit code of the command.
int ReturnToJob(const Arguments& arguments, WhenUnattended unattended);

}  // namespace aimaster::cli
