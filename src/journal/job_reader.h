// JobReader: a job as its journal tells it: while the master runs, while it is being restarted, and after the end. No
// server is asked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/job_state.h"
#include "journal/codec.h"
#include "journal/explanation.h"
#include "journal/job_directory.h"
#include "journal/journal.h"
#include "journal/journal_file.h"
#include "journal/outbox.h"
#include "journal/replay.h"
#include "journal/sqlite.h"

namespace aimaster {

struct NumberedEvent {
  int64_t number = 0;  // ascending within a job
  JobEvent event;
};

// All views of one moment.
struct JobSnapshot {
  JobSummary summary;
  std::vector<InstanceState> instances;  // by InstanceIndex
  std::map<NodeIndex, NodeState> nodes;
  std::vector<RoundState> rounds;
  std::vector<RestartRecord> records;
};

// One thread. Never blocks a writer in write-ahead mode; in rollback mode a writer waits for one query. May be open for
// long: between calls it holds nothing.
class JobReader {
 public:
  // kNotFound while the master has not made the journal yet.
  static Result<JobReader> Open(const JobDirectory& directory);

  Result<JobSummary> ReadSummary();
  Result<JobSnapshot> ReadSnapshot();
  // What C4D has found: inputs of the kind CommunicationJudged, in order.
  // What C4D found, after so many findings.
  Result<std::vector<Input>> ReadCommunication(int64_t after = 0);
  Result<std::vector<Decision>> ReadDecisions();
  // The same with what they rest on; see explanation.h.
  Result<std::vector<Explanation>> ReadExplanations() { return aimaster::ReadExplanations(database_); }
  Result<std::vector<NumberedEvent>> ReadEventsAfter(int64_t number, int64_t most = INT64_MAX);
  // How far people have been told; see outbox.h.
  Result<std::vector<SinkProgress>> ReadOutbox() { return aimaster::ReadOutbox(database_); }
  // The job's history once more; see replay.h.
  Result<aimaster::Replay> Replay(const ReplayOptions& options) { return ReplayJob(database_, options); }
  // Differs from the last answer whenever something was appended since. An error where the files are not those any more
  // that were opened: this reader would never see what comes, one that is opened anew may.
  Result<int64_t> DataVersion();

 private:
  JobReader(Database database, const std::filesystem::path& path) : database_(std::move(database)), file_(path) {
    file_.Remember();
  }
  Database database_;
  JournalFile file_;
};

// One line of `aimaster list`.
struct ListedJob {
  JobSpec spec;
  JobSummary summary;
  std::string problem;  // why it can't be read; the rest holds what could
};

// Of these directories, or of all of a home. Newest first. A damaged job is listed with its problem; it hides no other.
std::vector<ListedJob> ListJobs(std::span<const std::filesystem::path> directories);
std::vector<ListedJob> ListJobs(const Home& home);

}  // namespace aimaster
