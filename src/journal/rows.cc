#include "journal/rows.h"

#include <deque>
#include <utility>

#include "journal/plausible.h"

namespace aimaster {
namespace {

constexpr int64_t kInputsAtATime = 1000;

std::unexpected<Error> CannotRead(int64_t number, const Error& error) {
  return Fail(error.kind, "input " + std::to_string(number) + " of the journal can't be read: " + error.message);
}

// Decisions in step with the inputs that they belong to: both are numbered in the order in which they were made.
class DecisionCursor {
 public:
  explicit DecisionCursor(Database& database) : database_(database) {}

  Status Begin(int64_t after_input) {
    Result<Statement> first = database_.Prepare("SELECT coalesce(min(seq), 0) FROM decision WHERE input > ?");
    if (!first) return std::unexpected(first.error());
    const Result<bool> row = first->Bind(after_input).Step();
    if (!row) return std::unexpected(row.error());
    next_ = *row ? first->Integer(0) : 0;
    is_over_ = next_ == 0;
    return {};
  }

  Status TakeFor(int64_t input, std::vector<Decision>& decisions) {
    while (true) {
      if (waiting_.empty() && !is_over_) {
        if (const Status filled = Fill(); !filled) return filled;
      }
      if (waiting_.empty() || waiting_.front().first > input) return {};
      // What belongs to an earlier input, which can't be, would stay for ever.
      if (waiting_.front().first == input) decisions.push_back(std::move(waiting_.front().second));
      waiting_.pop_front();
    }
  }

 private:
  Status Fill() {
    Result<Statement> rows =
        database_.Prepare("SELECT seq, body, input FROM decision WHERE seq >= ? ORDER BY seq LIMIT 1000");
    if (!rows) return std::unexpected(rows.error());
    rows->Bind(next_);
    is_over_ = true;
    return ForEachRow(*rows, [&](int64_t number, const std::string& body) -> Status {
      if (number < next_) {  // a damaged index would lead round and round
        return Fail(
            ErrorKind::kEnvironment,
            "the journal is damaged: its decisions are out of order; restore it from a copy, or submit the job anew");
      }
      Result<Decision> decision = DecodeDecision(body);
      if (!decision) return std::unexpected(decision.error());
      waiting_.emplace_back(rows->Integer(2), std::move(*decision));
      next_ = number + 1;
      is_over_ = false;
      return {};
    });
  }

