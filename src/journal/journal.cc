#include "journal/journal.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "journal/attempts_on_disk.h"
#include "journal/codec.h"
#include "journal/durable_mark.h"
#include "journal/files.h"
#include "journal/job_directory.h"
#include "journal/journal_file.h"
#include "journal/reserve.h"
#include "journal/rows.h"
#include "journal/sqlite.h"

namespace aimaster {
namespace {

constexpr const char* kSchema = R"sql(
  CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS input(
    seq INTEGER PRIMARY KEY, epoch INTEGER, wall_ns INTEGER, kind TEXT, rules TEXT, body TEXT);
  CREATE TABLE IF NOT EXISTS decision(seq INTEGER PRIMARY KEY, input INTEGER, body TEXT);
  CREATE TABLE IF NOT EXISTS event(seq INTEGER PRIMARY KEY, body TEXT);
  CREATE TABLE IF NOT EXISTS job(id INTEGER PRIMARY KEY CHECK (id = 0), body TEXT);
  CREATE TABLE IF NOT EXISTS instance(id INTEGER PRIMARY KEY, body TEXT);
  CREATE TABLE IF NOT EXISTS node(id INTEGER PRIMARY KEY, body TEXT);
  CREATE TABLE IF NOT EXISTS round(id INTEGER PRIMARY KEY, body TEXT);
  CREATE TABLE IF NOT EXISTS record(id INTEGER PRIMARY KEY, body TEXT);
  CREATE TABLE IF NOT EXISTS failure(id INTEGER PRIMARY KEY, body TEXT);
  CREATE TABLE IF NOT EXISTS state(id INTEGER PRIMARY KEY CHECK (id = 0), input INTEGER, body TEXT);
  CREATE TABLE IF NOT EXISTS snapshot(input INTEGER PRIMARY KEY, engine INTEGER, body TEXT);
  CREATE TABLE IF NOT EXISTS master(
    epoch INTEGER PRIMARY KEY, engine INTEGER, program TEXT, rules TEXT, after INTEGER);
  PRAGMA user_version = 2;
)sql";
static_assert(kJournalVersion == 2, "the schema sets it");

constexpr const char* kTakenOver = "another master has taken this job over";
constexpr uint64_t kEpochMax = uint64_t{1} << 62;  // what a damaged file says beyond that is nonsense

// The greatest epoch that is known outside of the journal.
Epoch EpochElsewhere(const std::filesystem::path& job_directory, const Durable& durable) {
  const Result<JobDirectory> directory = JobDirectory::Open(job_directory);
  const Result<MasterAddress> address = directory ? directory->ReadMasterAddress() : std::unexpected(directory.error());
  return address && Value(address->epoch) <= kEpochMax ? std::max(durable.epoch, address->epoch) : durable.epoch;
}

std::string DescribeLoss(const std::filesystem::path& path, int64_t held, const std::string& evidence) {
  return path.string() + " ends with input " + std::to_string(held) + ", though " + evidence +
         ": it or its -wal was removed or cut short, or an older copy was restored; training goes on, but nothing is "
         "decided any more: stop the job and submit it anew, or put both files back as they were and kill the master, "
         "which is started again";
}

// Whose end may use the space that was reserved for it.
bool IsOnTheWayToItsEnd(const JobState& job) {
  return job.phase == Phase::kEnded || (job.phase == Phase::kStopping && (job.stop_purpose == StopPurpose::kFail ||
                                                                          job.stop_purpose == StopPurpose::kUserStop));
}

// The job may have ended since, or meanwhile, in what can't be written.
bool IsAPersonsStop(const JournalBatch& batch, const JobState& job) {
  return (job.phase == Phase::kStopping && job.stop_purpose == StopPurpose::kUserStop) ||
         std::ranges::any_of(batch,
                             [](const auto& step) { return std::holds_alternative<StopRequested>(step.first.event); });
}

// Nodes as they were last written, so that a step writes those that it changed. There may be ten thousand.
class NodeViews {
 public:
  // The nodes of `job` that differ.
  std::vector<NodeIndex> ChangedIn(const JobState& job) const {
    std::vector<NodeIndex> changed;
    for (const auto& [index, node] : job.nodes) {
      const auto found = written_.find(index);
      if (found == written_.end() || found->second != node) changed.push_back(index);
    }
    return changed;
  }
  void Remember(const JobState& job, const std::vector<NodeIndex>& nodes) {
    for (const NodeIndex index : nodes) written_[index] = job.nodes.at(index);
  }

