#include "c4d/folder_reading.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "c4d/hangs.h"

namespace aimaster::c4d {

void FolderReading::Add(std::string file, std::string_view bytes) {
  if (LooksLikeRasReport(bytes)) return ras_.Add(std::move(file), bytes);
  if (LooksLikeInspectorLog(bytes)) return inspector_.Add(std::move(file), bytes);
  dumps_.Add(std::move(file), bytes);
}

void FolderReading::LeaveOut(std::string file, std::string reason) {
  dumps_.LeaveOut(std::move(file), std::move(reason));
}

FolderFindings FolderReading::Conclude(std::optional<Duration> stood_for, const HangTiming& timing) {
  FolderFindings findings{.reading = dumps_.Take(stood_for.value_or(timing.timeout)), .verdicts = {}};
  DumpReading& reading = findings.reading;
  if (reading.dumps_used > 0) {
    findings.verdicts = FindHangs(reading.observation, timing);
    ras_.LeaveOut("is not needed: the Flight Recorder dumps beside it say more");
  } else if (!ras_.is_empty()) {
    findings.verdicts = ras_.Judge(stood_for, timing, reading);
  }
  if (!inspector_.is_empty()) AddInspector(findings);
  std::ranges::move(ras_.TakeNotes(), std::back_inserter(reading.notes));
  std::ranges::move(inspector_.TakeNotes(), std::back_inserter(reading.notes));
  std::ranges::sort(reading.notes, {}, [](const DumpNote& note) {
    return std::tuple(std::string_view(note.file), note.is_used, std::string_view(note.reason));
  });
  return findings;
}

void FolderReading::AddInspector(FolderFindings& findings) {
  DumpReading& reading = findings.reading;
  Observation& observation = reading.observation;
  const size_t logs = inspector_.size();
  InspectorFindings slow = inspector_.Judge();
  if (reading.dumps_used > 0 && (!slow.is_numbered || slow.ranks != observation.ranks.size())) {
    return inspector_.LeaveOut("numbers ranks in another way than what tells of hangs: analyse the logs by themselves");
  }
  if (reading.dumps_used == 0) {
    reading.source = DumpSource::kInspector;
    reading.is_judged = slow.is_judged;
    reading.stood_for = Duration::zero();
    reading.ranks_seen = slow.seen.size();
  }
  if (observation.ranks.size() < slow.ranks) observation.ranks.resize(slow.ranks);
  if (reading.source == DumpSource::kInspector) {
    for (const Rank rank : slow.seen) observation.ranks[Value(rank)].is_observed = true;
  }
  reading.dumps_used += logs;
  const auto first = static_cast<uint32_t>(observation.communicators.size());
  std::ranges::move(slow.communicators, std::back_inserter(observation.communicators));
  for (Verdict& verdict : slow.verdicts) {
    if (verdict.communicator) *verdict.communicator += first;
    findings.verdicts.push_back(std::move(verdict));
  }
}

}  // namespace aimaster::c4d
