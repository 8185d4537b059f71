// InspectorCollection: the logs of NCCL's Inspector of all ranks, and who is slow by them.
//
// What they say of a collective is what SlowWatch asks for while a job runs: for how long each member was in it. So it
// is told the same, in the order of time, in windows of the same length, and comes to the same verdicts. An operation
// is at the middle of the times at which its members wrote it, so that no clock has to be right, only most of them.
//
// Who comes late to one group because it waited in another is known by that wait. So a rank is not accused where its
// waits are not known: where logs of other members of its groups are missing, or too many of its operations are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "c4d/dump_collection.h"
#include "c4d/inspector_log.h"
#include "c4d/verdict.h"

namespace aimaster::c4d {

struct InspectorFindings {
  std::vector<Communicator> communicators;
  std::vector<Verdict> verdicts;  // of level Info; communicators are those above
  uint32_t ranks = 0;
  bool is_judged = false;    // there was enough to find somebody
  bool is_numbered = false;  // ranks have the numbers of the job
  std::vector<Rank> seen;
};

struct InspectorFile {
  std::string file;
  InspectorLog log;
};

class InspectorCollection {
 public:
  void Add(std::string file, std::string_view bytes);
  bool is_empty() const { return logs_.empty(); }
  size_t size() const { return logs_.size(); }
  std::vector<DumpNote> TakeNotes();  // of the files that are not used, or in part
  // All of them, for this reason: it follows the file's name.
  void LeaveOut(const std::string& reason);
  // There is one at least.
  InspectorFindings Judge();

 private:
  std::vector<InspectorFile> logs_;
  std::vector<DumpNote> notes_;
  size_t records_ = 0;
};

}  // namespace aimaster::c4d
