#include "agent/probes.h"

#include "agent/log.h"
#include "agent/record_folder.h"
#include "agent/small_file.h"
#include "probe/record.h"

namespace aimaster::agent {
namespace {

constexpr const char* kTorchSwitch = "AIMASTER_C4D_TORCH";
constexpr const char* kRecorder = "AIMASTER_C4D_RECORDER";

// A Python program finds our sitecustomize first, which waits for torch.distributed (sdk/python/aimaster/_collectives).
void AddTorch(const std::string& programs, std::map<std::string, std::string>& environment) {
  const auto asked = environment.find(kTorchSwitch);
  if (asked != environment.end() && asked->second == "0") return;
  const std::string library = programs + "/libaimaster-recorder.so", modules = programs + "/python/aimaster/_preload";
  if (!FileExists(library) || !FileExists(modules)) return;
  environment[kRecorder] = library;
  std::string& path = environment["PYTHONPATH"];
  path = path.empty() ? modules : modules + ":" + path;
}

}  // namespace

void AddProbes(const AttemptDirectory& attempt, const std::string& programs, Launch& launch) {
  if (const Status made = MakeRecordFolder(attempt); !made) {
    LogWarning("what ranks communicate is not recorded, C4D will see nothing: " + made.error().message);
    return;
  }
  for (LaunchRank& rank : launch.ranks) {
    rank.environment[AIMASTER_RECORD_FOLDER] = RecordFolderOf(attempt);
    AddTorch(programs, rank.environment);
  }
}

}  // namespace aimaster::agent