 private:
  std::map<NodeIndex, NodeState> written_;
};

}  // namespace

class Journal::Writer {
 public:
  static Result<std::unique_ptr<Writer>> Open(const std::filesystem::path& path, std::string rules,
                                              JournalStorage storage) {
    if (storage == JournalStorage::kByFileSystem) {
      storage = IsOnNetworkFileSystem(path.parent_path()) ? JournalStorage::kRollback : JournalStorage::kWriteAhead;
    }
    Result<std::unique_ptr<Writer>> opened = TryToOpen(path, rules, storage);
    Reserve reserve(path.parent_path() / "reserve");
    if (opened || opened.error().kind != ErrorKind::kDiskFull || !reserve.is_held()) return opened;
    reserve.GiveBack();
    opened = TryToOpen(path, rules, storage);
    if (opened) (*opened)->reserve_.TakeWhatThereIs(Reserve::BytesFor(0));
    return opened;
  }

  Writer(Database database, std::string rules, const std::filesystem::path& path)
      : database_(std::move(database)),
        rules_(std::move(rules)),
        path_(path),
        has_run_(HasRun(path)),
        file_(path),
        mark_(path.parent_path() / "durable_mark"),
        reserve_(path.parent_path() / "reserve") {}

  Epoch epoch() const { return epoch_; }
  const std::string& rules() const { return rules_; }
  const std::string& loss() const { return loss_; }
  bool is_broken() const { return is_broken_; }
  Database& database() { return database_; }

  Status Check() {
    if (mark_.Read().epoch > epoch_) return Fail(ErrorKind::kFenced, kTakenOver);
    if (const Status ours = file_.CheckUnchanged(); !ours) return ours;
    return CheckLog();
  }

  Status Append(const JournalBatch& batch, const JobState& job) {
    if (const Status ours = Check(); !ours) {
      // Who wants the job to end does not wait for the files.
      is_broken_ = is_broken_ || (ours.error().kind != ErrorKind::kFenced && IsAPersonsStop(batch, job));
      return ours;
    }
    Status appended = TryAppend(batch, job);
    if (!appended && appended.error().kind == ErrorKind::kDiskFull && reserve_.is_held() && IsOnTheWayToItsEnd(job)) {
      reserve_.GiveBack();
      appended = TryAppend(batch, job);
    }
    if (!appended) return Explained(appended.error());
    file_.RememberGrown();
    mark_.Write({epoch_, next_input_ - 1});
    if (job.phase == Phase::kEnded) reserve_.GiveBack();  // nothing is written any more
    if (!IsOnTheWayToItsEnd(job)) reserve_.TakeIfThereIsRoom(Reserve::BytesFor(job.instances.size()));
    return {};
  }

  Status Mark(const OutboxMark& mark) {
    if (const Status ours = Check(); !ours) return ours;
    if (const Status begun = database_.Execute("BEGIN IMMEDIATE"); !begun) return begun;
    Status written = CheckEpoch();
    if (written) written = WriteMark(database_, mark);
    if (written) written = database_.Execute("COMMIT");
    if (!written) {
      [[maybe_unused]] const Status rolled_back = database_.Execute("ROLLBACK");
      return Explained(written.error());
    }
    file_.RememberGrown();
    return {};
  }

