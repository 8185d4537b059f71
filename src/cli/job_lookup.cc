#include "cli/job_lookup.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <ranges>
#include <thread>
#include <utility>
#include <vector>

#include "cli/job_care.h"
#include "cli/job_texts.h"
#include "cli/report.h"
#include "core/quote.h"
#include "journal/journal_file.h"

namespace aimaster::cli {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::milliseconds kJournalMax = 3s;
constexpr size_t kCandidatesMax = 5;

std::string DescribeCandidates(const std::vector<ListedJob>& jobs) {
  std::string text;
  for (const ListedJob& job : jobs | std::views::take(kCandidatesMax)) {
    text += (text.empty() ? "" : ", ") + job.spec.id.text() + " " +
            (job.problem.empty() ? std::string(Name(job.summary.status)) : "unreadable") + " of " +
            DateTime(job.spec.create_time);
  }
  return text + (jobs.size() > kCandidatesMax ? ", …" : "");
}

// Of several with the name: the one that has not ended; where all have, the newest. Null where it can't be told.
const ListedJob* MeantByName(const std::vector<ListedJob>& jobs, const std::string& name) {
  const ListedJob* live = nullptr;
  const ListedJob* newest = nullptr;
  bool all_have_ended = true;
  for (const ListedJob& job : jobs) {
    const bool is_known = job.spec.name == name && job.problem.empty();
    if (!is_known || !IsEnd(job.summary.status)) {
      if (is_known && live != nullptr) return nullptr;
      if (is_known) live = &job;
      all_have_ended = false;
    } else if (newest == nullptr || job.spec.create_time > newest->spec.create_time) {
      newest = &job;
    }
  }
  return all_have_ended ? newest : live;
}

Result<JobDirectory> ChooseJob(const Home& home, const std::string& text) {
  std::vector<std::filesystem::path> directories;
  for (const JobDirectory& directory : FindJobs(home, text)) directories.push_back(directory.path());
  const std::vector<ListedJob> jobs = ListJobs(directories);
  const ListedJob* meant = MeantByName(jobs, text);
  if (meant == nullptr) {
    return Fail(ErrorKind::kNotFound, Quoted(text) + " names " + std::to_string(jobs.size()) + " jobs (" +
                                          DescribeCandidates(jobs) + "); give the id");
  }
  if (IsEnd(meant->summary.status)) {
    Complain({ErrorKind::kNotFound, Quoted(text) + " names " + std::to_string(jobs.size()) +
                                        " jobs that have ended; this is about the newest, " + meant->spec.id.text()});
  }
  return JobDirectory::Open(home.jobs() / meant->spec.id.text());
}

}  // namespace

Result<JobDirectory> LookUpJob(const std::string& text) {
  const Result<Home> home = Home::Find();
  if (!home) return std::unexpected(home.error());
  Result<JobDirectory> found = FindJob(*home, text);
  if (!found && found.error().kind == ErrorKind::kUsage) return ChooseJob(*home, text);
  if (!found) return Fail(ErrorKind::kNotFound, found.error().message);
  return found;
}

Error WithWhatRuns(const JobDirectory& directory, const Error& error) {
  if (error.kind != ErrorKind::kEnvironment || !HasRun(directory.journal())) return error;
  const LivingParts parts = FindLivingParts(directory);
  const std::string what =
      parts.any() ? "; still running: " + Describe(parts) + "; `aimaster stop " + directory.path().filename().string() +
                        "` ends all of it, the journal put back as it was lets the job go on"
                  : "; nothing of the job runs any more: put the journal back to see what became of it, or submit the "
                    "job anew";
  return {error.kind, error.message + what};
}

Result<std::optional<JobSummary>> ReadEnd(const JobDirectory& directory) {
  Result<JobReader> reader = JobReader::Open(directory);
  if (!reader && reader.error().kind == ErrorKind::kNotFound) return std::nullopt;
  if (!reader) return std::unexpected(reader.error());
  Result<JobSummary> summary = reader->ReadSummary();
  if (!summary) return std::unexpected(summary.error());
  if (!IsEnd(summary->status)) return std::nullopt;
  return *summary;
}

Result<OpenedJob> OpenJob(const std::string& text) {
  Result<JobDirectory> directory = LookUpJob(text);
  if (!directory) return std::unexpected(directory.error());
  Result<JobSpec> spec = directory->ReadSpec();
  if (!spec) return std::unexpected(spec.error());
  Result<JobReader> reader = JobReader::Open(*directory);
  // A job that has just been submitted gets its journal in a moment.
  for (auto waited = 0ms; !reader && reader.error().kind == ErrorKind::kNotFound && waited < kJournalMax;
       waited += 20ms) {
    std::this_thread::sleep_for(20ms);
    reader = JobReader::Open(*directory);
  }
  if (!reader) return std::unexpected(WithWhatRuns(*directory, reader.error()));
  return OpenedJob{*std::move(directory), *std::move(spec), *std::move(reader)};
}

}  // namespace aimaster::cli
