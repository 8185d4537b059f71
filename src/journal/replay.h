// Replay: a job's history through the engine once more, beside what was decided then.
//
// With the job's own parameters it is a check: the same inputs have to give the same decisions. With others it answers
// "what if", as far as that can be known: up to the first input where the job would have gone another way. Beyond it
// the recorded inputs tell of a history that would not have happened, so guessing on was rejected.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/failure.h"
#include "core/fault_tolerance_parameters.h"
#include "engine/job_state.h"
#include "journal/rows.h"

namespace aimaster {

// Something was decided at this input, then, now, or both times.
struct ReplayedInput {
  int64_t number = 0;
  std::string kind;  // "FailureJudged"
  Moment at;
  Round round{};  // at which it arrived
  Epoch epoch{};
  std::vector<Decision> recorded, replayed;
};

// The detector says something else about the same failures than it said then.
struct JudgementDifference {
  int64_t input = 0;
  Moment at;
  Round round{};
  Judgement recorded, now;
};

enum class ReplayEnding {
  kSame,   // to the last input, and nothing differs
  kWords,  // the job goes the same way; reasons or summaries differ
  kParts,  // at the last of `inputs` the job would have gone another way
};

struct Replay {
  ReplayEnding ending = ReplayEnding::kSame;
  std::vector<ReplayedInput> inputs;
  // By the job's own parameters the history parts too, at this input or before: not the parameters make the difference,
  // but the version of this program.
  bool parts_anyway = false;
  std::vector<JudgementDifference> judgements;
  int64_t recorded_inputs = 0, replayed_inputs = 0;
  std::string state_difference;             // same decisions, but the engine ends up knowing something else; or empty
  JobStatus status = JobStatus::kCreating;  // where it ended, as replayed
  std::vector<MasterLife> lives;            // who decided
  std::set<std::string> rules;              // by which failure rules
};

struct ReplayOptions {
  // Instead of the job's own; none: check.
  std::optional<FaultToleranceParameters> parameters;
  // The detector of today, about the failures of a job. None: judgements are not compared.
  std::function<Judgement(const JobState& job)> judge;
  // And where each failed instance is judged by itself.
  std::function<std::vector<Judgement>(const JobState& job)> judge_apart;
};

// Reads, writes nothing, and needs memory for decisions alone. The job may be running: it is taken as it stands now.
Result<Replay> ReplayJob(Database& database, const ReplayOptions& options);

}  // namespace aimaster