 private:
  static Result<std::unique_ptr<Writer>> TryToOpen(const std::filesystem::path& path, const std::string& rules,
                                                   JournalStorage storage) {
    Result<Database> database = Database::Open(path, Database::Mode::kCreate);
    if (!database) return std::unexpected(database.error());
    auto writer = std::make_unique<Writer>(std::move(*database), rules, path);
    if (const Status ready = writer->Prepare(path, storage); !ready) return std::unexpected(ready.error());
    return writer;
  }

  // SQLite says only that there was an error. What keeps any other file from being written there is the better reason.
  std::unexpected<Error> Explained(Error error) const {
    if (error.kind == ErrorKind::kEnvironment) {
      const std::string why = WhyUnwritable(path_.parent_path());
      if (!why.empty()) error.message += "; nothing can be written beside it: " + why;
    }
    return std::unexpected(std::move(error));
  }

  Status TryAppend(const JournalBatch& batch, const JobState& job) {
    if (const Status begun = database_.Execute("BEGIN IMMEDIATE"); !begun) return begun;
    const std::vector<NodeIndex> nodes = node_views_.ChangedIn(job);
    Status written = WriteAll(batch, job, nodes);
    if (written) written = database_.Execute("COMMIT");
    if (!written) {
      [[maybe_unused]] const Status rolled_back = database_.Execute("ROLLBACK");  // the error that matters is the first
      return written;
    }
    next_input_ += static_cast<int64_t>(batch.size());
    if (IsTimeForSnapshot(next_input_ - 1, job)) last_snapshot_ = next_input_ - 1;  // it was written with the batch
    has_state_ = true;
    node_views_.Remember(job, nodes);
    return {};
  }

  Status Prepare(const std::filesystem::path& path, JournalStorage storage) {
    const Result<int64_t> version = database_.QueryInteger("PRAGMA user_version");
    if (!version) return std::unexpected(version.error());
    if (*version > kJournalVersion) return NewerVersion(path, *version);
    if (const Status chosen = ChooseStorage(path, storage); !chosen) return chosen;
    for (const char* sql : {"BEGIN IMMEDIATE", kSchema, kOutboxSchema}) {
      if (const Status done = database_.Execute(sql); !done) return done;
    }
    const Durable durable = mark_.Read();
    if (const Status taken = TakeOver(EpochElsewhere(path.parent_path(), durable)); !taken) return taken;
    const Result<int64_t> last = database_.QueryInteger("SELECT coalesce(max(seq), 0) FROM input");
    if (!last) return std::unexpected(last.error());
    next_input_ = *last + 1;
    const Result<std::string> evidence = EvidenceOfMore(*last, durable);
    if (!evidence) return std::unexpected(evidence.error());
    if (!evidence->empty()) loss_ = DescribeLoss(path, *last, *evidence);
    const Result<int64_t> states = database_.QueryInteger("SELECT count(*) FROM state");
    if (!states) return std::unexpected(states.error());
    has_state_ = *states == 1;
    if (const Status prepared = PrepareStatements(); !prepared) return prepared;
    if (const Status written = master_.Bind(static_cast<int64_t>(Value(epoch_)))
                                   .Bind(int64_t{kEngineVersion})
                                   .Bind(std::string_view("aimaster " AIMASTER_VERSION))
                                   .Bind(rules_)
                                   .Bind(*last)
                                   .Run();
        !written) {
      return written;
    }
    if (const Status taken_over = database_.Execute("COMMIT"); !taken_over) return taken_over;
    file_.Remember();
    mark_.Write({epoch_, std::max(*last, durable.input)});
    return {};
  }

