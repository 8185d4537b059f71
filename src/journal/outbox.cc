#include "journal/outbox.h"

#include "core/count.h"
#include "core/quote.h"
#include "journal/codec.h"

namespace aimaster {
namespace {

Status TellGivenUp(Database& database, const OutboxMark& mark) {
  const std::string text = Count(static_cast<uint64_t>(mark.events), "event") + " up to number " +
                           std::to_string(mark.position) + " could not be delivered to sink " + Quoted(mark.sink) +
                           ", and " + (mark.events == 1 ? "is" : "are") + " given up: " + mark.answer;
  Result<Statement> insert = database.Prepare("INSERT INTO event(body) VALUES(?)");
  if (!insert) return std::unexpected(insert.error());
  return insert->Bind(Encode(JobEvent{.at = mark.at, .type = kGaveUpEvent, .subject = mark.sink, .message = text}))
      .Run();
}

}  // namespace

Result<std::vector<SinkProgress>> ReadOutbox(Database& database) {
  std::vector<SinkProgress> sinks;
  const Result<int64_t> has_table =
      database.QueryInteger("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'outbox'");
  if (!has_table) return std::unexpected(has_table.error());
  if (*has_table == 0) return sinks;
  Result<Statement> rows =
      database.Prepare("SELECT sink, position, delivered, gave_up, trouble FROM outbox ORDER BY sink");
  if (!rows) return std::unexpected(rows.error());
  while (true) {
    const Result<bool> row = rows->Step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return sinks;
    sinks.push_back({rows->Text(0), rows->Integer(1), rows->Integer(2), rows->Integer(3), rows->Text(4)});
  }
}

Status WriteMark(Database& database, const OutboxMark& mark) {
  if (mark.kind == OutboxMark::Kind::kTrouble) {
    Result<Statement> trouble = database.Prepare(
        "INSERT INTO outbox VALUES(?, 0, 0, 0, ?) ON CONFLICT(sink) DO UPDATE SET trouble = excluded.trouble");
    if (!trouble) return std::unexpected(trouble.error());
    return trouble->Bind(mark.sink).Bind(mark.answer).Run();
  }
  if (mark.kind == OutboxMark::Kind::kPassed) {
    Result<Statement> passed = database.Prepare(
        "INSERT INTO outbox VALUES(?, ?, 0, 0, '') ON CONFLICT(sink) DO UPDATE SET "
        "position = max(position, excluded.position)");
    if (!passed) return std::unexpected(passed.error());
    return passed->Bind(mark.sink).Bind(mark.position).Run();
  }
  const bool given_up = mark.kind == OutboxMark::Kind::kGaveUp;
  Result<Statement> done = database.Prepare(
      "INSERT INTO outbox VALUES(?, ?, ?, ?, ?) ON CONFLICT(sink) DO UPDATE SET "
      "position = max(position, excluded.position), delivered = delivered + excluded.delivered, "
      "gave_up = gave_up + excluded.gave_up, trouble = excluded.trouble");
  if (!done) return std::unexpected(done.error());
  const Status written = done->Bind(mark.sink)
                             .Bind(mark.position)
                             .Bind(given_up ? 0 : mark.events)
                             .Bind(given_up ? mark.events : 0)
                             .Bind(given_up ? std::string_view(mark.answer) : std::string_view())
                             .Run();
  if (!written || !given_up) return written;
  return TellGivenUp(database, mark);
}

}  // namespace aimaster
