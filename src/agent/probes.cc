#include "agent/probes.h"

#include "agent/log.h"
#include "agent/record_folder.h"
#include "probe/record.h"

namespace aimaster::agent {

void AddProbes(const AttemptDirectory& attempt, const std::string& programs, Launch& launch) {
  if (const Status made = MakeRecordFolder(attempt); !made) {
    LogWarning("what ranks communicate is not recorded, C4D will see nothing: " + made.error().message);
    return;
  }
  (void)programs;
  for (LaunchRank& rank : launch.ranks) rank.environment[AIMASTER_RECORD_FOLDER] = RecordFolderOf(attempt);
}

}  // namespace aimaster::agent
