// RankReport: everything that a node knows about the end of one rank: what the shim wrote, what it printed, what its
// framework left in the error file. Gathered at once after the death: output files are bounded, and what they say may
// be gone later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/attempt_files.h"
#include "agent/clock_offset.h"
#include "aimaster/v1/agent.pb.h"
#include "core/failure.h"
#include "detect/pattern_matcher.h"
#include "detect/torchrun_words.h"

namespace aimaster::agent {

// What a rank printed, as far as it may be why it ended.
struct RankWords {
  std::vector<LineMatch> matches;           // of standard error first, each in the order of its file
  std::string last_line;                    // the last telling one, of standard error where it has one
  std::optional<TorchrunFailure> torchrun;  // where an inner one said what it failed of
};

struct RankEnd {
  ClaimedRank rank;
  std::optional<RankExitFile> exit;  // none: the shim was lost before it could write one
  std::string lost_reason;           // then this says why
  int exec_errno = 0;                // and this what the system said, when nothing was started for want of something
  bool out_of_memory = false;
  int64_t dump_start_ns = 0;
  RankWords words;
  std::optional<v1::MpiRank> mpi_rank;  // then the exit is that of this rank of MPI
  std::string mpi_words;                // what is known of it that nobody has printed
};

// A rank that we ended by a signal has nothing of its own to say, and there may be many of them at once.
bool HasSomethingToSay(const RankEnd& end);

// `now`, where the rank ended in this boot: its time is told by the wall clock as it goes now.
v1::RankExited MakeRankReport(const AttemptDirectory& directory, const Claim& claim, const RankEnd& end,
                              const ClockEstimate& clock, PatternMatcher& matcher, std::optional<Moment> now);

}  // namespace aimaster::agent