  Database& database_;
  int64_t next_ = 0;
  bool is_over_ = true;
  std::deque<std::pair<int64_t, Decision>> waiting_;
};

// Up to a thousand inputs behind `after`, whole, so that nothing is open while they are looked at.
Result<std::vector<RecordedInput>> ReadSome(Database& database, int64_t after, int64_t last) {
  Result<Statement> rows =
      database.Prepare("SELECT seq, body, epoch, rules FROM input WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?");
  if (!rows) return std::unexpected(rows.error());
  rows->Bind(after).Bind(last).Bind(kInputsAtATime);
  std::vector<RecordedInput> some;
  while (true) {
    const Result<bool> row = rows->Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return some;
    RecordedInput recorded;
    recorded.number = rows->Integer(0);
    if (recorded.number != after + 1) {
      return Fail(ErrorKind::kEnvironment, "the journal is damaged: input " + std::to_string(after + 1) +
                                               " is missing; restore it from a copy, or submit the job anew");
    }
    Result<Input> input = DecodeInput(rows->Text(1));
    if (!input) return CannotRead(recorded.number, input.error());
    if (const Status plausible = CheckPlausible(*input); !plausible) {
      return CannotRead(recorded.number, plausible.error());
    }
    recorded.input = std::move(*input);
    recorded.epoch = Epoch{static_cast<uint64_t>(rows->Integer(2))};
    recorded.rules = rows->Text(3);
    after = recorded.number;
    some.push_back(std::move(recorded));
  }
}

Result<bool> HasTable(Database& database, const char* name) {
  Result<Statement> found = database.Prepare("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?");
  if (!found) return std::unexpected(found.error());
  const Result<bool> row = found->Bind(std::string_view(name)).Step();
  if (!row) return std::unexpected(row.error());
  return *row && found->Integer(0) == 1;
}

// Rows 0 … count − 1; a gap shows as a missing row.
template <typename T>
Status ReadFirst(Database& database, const char* sql, uint32_t count, std::vector<T>& list,
                 Result<T> (*decode)(std::string_view)) {
  Result<Statement> rows = database.Prepare(sql);
  if (!rows) return std::unexpected(rows.error());
  rows->Bind(int64_t{count});
  return ForEachRow(*rows, Collect(list, decode));
}

Status ReadRowsOf(Database& database, StoredState& state) {
  const StateRest& rest = state.rest;
  if (Status read = ReadFirst(database, "SELECT id, body FROM instance WHERE id < ? ORDER BY id", rest.instances,
                              state.instances, DecodeInstance);
      !read) {
    return read;
  }
  const auto take_node = [&state](int64_t id, const std::string& body) -> Status {
    Result<NodeState> node = DecodeNode(body);
    if (!node) return std::unexpected(node.error());
    state.nodes[NodeIndex{static_cast<uint32_t>(id)}] = std::move(*node);
    return {};
  };
  if (Status read = ForEachRow(database, "SELECT id, body FROM node ORDER BY id", take_node); !read) return read;
  if (Status read = ReadFirst(database, "SELECT id, body FROM round WHERE id < ? ORDER BY id", rest.rounds,
                              state.rounds, DecodeRound);
      !read) {
    return read;
  }
  if (Status read = ReadFirst(database, "SELECT id, body FROM record WHERE id < ? ORDER BY id", rest.records,
                              state.records, DecodeRecord);
      !read) {
    return read;
  }
  return ReadFirst(database, "SELECT id, body FROM failure WHERE id < ? ORDER BY id", rest.failures, state.failures,
                   DecodeFailure);
}

}  // namespace

Status ReadInputs(Database& database, int64_t after, int64_t last, const std::function<Status(RecordedInput&&)>& take) {
  DecisionCursor decisions(database);
  if (const Status begun = decisions.Begin(after); !begun) return begun;
  while (after < last) {
    Result<std::vector<RecordedInput>> some = ReadSome(database, after, last);
    if (!some) return std::unexpected(some.error());
    if (some->empty()) {
      return Fail(ErrorKind::kEnvironment, "the journal is damaged: input " + std::to_string(after + 1) +
                                               " is missing; restore it from a copy, or submit the job anew");
    }
    for (RecordedInput& recorded : *some) {
      after = recorded.number;
      if (const Status read = decisions.TakeFor(recorded.number, recorded.decisions); !read) return read;
      if (const Status taken = take(std::move(recorded)); !taken) return taken;
    }
  }
  return {};
}

Result<int64_t> LastInput(Database& database) {
  return database.QueryInteger("SELECT coalesce(max(seq), 0) FROM input");
}

Result<JobSpec> ReadSubmittedSpec(Database& database) {
  std::optional<JobSpec> spec;
  const Status read = ReadInputs(database, 0, 1, [&spec](RecordedInput&& first) -> Status {
    auto* submitted = std::get_if<JobSubmitted>(&first.input.event);
    if (submitted == nullptr) return Fail(ErrorKind::kEnvironment, "the journal does not begin with a submission");
    spec = std::move(submitted->spec);
    return {};
  });
  if (!read) return std::unexpected(read.error());
  return std::move(*spec);
}

Result<std::optional<RecordedState>> ReadState(Database& database) {
  const Result<bool> has_state = HasTable(database, "state");
  if (!has_state) return std::unexpected(has_state.error());
  if (!*has_state) return std::nullopt;
  std::optional<RecordedState> recorded;
  const auto take = [&recorded](int64_t input, const std::string& body) -> Status {
    Result<StateRest> rest = DecodeStateRest(body);
    if (!rest) return std::unexpected(rest.error());
    recorded.emplace().input = input;
    recorded->state.rest = std::move(*rest);
    return {};
  };
  if (const Status read = ForEachRow(database, "SELECT input, body FROM state WHERE id = 0", take); !read) {
    return std::unexpected(read.error());
  }
  if (!recorded) return std::nullopt;
  if (const Status read = ReadRowsOf(database, recorded->state); !read) return std::unexpected(read.error());
  return recorded;
}

Result<std::optional<RecordedState>> ReadLastSnapshot(Database& database) {
  const Result<bool> has_snapshots = HasTable(database, "snapshot");
  if (!has_snapshots) return std::unexpected(has_snapshots.error());
  if (!*has_snapshots) return std::nullopt;
  std::optional<RecordedState> snapshot;
  const auto take = [&snapshot](int64_t input, const std::string& body) -> Status {
    Result<StoredState> state = DecodeStoredState(body);
    if (!state) return std::unexpected(state.error());
    snapshot = RecordedState{input, std::move(*state)};
    return {};
  };
  if (const Status read = ForEachRow(database, "SELECT input, body FROM snapshot ORDER BY input DESC LIMIT 1", take);
      !read) {
    return std::unexpected(read.error());
  }
  return snapshot;
}

Result<std::vector<MasterLife>> ReadMasterLives(Database& database) {
  std::vector<MasterLife> lives;
  const Result<bool> has_lives = HasTable(database, "master");
  if (!has_lives) return std::unexpected(has_lives.error());
  if (!*has_lives) return lives;
  Result<Statement> rows = database.Prepare("SELECT epoch, program, engine, rules, after FROM master ORDER BY epoch");
  if (!rows) return std::unexpected(rows.error());
  const Status read = ForEachRow(*rows, [&](int64_t epoch, const std::string& program) -> Status {
    lives.push_back({Epoch{static_cast<uint64_t>(epoch)}, static_cast<uint32_t>(rows->Integer(2)), program,
                     rows->Text(3), rows->Integer(4)});
    return {};
  });
  if (!read) return std::unexpected(read.error());
  return lives;
}

}  // namespace aimaster
