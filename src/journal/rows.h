// Rows: reading the journal's tables, for its writer when it recovers and for everybody who only looks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/job_spec.h"
#include "engine/input.h"
#include "journal/codec.h"
#include "journal/sqlite.h"

namespace aimaster {

// Calls take(id, body) for each row; stops at the first error.
template <typename Take>
Status ForEachRow(Statement& rows, Take take) {
  while (true) {
    const Result<bool> row = rows.Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return {};
    if (const Status taken = take(rows.Integer(0), rows.Text(1)); !taken) {
      return Fail(taken.error().kind,
                  "a row of the journal can't be read: " + taken.error().message + " (" + rows.sql() + ")");
    }
  }
}

template <typename Take>
Status ForEachRow(Database& database, const char* sql, Take take) {
  Result<Statement> rows = database.Prepare(sql);
  if (!rows) return std::unexpected(rows.error());
  return ForEachRow(*rows, take);
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

// One input with what was concluded from it.
struct RecordedInput {
  int64_t number = 0;  // from 1
  Epoch epoch{};
  std::string rules;  // names the failure rules that were in force
  Input input;
  std::vector<Decision> decisions;
};

// Calls take for each input of `after` < number ≤ `last`, in order. A thousand are in memory at a time, and nothing is
// locked while take runs: a job's history may be long, and its master is writing.
Status ReadInputs(Database& database, int64_t after, int64_t last, const std::function<Status(RecordedInput&&)>& take);
Result<int64_t> LastInput(Database& database);

// What was submitted; kNotFound while the journal has no input.
Result<JobSpec> ReadSubmittedSpec(Database& database);

// The state behind the last input, as the engine that took it in knew it. None in a journal of version 1.
struct RecordedState {
  int64_t input = 0;  // the last one that it has seen
  StoredState state;
};
Result<std::optional<RecordedState>> ReadState(Database& database);
// The last snapshot.
Result<std::optional<RecordedState>> ReadLastSnapshot(Database& database);

// One life of the job's master.
struct MasterLife {
  Epoch epoch{};
  uint32_t engine = 0;  // kEngineVersion of its program; 1 where that was not recorded
  std::string program;  // "aimaster 0.1.0"
  std::string rules;
  int64_t after = 0;  // the last input of its predecessor
};
Result<std::vector<MasterLife>> ReadMasterLives(Database& database);

}  // namespace aimaster
