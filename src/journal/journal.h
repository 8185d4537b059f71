// Journal: what a job's master knows, so that it survives the master. Inputs and what was decided on them, in order;
// and beside them, in the same transaction, readable views for everybody else.
//
//   input(seq, epoch, wall_ns, kind, rules, body)   the whole history: replaying it makes the engine again
//   decision(seq, input, body)  event(seq, body)    what was concluded, what people were told
//   job, instance, node, round, record              views of the present
//   failure, state(id, input, body)                 with them, all that the engine knew behind that input
//   snapshot(input, engine, body)                   the same in one piece, of a while ago: where a check begins
//   master(epoch, engine, program, rules, after)    the lives of masters, and whose engine decided
//   outbox(sink, position, …)                       how far people have been told (outbox.h)
//   meta(key, value)                                epoch, version of the program that wrote last
//
// A log file of our own was rejected: readers need the views while the writer writes, and SQLite has had twenty years
// of power cuts. Whether readers and the writer meet in shared memory depends on the file system (JournalStorage).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/ids.h"
#include "engine/engine.h"
#include "journal/outbox.h"
#include "journal/sqlite.h"

namespace aimaster {

// PRAGMA user_version; a newer one is refused. It goes up when an older program would misread what is written. Version
// 1 had no failure, state, snapshot and master; it is opened, and is of version 2 from then on.
inline constexpr int kJournalVersion = 2;

// A snapshot after so many inputs: a check at recovery takes the same time as some rounds of the job, and writing
// snapshots costs less than writing the inputs between them, however large the job.
constexpr int64_t SnapshotAfter(size_t instances) { return 1000 + 4 * static_cast<int64_t>(instances); }

// How a commit becomes durable.
enum class JournalStorage {
  kByFileSystem,  // whichever of the two below fits where the journal is
  kWriteAhead,    // WAL: readers never wait; needs memory that is shared through the file system
  kRollback,      // for network file systems: readers wait for the milliseconds of a commit
};

using JournalBatch = std::vector<std::pair<Input, StepResult>>;

// The one sentence about a journal that this program is too old for.
std::unexpected<Error> NewerVersion(const std::filesystem::path& path, int64_t version);

// The writer. One at a time: opening takes the job over, and whoever had it before can't append any more.
// One thread.
class Journal {
 public:
  // Creates the file where there is none; should the job have had one, loss() says so. Takes the job over: the epoch
  // goes up, durably.
  // `rules` names the failure rules in force, and is kept with every input. kVersion: a newer program wrote it; it is
  // left as it is.
  static Result<Journal> OpenOrCreate(const std::filesystem::path& path, std::string rules,
                                      JournalStorage storage = JournalStorage::kByFileSystem);
  ~Journal();
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;

  // Greater than that of every master before, also where the journal itself has forgotten some.
  Epoch epoch() const;
  const std::string& rules() const;
  // Why it holds less than was durable (durable_mark.h, attempts_on_disk.h), for people; empty: it doesn't. Nobody
  // should decide anything on it before a person has. From the first append on it counts as it is.
  const std::string& loss() const;
  // Everything that was appended, in order. For tests; a master recovers by RecoverJob (recovery.h).
  Result<std::vector<Input>> LoadInputs();
  // All or nothing, durable when it returns; after an error the same batch may be tried again.
  //   kFenced: another master has taken the job over, nothing was written.
  //   kDiskFull: space is missing. A batch by which a job ends, or is on the way to it, may use the space that the job
  //   has reserved; others wait.
  //   kEnvironment: anything else; the message says whether the file itself is gone or was tampered with.
  // `job` is the engine's after the batch.
  Status Append(const JournalBatch& batch, const JobState& job);
  // What became of messages to people, durable when it returns. The errors are those of Append, and no decision depends
  // on it.
  Status Mark(const OutboxMark& mark);
  // Whether the files are still those that were written. Append asks by itself; this is for quiet times.
  Status Check();
  // After an error: this object will never append again, one that is opened anew may.
  bool is_broken() const;

  // For RecoverJob.
  Database& database();

 private:
  class Writer;
  explicit Journal(std::unique_ptr<Writer> writer);
  std::unique_ptr<Writer> writer_;
};

}  // namespace aimaster
