// LauncherWords: what mpirun says about the death of a rank. It is second-hand: MPICH's often tells of a rank that it
// has killed itself, and its "exit code" is that of several ranks, put together bit by bit. So where the rank's own
// exit is known these lines count for nothing, and they are never the last thing that a program said.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "core/failure.h"

namespace aimaster {

// Of a line without colours and labels. Costs a healthy line next to nothing.
bool IsLauncherWord(std::string_view line);

// Of those, what MPICH's process manager says of itself and of its daemons: worth something as long as no rank is known
// to have failed.
bool IsDaemonWord(std::string_view line);

// One of these stands in every line for which one of the next two says yes.
inline constexpr std::array<std::string_view, 5> kLauncherLineWords{
    "noticed that process rank ", "restart worker group", "estart_count=", "estarting training", "esuming training"};

// Whether a sentence of mpirun's about the end of a rank goes on in the next line: it fills lines of 80 characters.
bool IsBrokenOff(std::string_view line);

// Whether it says that what ran before begins anew: torchrun's restart of its workers, a program that resumes.
bool IsRestartWord(std::string_view line);

// In an MPI job all ranks print into the launcher's output, wherever they run. What it holds beside mpirun's own words
// is therefore said for the rank that failed first: it moves there from the launcher, whose failure then says nothing
// for itself. Failures of other jobs stay as they are.
std::vector<RankFailure> AttributeLauncherOutput(std::vector<RankFailure> failures);

// Whether the launcher, of whose own ranks none has failed, ended as it did because somebody on another host has.
bool LauncherFollowed(std::span<const RankFailure> failures);

}  // namespace aimaster
