// LauncherWords: what mpirun says about the death of a rank. It is second-hand: MPICH's often tells of a rank that it
// has killed itself, and its "exit code" is that of several ranks, put together bit by bit. So where the rank's own
// exit is known these lines count for nothing, and they are never the last thing that a program said.
#pragma once

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

// In an MPI job all ranks print into the launcher's output, wherever they run. What it holds beside mpirun's own words
// is therefore said for the rank that failed first: it moves there from the launcher, whose failure then says nothing
// for itself. Failures of other jobs stay as they are.
std::vector<RankFailure> AttributeLauncherOutput(std::vector<RankFailure> failures);

// Whether the launcher, of whose own ranks none has failed, ended as it did because somebody on another host has.
bool LauncherFollowed(std::span<const RankFailure> failures);

}  // namespace aimaster
