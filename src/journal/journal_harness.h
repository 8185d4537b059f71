// JournalHarness: what the tests of this folder share: a directory that goes away, and jobs that have lived through
// something. The jobs are played by the real engine, so that what is stored is what a master would store.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "engine/engine_harness.h"
#include "journal/journal.h"
#include "journal/temporary_directory.h"

namespace aimaster {

inline std::string BytesOf(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

// Runs `story` in a process of its own, which may lose its privileges, run into limits, or be killed. The story returns
// what was wrong; that, or how the process ended, is the answer.
inline std::string InChildProcess(const std::function<std::string()>& story) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string wrong = story();
    const bool written = write(ends[1], wrong.data(), wrong.size()) == static_cast<ssize_t>(wrong.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string wrong;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) wrong.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) wrong += " (wait status " + std::to_string(status) + ")";
  return wrong;
}

// Inputs with what the engine makes of them, as a master would append them.
struct Played {
  JournalBatch batch;
  Engine engine;
};
inline Played Play(const std::vector<Input>& inputs) {
  Played played;
  for (const Input& input : inputs) {
    StepResult result = played.engine.Step(input);
    played.batch.emplace_back(input, std::move(result));
  }
  return played;
}

// Four workers on two nodes; rank 1 fails with code 7; the job has been restarted and runs in round 1.
inline EngineHarness RestartedJob() {
  EngineHarness job(4, 2);
  job.spec.name = "story";
  job.spec.create_time = job.now.wall;
  job.Run();
  job.Pass(std::chrono::seconds{90});
  job.FailAndJudge(1, Retryable::kYes, 7);
  job.EndedAll();
  job.Run();
  return job;
}

// A second program that looks into a journal, or tampers with it.
inline std::string Sql(const std::filesystem::path& journal, const std::string& sql) {
  sqlite3* database = nullptr;
  std::string answer;
  if (sqlite3_open(journal.c_str(), &database) == SQLITE_OK) {
    sqlite3_busy_timeout(database, 5000);
    const auto take = [](void* to, int columns, char** values, char**) {
      for (int i = 0; i < columns; ++i) {
        *static_cast<std::string*>(to) += (i > 0 ? "|" : "") + std::string(values[i] == nullptr ? "" : values[i]);
      }
      *static_cast<std::string*>(to) += "\n";
      return 0;
    };
    sqlite3_exec(database, sql.c_str(), take, &answer, nullptr);
  }
  sqlite3_close(database);
  return answer;
}

}  // namespace aimaster
