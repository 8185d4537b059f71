// Explanation: a decision together with what it rests on, taken from different places of the journal: the judgement
// that led to it, and the line of output that told, with its place. For people; replay.h is for checking.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/failure.h"
#include "engine/job_state.h"
#include "journal/sqlite.h"

namespace aimaster {

// The line that told, and in whose file it is.
struct TellingLine {
  InstanceIndex instance{};
  NodeIndex node{};
  Attempt attempt{};
  LineMatch match;
};

struct Explanation {
  Decision decision;
  std::optional<Judgement> judgement;  // none: no failure led to it
  std::optional<TellingLine> line;     // none: no line did
  // Of decision.reasons those that the judgement did not bring: of policy and limits.
  std::vector<std::string> limits;
};

// All decisions in order. Reads only what belongs to them, however long the job's history is.
Result<std::vector<Explanation>> ReadExplanations(Database& database);

}  // namespace aimaster
