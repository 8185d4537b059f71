#include "journal/sqlite.h"

namespace aimaster {
namespace {

constexpr int kBusyTimeoutMs = 5000;

std::unexpected<Error> FailSqlite(sqlite3* database, const std::string& what) {
  return Fail(ErrorKind::kEnvironment,
              what + ": " + (database == nullptr ? "out of memory" : sqlite3_errmsg(database)));
}

}  // namespace

Statement& Statement::Bind(int64_t value) {
  sqlite3_bind_int64(statement_.get(), ++bound_, value);
  return *this;
}

Statement& Statement::Bind(std::string_view value) {
  sqlite3_bind_text(statement_.get(), ++bound_, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  return *this;
}

Result<bool> Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  sqlite3* database = sqlite3_db_handle(statement_.get());
  const std::string message = code == SQLITE_DONE ? "" : sqlite3_errmsg(database);
  sqlite3_reset(statement_.get());
  bound_ = 0;
  if (code == SQLITE_DONE) return false;
  return Fail(ErrorKind::kEnvironment, message);
}

Status Statement::Run() {
  const Result<bool> stepped = Step();
  if (!stepped) return std::unexpected(stepped.error());
  return {};
}

std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return text == nullptr ? "" : std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

Result<Database> Database::Open(const std::string& path, Mode mode) {
  const int flags = mode == Mode::kCreate  ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                    : mode == Mode::kWrite ? SQLITE_OPEN_READWRITE
                                           : SQLITE_OPEN_READONLY;
  Database opened;
  opened.path_ = path;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  opened.database_.reset(handle);
  if (code != SQLITE_OK) return FailSqlite(handle, "cannot open " + path);
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  return opened;
}

Status Database::Execute(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) return Failure("writing");
  return {};
}

Result<Statement> Database::Prepare(const char* sql) {
  sqlite3_stmt* handle = nullptr;
  if (sqlite3_prepare_v3(database_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, nullptr) != SQLITE_OK) {
    return Failure("preparing");
  }
  Statement statement;
  statement.statement_.reset(handle);
  return statement;
}

Result<int64_t> Database::QueryInteger(const char* sql) {
  Result<Statement> statement = Prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  const Result<bool> row = statement->Step();
  if (!row) return Failure("reading");
  return *row ? statement->Integer(0) : 0;
}

std::unexpected<Error> Database::Failure(const std::string& what) const {
  return FailSqlite(database_.get(), what + " " + path_);
}

}  // namespace aimaster
