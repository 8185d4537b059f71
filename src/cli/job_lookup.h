// The first step of every command about one job: which job, what was submitted, what does its journal say.
#pragma once

#include <optional>
#include <string>

#include "core/job_spec.h"
#include "journal/job_directory.h"
#include "journal/job_reader.h"

namespace aimaster::cli {

// The directory of the job that somebody named by id, by the beginning of the id, or by name; of several with one name
// the one that has not ended is meant, or, where all have, the newest, which is then said on stderr. A job that can't
// be told is no wrong usage: the errors have other kinds than kUsage.
Result<JobDirectory> LookUpJob(const std::string& text);

// The error of a journal that can't be read, with what still runs of the job, and what to do.
Error WithWhatRuns(const JobDirectory& directory, const Error& error);

// How the job ended; none: it has not, as one whose master never came so far as to make a journal.
Result<std::optional<JobSummary>> ReadEnd(const JobDirectory& directory);

struct OpenedJob {
  JobDirectory directory;
  JobSpec spec;
  JobReader reader;
};
Result<OpenedJob> OpenJob(const std::string& text);

}  // namespace aimaster::cli
