// One rank: its process, what became of it, and the exit file that says so.
#ifndef AIMASTER_SHIM_RANK_H_
#define AIMASTER_SHIM_RANK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "shim/launch.h"
#include "shim/text.h"

enum RankState { kRankLive, kRankEnded, kRankRecorded };

// Where a start failed. The texts are in rank.c.
enum StartStep { kStepNone, kStepFork, kStepOutput, kStepDirectory, kStepExec };

struct Rank {
  uint32_t rank;
  uint32_t local;
  pid_t pid;  // 0 where there was no process
  uint64_t start_ticks;
  enum RankState state;
  bool stopped_by_us;   // on a master's order
  int64_t orphaned_ms;  // otherwise: stopped since no master was there for so long; 0: it was not
  bool durable;

  enum StartStep failed_step;
  int failed_errno;

  int wait_status;
  struct rusage usage;
  int64_t ended_at_ns;         // wall time
  int64_t ended_monotonic_ns;  // monotonic
};

// What a child sends through the pipe when it can't become its rank. The pipe closes at the exec.
struct StartFailure {
  uint32_t index;
  uint32_t step;
  int32_t error;
};

// Forks the rank. `failures` is the pipe's writing end, `oom_score` what the rank gets. On failure the rank has ended.
void StartRank(struct Rank* rank, uint32_t index, const struct Launch* launch, int failures, int oom_score);

void NoteEnd(struct Rank* rank, int wait_status, const struct rusage* usage);

// `launch` names the command in the text of a failed start; it may be empty for a rank that started.
void PrintExit(struct Text* text, const struct Rank* rank, const struct LaunchRank* launch, const char* log_dir);

void ExitFileName(const struct Rank* rank, char* name, size_t capacity);

#endif  // AIMASTER_SHIM_RANK_H_
