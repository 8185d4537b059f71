#include "journal/sqlite.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "journal/files.h"

namespace aimaster {
namespace {

constexpr int kBusyTimeoutMs = 5000;
constexpr int kRowMaxBytes = 512 << 20;  // a snapshot of a hundred thousand instances fits several times

const char* Remedy(int code) {
  switch (code & 0xFF) {  // the rest of the bits are details
    case SQLITE_FULL:
      return "; free some space there";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return "; check that it and its directory are yours to read and write";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "; another process keeps it locked";
    case SQLITE_IOERR:
      return "; check the disk, and the quota on it";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "; restore it from a copy, or submit the job anew";
    default:
      return "";
  }
}

bool IsFull(int code, int system_error) {
  return (code & 0xFF) == SQLITE_FULL ||
         ((code & 0xFF) == SQLITE_IOERR && (system_error == ENOSPC || system_error == EDQUOT));
}

std::unexpected<Error> FailSqlite(sqlite3* database, const std::string& file) {
  if (database == nullptr) return Fail(ErrorKind::kEnvironment, file + ": out of memory");
  std::string why = sqlite3_errmsg(database);
  // SQLite's word for an error of the file system says nothing; the system's does.
  const int system_error = sqlite3_system_errno(database), kind = sqlite3_errcode(database) & 0xFF;
  if ((kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN) && system_error != 0) {
    why += std::string(" (") + std::strerror(system_error) + ")";
  }
  const bool full = IsFull(sqlite3_errcode(database), system_error);
  return Fail(full ? ErrorKind::kDiskFull : ErrorKind::kEnvironment,
              file + ": " + why + Remedy(full ? SQLITE_FULL : sqlite3_errcode(database)) +
                  (kind == SQLITE_IOERR ? FileSizeLimitNote() : ""));
}

std::unexpected<Error> FailSqlite(sqlite3* database) {
  const char* file = database == nullptr ? nullptr : sqlite3_db_filename(database, "main");
  return FailSqlite(database, file == nullptr ? "the journal" : file);
}

// The path inside a file: URI.
std::string EscapeForUri(const std::string& path) {
  constexpr std::string_view kDigits = "0123456789ABCDEF", kSpecial = "%?#";
  std::string escaped;
  for (const char c : path) {
    if (kSpecial.contains(c)) {
      escaped += {'%', kDigits[static_cast<unsigned char>(c) >> 4], kDigits[c & 15]};
    } else {
      escaped.push_back(c);
    }
  }
  return escaped;
}

// SQLite would make it readable for everybody. Only ever done to a file that is new: closing a descriptor of one that
// this process has open elsewhere would drop the locks on it.
Status MakePrivateFile(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) {
    close(fd);
  } else if (errno != EEXIST) {
    return Fail(ErrorKind::kEnvironment, "cannot create " + path.string() + ": " + std::strerror(errno) +
                                             "; check that its directory is yours to write");
  }
  return {};
}

}  // namespace

Statement& Statement::Bind(int64_t value) {
  sqlite3_bind_int64(statement_.get(), ++bound_, value);
  return *this;
}

Statement& Statement::Bind(std::string_view value) {
  sqlite3_bind_text64(statement_.get(), ++bound_, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

Result<bool> Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  Result<bool> answer = false;
  if (code != SQLITE_DONE) answer = FailSqlite(sqlite3_db_handle(statement_.get()));
  Reset();
  return answer;
}

Status Statement::Run() {
  const Result<bool> stepped = Step();
  if (!stepped) return std::unexpected(stepped.error());
  return {};
}

void Statement::Reset() {
  sqlite3_reset(statement_.get());
  bound_ = 0;
}

std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return text == nullptr ? "" : std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

Result<Database> Database::Open(const std::filesystem::path& path, Mode mode) {
  if (mode == Mode::kCreate) {
    if (const Status made = MakePrivateFile(path); !made) return std::unexpected(made.error());
  }
  const int flags = mode == Mode::kCreate ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
  const std::string uri = "file:" + EscapeForUri(path.string()) + (mode == Mode::kFrozen ? "?immutable=1" : "");
  Database opened;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(uri.c_str(), &handle,
                                   flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  opened.database_.reset(handle);
  if (code != SQLITE_OK) return FailSqlite(handle, path.string());
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  // Whatever the file holds is data: nothing in it is run, and no row makes us allocate without a bound.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kRowMaxBytes);
  return opened;
}

Status Database::Execute(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) return FailSqlite(database_.get());
  return {};
}

Result<Statement> Database::Prepare(const char* sql) {
  sqlite3_stmt* handle = nullptr;
  if (sqlite3_prepare_v3(database_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, nullptr) != SQLITE_OK) {
    return FailSqlite(database_.get());
  }
  Statement statement;
  statement.statement_.reset(handle);
  return statement;
}

Result<int64_t> Database::QueryInteger(const char* sql) {
  Result<Statement> statement = Prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  const Result<bool> row = statement->Step();
  if (!row) return std::unexpected(row.error());
  return *row ? statement->Integer(0) : 0;
}

Result<std::string> Database::QueryText(const char* sql) {
  Result<Statement> statement = Prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  const Result<bool> row = statement->Step();
  if (!row) return std::unexpected(row.error());
  return *row ? statement->Text(0) : "";
}

}  // namespace aimaster