  // Why there must have been more than the `last` inputs; empty: nothing says so.
  Result<std::string> EvidenceOfMore(int64_t last, const Durable& durable) {
    if (last < durable.input) return std::to_string(durable.input) + " were durable";
    if (durable != Durable{}) return std::string();
    if (last == 0 && has_run_) return std::string("a master of this job has run before");
    std::map<std::string, Attempt> known;
    const Status read =
        ForEachRow(database_, "SELECT id, body FROM instance", [&known](int64_t, const std::string& body) -> Status {
          const Result<InstanceState> instance = DecodeInstance(body);
          if (!instance) return std::unexpected(instance.error());
          known[instance->name] = instance->attempt;
          return {};
        });
    if (!read) return std::unexpected(read.error());
    const std::filesystem::path unknown = FindUnknownAttempt(path_.parent_path() / "nodes", known);
    return unknown.empty() ? std::string() : "an attempt was started that it does not know, " + unknown.string();
  }

  Status TakeOver(Epoch elsewhere) {
    const Result<int64_t> here = database_.QueryInteger("SELECT value FROM meta WHERE key = 'epoch'");
    if (!here) return std::unexpected(here.error());
    epoch_ = Epoch{std::max(static_cast<uint64_t>(std::max<int64_t>(*here, 0)), Value(elsewhere)) + 1};
    for (const auto& [key, value] : {std::pair("epoch", std::to_string(Value(epoch_))),
                                     std::pair("program", std::string("'aimaster " AIMASTER_VERSION "'"))}) {
      const std::string sql = std::string("INSERT OR REPLACE INTO meta VALUES('") + key + "', " + value + ")";
      if (const Status written = database_.Execute(sql.c_str()); !written) return written;
    }
    return {};
  }

  // What we have committed and is not in the journal's file yet is in its log.
  Status CheckLog() {
    if (is_broken_) return BrokenLog("was deleted or cut short");
    switch (file_.LookAtLog()) {
      case JournalFile::Log::kAsItWas:
        return {};
      case JournalFile::Log::kShorter: {
        // After somebody else's checkpoint a reader that remembers nothing finds everything all the same.
        Result<Database> reader = Database::Open(path_, Database::Mode::kRead);
        const Result<int64_t> last =
            reader ? reader->QueryInteger("SELECT coalesce(max(seq), 0) FROM input") : std::unexpected(reader.error());
        if (last && *last == next_input_ - 1) {
          file_.Remember();
          return {};
        }
        is_broken_ = true;
        database_.LeaveLogAlone();
        return BrokenLog("was cut short");
      }
      case JournalFile::Log::kGone: {
        // SQLite still has it open: what it holds can be saved once, and then another file is needed.
        const Result<int64_t> busy = database_.QueryInteger("PRAGMA wal_checkpoint(TRUNCATE)");
        is_broken_ = busy && *busy == 0;
        return BrokenLog(is_broken_ ? "was deleted; all that it held has been saved" : "was deleted");
      }
    }
    return {};
  }

  std::unexpected<Error> BrokenLog(const std::string& what) const {
    return Fail(ErrorKind::kEnvironment,
                file_.log_path().string() + " " + what + "; the journal has to be opened anew");
  }

  // At the first append of a life, so that what another engine decided is never checked twice; then now and then. None
  // of a job that is over: nobody will go on from there.
  bool IsTimeForSnapshot(int64_t last, const JobState& job) const {
    if (!last_snapshot_) return true;
    return job.phase != Phase::kEnded && last - *last_snapshot_ >= SnapshotAfter(job.instances.size());
  }

