// FolderReading: whatever somebody has gathered in one folder, each file read as what it is, and what follows from all.
//
// What a file is its content says, never its name. Dumps of the Flight Recorder say most: where there is one, they
// alone tell who hangs. Adding up the two was rejected: a report of RAS is of another moment, and its communicators
// have no names in common with groups. Logs of the Inspector tell who is slow, and are heard beside either.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "c4d/dump_collection.h"
#include "c4d/inspector_collection.h"
#include "c4d/ras_collection.h"
#include "c4d/verdict.h"

namespace aimaster::c4d {

struct FolderFindings {
  DumpReading reading;
  std::vector<Verdict> verdicts;
};

class FolderReading {
 public:
  // A file's name, and what it holds, which is not needed any more afterwards.
  void Add(std::string file, std::string_view bytes);
  // One that the caller could not read. The reason follows the file's name.
  void LeaveOut(std::string file, std::string reason);
  // Once, at the end. `stood_for`: for how long the job had stood when the files were made, if that is known.
  FolderFindings Conclude(std::optional<Duration> stood_for, const HangTiming& timing);

 private:
  void AddInspector(FolderFindings& findings);

  DumpCollection dumps_;
  RasCollection ras_;
  InspectorCollection inspector_;
};

}  // namespace aimaster::c4d
