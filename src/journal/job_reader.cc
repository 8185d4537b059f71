#include "journal/job_reader.h"

#include <unistd.h>

#include <algorithm>

namespace aimaster {
namespace {

// Calls take(id, body) for each row; stops at the first error.
template <typename Take>
Status ForEachRow(Database& database, const char* sql, Take take) {
  Result<Statement> rows = database.Prepare(sql);
  if (!rows) return std::unexpected(rows.error());
  while (true) {
    const Result<bool> row = rows->Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return {};
    if (const Status taken = take(rows->Integer(0), rows->Text(1)); !taken) return taken;
  }
}

// Appends decoded rows to a list.
template <typename T>
auto Collect(std::vector<T>& list, Result<T> (*decode)(std::string_view)) {
  return [&list, decode](int64_t, const std::string& body) -> Status {
    Result<T> decoded = decode(body);
    if (!decoded) return std::unexpected(decoded.error());
    list.push_back(std::move(*decoded));
    return {};
  };
}

}  // namespace

Result<JobReader> JobReader::Open(const JobDirectory& directory) {
  if (access(directory.journal().c_str(), F_OK) != 0) {
    return Fail(ErrorKind::kNotFound, "job " + directory.path().filename().string() + " has no journal yet");
  }
  Result<Database> database = Database::Open(directory.journal().string(), Database::Mode::kRead);
  if (!database) return std::unexpected(database.error());
  Result<int64_t> version = database->QueryInteger("PRAGMA user_version");
  if (!version) {
    // Without the right to write beside it, a journal that nobody writes any more can be read as it is.
    Result<Database> frozen =
        Database::Open("file:" + directory.journal().string() + "?immutable=1", Database::Mode::kRead);
    if (!frozen) return std::unexpected(version.error());
    database = std::move(frozen);
    version = database->QueryInteger("PRAGMA user_version");
    if (!version) return std::unexpected(version.error());
  }
  if (*version > kJournalVersion) {
    return Fail(ErrorKind::kVersion, directory.journal().string() +
                                         " was written by a newer version of aimaster (journal version " +
                                         std::to_string(*version) + "); use that version");
  }
  if (*version == 0) {
    return Fail(ErrorKind::kNotFound, "job " + directory.path().filename().string() + " has no journal yet");
  }
  return JobReader(std::move(*database));
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

Result<std::vector<Decision>> JobReader::ReadDecisions() {
  std::vector<Decision> decisions;
  const Status read =
      ForEachRow(database_, "SELECT seq, body FROM decision ORDER BY seq", Collect(decisions, DecodeDecision));
  if (!read) return std::unexpected(read.error());
  return decisions;
}

Result<std::vector<NumberedEvent>> JobReader::ReadEventsAfter(int64_t number) {
  Result<Statement> rows = database_.Prepare("SELECT seq, body FROM event WHERE seq > ? ORDER BY seq");
  if (!rows) return std::unexpected(rows.error());
  rows->Bind(number);
  std::vector<NumberedEvent> events;
  while (true) {
    const Result<bool> row = rows->Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return events;
    Result<JobEvent> event = DecodeEvent(rows->Text(1));
    if (!event) return std::unexpected(event.error());
    events.push_back({rows->Integer(0), std::move(*event)});
  }
}

Result<int64_t> JobReader::DataVersion() { return database_.QueryInteger("PRAGMA data_version"); }

std::vector<ListedJob> ListJobs(const Home& home) {
  std::vector<ListedJob> jobs;
  for (const std::filesystem::path& where : JobDirectoriesOf(home)) {
    ListedJob job;
    job.spec.id = *JobId::Parse(where.filename().string());
    const Result<JobDirectory> directory = JobDirectory::Open(where);
    if (!directory) {
      job.problem = directory.error().message;
      jobs.push_back(std::move(job));
      continue;
    }
    if (Result<JobSpec> spec = directory->ReadSpec()) {
      job.spec = std::move(*spec);
    } else {
      job.problem = spec.error().message;
    }
    if (Result<JobReader> reader = JobReader::Open(*directory)) {
      if (Result<JobSummary> summary = reader->ReadSummary()) {
        job.summary = std::move(*summary);
      } else {
        job.problem = summary.error().message;
      }
    } else if (reader.error().kind != ErrorKind::kNotFound) {
      job.problem = reader.error().message;
    }
    jobs.push_back(std::move(job));
  }
  std::ranges::sort(jobs, [](const ListedJob& a, const ListedJob& b) {
    return std::pair(a.spec.create_time, a.spec.id) > std::pair(b.spec.create_time, b.spec.id);
  });
  return jobs;
}

}  // namespace aimaster
