// RasObservation: what RAS tells of a job, as the analysis of hangs knows it.
//
// A collective that needs all ends for nobody before all have launched it. So whoever has launched more than the last
// of its communicator waits, at the first that the last has not launched; and the last one waits there for nobody. That
// is all that counters of launches say, and it holds only where they leave no way out. So a communicator is opaque, and
// each of its members may be waiting in it for something that is not told, where
//
//   - a member is missing or not listed, has not finished its start, or is listed in a way that can't be true;
//   - it has launched no collective at all, or sends and receives: those may go on unseen, in a pipeline say;
//   - members launched what can't be the same sequence: of two beginnings of one sequence the longer one has of every
//     kind at least as many. That is a mistake of the program, and told as one.
//
// Ages come from several looks: what has not changed between the first and the last is at least as old as the time
// between them.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "c4d/observation.h"
#include "c4d/ras_report.h"

namespace aimaster::c4d {

// Members of one communicator who launched another sequence than most; where there are no most, all. Or nobody.
struct RasMismatch {
  std::vector<Rank> ranks;
  std::vector<std::string> counts;  // sentences
};

struct RasScene {
  Observation observation;
  std::vector<bool> is_opaque;            // of each communicator
  std::vector<RasMismatch> differs;       // of each
  std::map<Rank, std::string> processes;  // "process 10017 on 10.0.0.4, device 1"
  std::map<Rank, std::string> not_seen;   // and why
  std::map<Rank, std::string> troubles;   // of those that are seen
  std::map<Rank, std::string> behind;     // in an opaque communicator: a sentence
  Duration still{};                       // for how long nobody has launched anything, at the least
  bool is_timed = false;                  // that is known, by several looks or from the caller
  bool is_numbered = true;                // ranks have the numbers of the job
  bool is_even = true;                    // nobody has launched less than others
};

// `looks` are of one job, the newest last. `stood_for`: for how long it had stood when the first was taken, if the
// caller knows.
RasScene MakeRasScene(std::span<const RasReport> looks, std::optional<Duration> stood_for);

// Whether both tell of a communicator that is the same.
bool IsSameJob(const RasReport& one, const RasReport& other);

}  // namespace aimaster::c4d
