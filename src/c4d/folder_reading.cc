#include "c4d/folder_reading.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "c4d/hangs.h"

namespace aimaster::c4d {

void FolderReading::Add(std::string file, std::string_view bytes) {
  if (LooksLikeRasReport(bytes)) return ras_.Add(std::move(file), bytes);
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
  std::ranges::move(ras_.TakeNotes(), std::back_inserter(reading.notes));
  std::ranges::sort(reading.notes, {}, [](const DumpNote& note) {
    return std::tuple(std::string_view(note.file), note.is_used, std::string_view(note.reason));
  });
  return findings;
}

}  // namespace aimaster::c4d
