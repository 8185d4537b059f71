// Follower: what `run`, `attach` and `resume` have in common after the job is there. It shows what happens, passes on
// what a person wants, and ends with the job. It is a spectator: whether it watches, is slow, or dies, changes nothing.
//
//   journal (read only) ─▶ event lines, live line, summary      rank files ─▶ tee      signals ─▶ wishes ─▶ master
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/interrupts.h"
#include "cli/supervisor_life.h"
#include "core/job_spec.h"
#include "journal/job_directory.h"
#include "journal/job_reader.h"

namespace aimaster::cli {

// Which ranks' output `run`, `attach` and `resume` show.
enum class Tee { kNone, kRank0, kAll };
inline constexpr std::array<std::string_view, 3> kTeeChoices = {"none", "rank0", "all"};
inline constexpr Option kTeeOption{.name = "--tee",
                                   .value = "none|rank0|all",
                                   .help = "which ranks' output to show here; default: rank0",
                                   .choices = kTeeChoices};
// One of kTeeChoices.
Tee ParseTee(std::string_view text);

struct FollowOptions {
  Tee tee = Tee::kRank0;
  bool from_the_start = true;       // false: from now on, with a few lines of what was
  bool interrupt_stops_job = true;  // false: an interrupt ends the following alone
  bool tell_address = false;        // where the master listens, as soon as that is known
  // A stop that is asked for at once, by `aimaster stop`.
  struct Stop {
    bool at_once = false;
    std::string by;
  };
  std::optional<Stop> stop;
  std::optional<std::chrono::seconds> give_up_after;  // then the job is left as it is, with kExitFailure
  std::optional<ProcessIdentity> supervisor;          // when it was just started, before its file says so
};

// The exit code that stands for how a job has ended.
int ExitCodeOf(const JobSummary& summary);

// Follows until the job has ended, the person leaves, or nobody looks after the job any more. The exit code of the
// command: 0 when the job succeeded, else the job's; 130 or 143 when it was stopped because of a signal; 129 when the
// terminal went away. `interrupts` were made before the job was started, so that none came in between.
int Follow(const JobDirectory& directory, const JobSpec& spec, Interrupts& interrupts, FollowOptions options);

}  // namespace aimaster::cli
