// From what somebody typed to the spec of a job: everything is checked here, before anything is created.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "cli/command.h"
#include "core/job_spec.h"

namespace aimaster::cli {

// What the spec depends on besides the words.
struct Surroundings {
  std::span<const char* const> environment;  // "NAME=value"
  std::filesystem::path working_directory;   // absolute
  Wall now;
  uint64_t random = 0;  // what the job's id is made of
};

// The job, or one sentence of kind kUsage. Pure: whether directories and the program exist is not looked at.
Result<JobSpec> BuildJob(const Arguments& arguments, const Surroundings& surroundings);

// What a job is called when nobody names it: the script that an interpreter is to run, else the program.
std::string DefaultJobName(std::span<const std::string> command);

}  // namespace aimaster::cli
