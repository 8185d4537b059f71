// A thin skin over SQLite: handles that close themselves and errors as values. Not a query builder; the SQL stays
// readable at its place of use.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"

namespace aimaster {

// One prepared statement. Bind, Step, and it is reset for the next use.
class Statement {
 public:
  Statement() = default;
  Statement& Bind(int64_t value);
  Statement& Bind(std::string_view value);
  // True while there is a row; columns are valid until the next call.
  Result<bool> Step();
  // For statements that give no row.
  Status Run();
  // Gives up the rows that are left.
  void Reset();

  const char* sql() const { return sqlite3_sql(statement_.get()); }
  int64_t Integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  std::string Text(int column) const;

 private:
  friend class Database;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
  int bound_ = 0;
};

// One connection. One thread. Every error names the file and, where there is one, the remedy.
class Database {
 public:
  enum class Mode {
    kCreate,  // read and write; makes the file, readable by its owner alone, where there is none
    kRead,    // alongside a writer
    kFrozen,  // of a file that nobody writes any more, in a directory where we may not write
  };
  static Result<Database> Open(const std::filesystem::path& path, Mode mode);

  Status Execute(const char* sql);
  // Closing it does not move the write-ahead log into the file, which would spoil the file where the log is damaged.
  void LeaveLogAlone() { sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }
  Result<Statement> Prepare(const char* sql);
  Result<int64_t> QueryInteger(const char* sql);
  Result<std::string> QueryText(const char* sql);

 private:
  struct Closer {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  std::unique_ptr<sqlite3, Closer> database_;
};

}  // namespace aimaster