  // The file keeps its mode; one that was moved to another file system changes it here.
  Status ChooseStorage(const std::filesystem::path& path, JournalStorage storage) {
    const bool write_ahead = storage == JournalStorage::kWriteAhead;
    const Result<std::string> mode =
        database_.QueryText(write_ahead ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE");
    if (!mode) return std::unexpected(mode.error());
    if (*mode != (write_ahead ? "wal" : "delete")) {
      return Fail(ErrorKind::kEnvironment, path.string() + " stays in the mode '" + *mode + "', which is not ours");
    }
    // EXTRA: a commit in rollback mode is the removal of a file, which only a sync of the directory makes durable.
    return database_.Execute(write_ahead ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = EXTRA");
  }

  Status PrepareStatements() {
    for (const auto& [statement, sql] : std::initializer_list<std::pair<Statement*, const char*>>{
             {&epoch_query_, "SELECT value FROM meta WHERE key = 'epoch'"},
             {&input_, "INSERT INTO input VALUES(?, ?, ?, ?, ?, ?)"},
             {&decision_, "INSERT INTO decision(input, body) VALUES(?, ?)"},
             {&event_, "INSERT INTO event(body) VALUES(?)"},
             {&job_, "INSERT OR REPLACE INTO job VALUES(?, ?)"},
             {&instance_, "INSERT OR REPLACE INTO instance VALUES(?, ?)"},
             {&node_, "INSERT OR REPLACE INTO node VALUES(?, ?)"},
             {&round_, "INSERT OR REPLACE INTO round VALUES(?, ?)"},
             {&record_, "INSERT OR REPLACE INTO record VALUES(?, ?)"},
             {&failure_, "INSERT OR REPLACE INTO failure VALUES(?, ?)"},
             {&state_, "INSERT OR REPLACE INTO state VALUES(0, ?, ?)"},
             {&snapshot_, "INSERT OR REPLACE INTO snapshot VALUES(?, ?, ?)"},
             {&old_snapshots_, "DELETE FROM snapshot WHERE input < ?"},
             {&master_, "INSERT OR REPLACE INTO master VALUES(?, ?, ?, ?, ?)"}}) {
      Result<Statement> prepared = database_.Prepare(sql);
      if (!prepared) return std::unexpected(prepared.error());
      *statement = std::move(*prepared);
    }
    return {};
  }

  Status CheckEpoch() {
    const Result<bool> row = epoch_query_.Step();
    if (!row) return std::unexpected(row.error());
    const bool own = *row && epoch_query_.Integer(0) == static_cast<int64_t>(Value(epoch_));
    epoch_query_.Reset();
    if (!own) return Fail(ErrorKind::kFenced, kTakenOver);
    return {};
  }

  Status WriteAll(const JournalBatch& batch, const JobState& job, const std::vector<NodeIndex>& nodes) {
    if (const Status own = CheckEpoch(); !own) return own;
    std::set<InstanceIndex> instances;
    std::set<size_t> rounds, records, failures;
    int64_t seq = next_input_;
    for (const auto& [input, result] : batch) {
      if (const Status written = WriteStep(seq++, input, result); !written) return written;
      instances.insert(result.changed_instances.begin(), result.changed_instances.end());
      rounds.insert(result.changed_rounds.begin(), result.changed_rounds.end());
      records.insert(result.changed_records.begin(), result.changed_records.end());
      failures.insert(result.changed_failures.begin(), result.changed_failures.end());
    }
    if (!has_state_) {  // begun by version 1: from now on the rows tell everything
      for (uint32_t i = 0; i < job.instances.size(); ++i) instances.insert(InstanceIndex{i});
      for (size_t i = 0; i < job.rounds.size(); ++i) rounds.insert(i);
      for (size_t i = 0; i < job.records.size(); ++i) records.insert(i);
      for (size_t i = 0; i < job.failures.size(); ++i) failures.insert(i);
    }
    if (const Status written = Put(job_, 0, Encode(Summarize(job))); !written) return written;
    for (const InstanceIndex index : instances) {
      if (const Status written = Put(instance_, Value(index), Encode(job.instances[Value(index)])); !written)
        return written;
    }
    for (const NodeIndex index : nodes) {
      if (const Status written = Put(node_, Value(index), Encode(job.nodes.at(index))); !written) return written;
    }
    for (const size_t index : rounds) {
      if (const Status written = Put(round_, static_cast<int64_t>(index), Encode(job.rounds[index])); !written)
        return written;
    }
    for (const size_t index : records) {
      if (const Status written = Put(record_, static_cast<int64_t>(index), Encode(job.records[index])); !written)
        return written;
    }
    for (const size_t index : failures) {
      if (index >= job.failures.size()) continue;  // of a failure that was over before the batch was
      if (const Status written = Put(failure_, static_cast<int64_t>(index), Encode(job.failures[index])); !written)
        return written;
    }
    return WriteState(seq - 1, job);
  }

  Status WriteState(int64_t last, const JobState& job) {
    if (const Status written = state_.Bind(last).Bind(Encode(RestOf(job))).Run(); !written) return written;
    if (!IsTimeForSnapshot(last, job)) return {};
    if (const Status old = old_snapshots_.Bind(last).Run(); !old) return old;
    return snapshot_.Bind(last).Bind(int64_t{kEngineVersion}).Bind(Encode(StoreState(job))).Run();
  }

  Status WriteStep(int64_t seq, const Input& input, const StepResult& result) {
    if (const Status written = input_.Bind(seq)
                                   .Bind(static_cast<int64_t>(Value(epoch_)))
                                   .Bind(input.at.wall.since_epoch.count())
                                   .Bind(EventKind(input.event))
                                   .Bind(rules_)
                                   .Bind(EncodeInput(input))
                                   .Run();
        !written) {
      return written;
    }
    for (const Decision& decision : result.decisions) {
      if (const Status written = decision_.Bind(seq).Bind(Encode(decision)).Run(); !written) return written;
    }
    for (const JobEvent& event : result.events) {
      if (const Status written = event_.Bind(Encode(event)).Run(); !written) return written;
    }
    return {};
  }

  static Status Put(Statement& statement, int64_t id, const std::string& body) {
    return statement.Bind(id).Bind(body).Run();
  }

  Database database_;
  const std::string rules_;
  const std::filesystem::path path_;
  const bool has_run_;  // before this life
  Epoch epoch_{};
  JournalFile file_;
  DurableMark mark_;
  Reserve reserve_;
  int64_t next_input_ = 1;
  std::optional<int64_t> last_snapshot_;  // of this life: behind which input
  bool has_state_ = false;
  bool is_broken_ = false;
  std::string loss_;
  NodeViews node_views_;
  Statement epoch_query_, input_, decision_, event_, job_, instance_, node_, round_, record_, failure_, state_,
      snapshot_, old_snapshots_, master_;
};

std::unexpected<Error> NewerVersion(const std::filesystem::path& path, int64_t version) {
  return Fail(ErrorKind::kVersion, path.string() + " was written by a newer version of aimaster (journal version " +
                                       std::to_string(version) + ", this one knows up to " +
                                       std::to_string(kJournalVersion) + "); use that version");
}

Journal::Journal(std::unique_ptr<Writer> writer) : writer_(std::move(writer)) {}
Journal::~Journal() = default;
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;

Result<Journal> Journal::OpenOrCreate(const std::filesystem::path& path, std::string rules, JournalStorage storage) {
  Result<std::unique_ptr<Writer>> writer = Writer::Open(path, std::move(rules), storage);
  if (!writer) return std::unexpected(writer.error());
  return Journal(std::move(*writer));
}

Epoch Journal::epoch() const { return writer_->epoch(); }
const std::string& Journal::rules() const { return writer_->rules(); }
const std::string& Journal::loss() const { return writer_->loss(); }
bool Journal::is_broken() const { return writer_->is_broken(); }
Database& Journal::database() { return writer_->database(); }

Result<std::vector<Input>> Journal::LoadInputs() {
  const Result<int64_t> last = LastInput(database());
  if (!last) return std::unexpected(last.error());
  std::vector<Input> inputs;
  const Status read = ReadInputs(database(), 0, *last, [&inputs](RecordedInput&& recorded) -> Status {
    inputs.push_back(std::move(recorded.input));
    return {};
  });
  if (!read) return std::unexpected(read.error());
  return inputs;
}

Status Journal::Mark(const OutboxMark& mark) { return writer_->Mark(mark); }
Status Journal::Check() { return writer_->Check(); }
Status Journal::Append(const JournalBatch& batch, const JobState& job) { return writer_->Append(batch, job); }

}  // namespace aimaster
