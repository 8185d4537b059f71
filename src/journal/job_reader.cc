#include "journal/job_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "journal/rows.h"

namespace aimaster {
namespace {

bool HasBytes(const std::filesystem::path& file) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(file, error);
  return !error && size > 0;
}

}  // namespace

Result<JobReader> JobReader::Open(const JobDirectory& directory) {
  const std::filesystem::path path = directory.journal();
  const auto none_yet = [&] {
    return Fail(ErrorKind::kNotFound, "job " + directory.path().filename().string() + " has no journal yet");
  };
  const auto lost = [&](const char* how) {
    return Fail(ErrorKind::kEnvironment, "job " + directory.path().filename().string() + " has run, but its journal " +
                                             path.string() + " " + how);
  };
  const bool has_run = HasRun(path);  // before the journal is looked at, which a new job's master may just be making
  if (access(path.c_str(), F_OK) != 0) {
    if (errno == ENOENT) return has_run ? lost("is gone") : none_yet();
    return Fail(ErrorKind::kEnvironment, "cannot read " + path.string() + ": " + std::strerror(errno) +
                                             "; a job is read by its owner, or from a copy that is yours");
  }
  Result<Database> database = Database::Open(path, Database::Mode::kRead);
  if (!database) return std::unexpected(database.error());
  constexpr const char* kVersion = "PRAGMA user_version";
  Result<int64_t> version = database->QueryInteger(kVersion);
  if (!version && access(directory.path().c_str(), W_OK) != 0) {
    // Readers, too, want to write beside the journal. One that is complete without its write-ahead log can be read as
    // it is; of one that is not, that would be the past.
    if (HasBytes(path.string() + "-wal") || HasBytes(path.string() + "-journal")) {
      return Fail(ErrorKind::kEnvironment, path.string() +
                                               " was left in the middle of a write, and its directory can't be written "
                                               "to complete it; copy the job's directory and read the copy");
    }
    database = Database::Open(path, Database::Mode::kFrozen);
    if (!database) return std::unexpected(database.error());
    version = database->QueryInteger(kVersion);
  }
  if (!version && HasBytes(path.string() + "-journal")) {
    // A master that was killed in rollback mode left its last write to be undone, which only a connection that may
    // write can do. Where a master lives, its locks keep us from it.
    if (Result<Database> repair = Database::Open(path, Database::Mode::kCreate))
      version = repair->QueryInteger(kVersion);
    database = Database::Open(path, Database::Mode::kRead);
    if (!database) return std::unexpected(database.error());
    if (version) version = database->QueryInteger(kVersion);
  }
  if (!version) return std::unexpected(version.error());
  if (*version > kJournalVersion) return NewerVersion(path, *version);
  if (*version == 0) return has_run ? lost("holds nothing") : none_yet();
  return JobReader(std::move(*database), path);
}

Result<JobSummary> JobReader::ReadSummary() {
  std::vector<JobSummary> rows;
  const Status read = ForEachRow(database_, "SELECT id, body FROM job", Collect(rows, DecodeJobSummary));
  if (!read) return std::unexpected(read.error());
  if (rows.empty()) return JobSummary{};  // made, and nothing appended yet: Creating
  return rows.front();
}

Result<JobSnapshot> JobReader::ReadSnapshot() {
  JobSnapshot snapshot;
  if (const Status begun = database_.Execute("BEGIN"); !begun) return std::unexpected(begun.error());
  Status read = [&]() -> Status {
    Result<JobSummary> summary = ReadSummary();
    if (!summary) return std::unexpected(summary.error());
    snapshot.summary = std::move(*summary);
    const auto take_node = [&](int64_t id, const std::string& body) -> Status {
      Result<NodeState> node = DecodeNode(body);
      if (!node) return std::unexpected(node.error());
      snapshot.nodes[NodeIndex{static_cast<uint32_t>(id)}] = std::move(*node);
      return {};
    };
    if (Status nodes = ForEachRow(database_, "SELECT id, body FROM node ORDER BY id", take_node); !nodes) return nodes;
    if (Status rows = ForEachRow(database_, "SELECT id, body FROM instance ORDER BY id",
                                 Collect(snapshot.instances, DecodeInstance));
        !rows) {
      return rows;
    }
    if (Status rows =
            ForEachRow(database_, "SELECT id, body FROM round ORDER BY id", Collect(snapshot.rounds, DecodeRound));
        !rows) {
      return rows;
    }
    return ForEachRow(database_, "SELECT id, body FROM record ORDER BY id", Collect(snapshot.records, DecodeRecord));
  }();
  [[maybe_unused]] const Status ended = database_.Execute("COMMIT");  // only reading
  if (!read) return std::unexpected(read.error());
  return snapshot;
}

Result<std::vector<Input>> JobReader::ReadCommunication(int64_t after) {
  std::vector<Input> inputs;
  const std::string query =
      "SELECT seq, body FROM input WHERE kind = 'CommunicationJudged' ORDER BY seq LIMIT -1 OFFSET " +
      std::to_string(after);
  const Status read = ForEachRow(database_, query.c_str(), Collect(inputs, DecodeInput));
  if (!read) return std::unexpected(read.error());
  return inputs;
}

Result<std::vector<Decision>> JobReader::ReadDecisions() {
  std::vector<Decision> decisions;
  const Status read =
      ForEachRow(database_, "SELECT seq, body FROM decision ORDER BY seq", Collect(decisions, DecodeDecision));
  if (!read) return std::unexpected(read.error());
  return decisions;
}

Result<std::vector<NumberedEvent>> JobReader::ReadEventsAfter(int64_t number, int64_t most) {
  std::vector<NumberedEvent> events;
  const auto take = [&events](int64_t seq, const std::string& body) -> Status {
    Result<JobEvent> event = DecodeEvent(body);
    if (!event) return std::unexpected(event.error());
    events.push_back({seq, std::move(*event)});
    return {};
  };
  Result<Statement> rows = database_.Prepare("SELECT seq, body FROM event WHERE seq > ? ORDER BY seq LIMIT ?");
  if (!rows) return std::unexpected(rows.error());
  rows->Bind(number).Bind(most);
  if (const Status read = ForEachRow(*rows, take); !read) return std::unexpected(read.error());
  return events;
}

Result<int64_t> JobReader::DataVersion() {
  if (const Status same = file_.CheckUnchanged(); !same) return std::unexpected(same.error());
  if (file_.LookAtLog() != JournalFile::Log::kAsItWas) {
    return Fail(ErrorKind::kEnvironment, file_.log_path().string() + " is another one now");
  }
  file_.Remember();
  return database_.QueryInteger("PRAGMA data_version");
}

namespace {

ListedJob ReadListedJob(const std::filesystem::path& where) {
  const JobId id = *JobId::Parse(where.filename().string());
  ListedJob job;
  job.spec.id = id;
  const auto broken = [&job](const Error& error) {
    job.problem = error.message;
    return job;
  };
  const Result<JobDirectory> directory = JobDirectory::Open(where);
  if (!directory) return broken(directory.error());
  Result<JobSpec> spec = directory->ReadSpec();
  if (!spec) return broken(spec.error());
  if (spec->id != id) return broken({.message = directory->spec().string() + " is another job's, or damaged"});
  job.spec = std::move(*spec);
  Result<JobReader> reader = JobReader::Open(*directory);
  if (!reader) return reader.error().kind == ErrorKind::kNotFound ? job : broken(reader.error());
  Result<JobSummary> summary = reader->ReadSummary();
  if (!summary) return broken(summary.error());
  job.summary = std::move(*summary);
  return job;
}

}  // namespace

std::vector<ListedJob> ListJobs(const Home& home) { return ListJobs(JobDirectoriesOf(home)); }

std::vector<ListedJob> ListJobs(std::span<const std::filesystem::path> directories) {
  std::vector<ListedJob> jobs;
  for (const std::filesystem::path& where : directories) jobs.push_back(ReadListedJob(where));
  std::ranges::sort(jobs, [](const ListedJob& a, const ListedJob& b) {
    return std::pair(a.spec.create_time, a.spec.id) > std::pair(b.spec.create_time, b.spec.id);
  });
  return jobs;
}

}  // namespace aimaster
