#include "c4d/ras_collection.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "c4d/hang_words.h"
#include "c4d/ras_hangs.h"
#include "c4d/ras_observation.h"
#include "core/fnv1a.h"

namespace aimaster::c4d {
namespace {

constexpr size_t kLooksMax = 1000;
constexpr size_t kRasSentencesMax = 8;

// What is known, and accuses nobody.
std::vector<std::string> Remarks(const RasScene& scene, const HangTiming& timing, bool is_named) {
  std::vector<std::string> remarks;
  const bool is_still = scene.is_timed && scene.still > timing.timeout;
  if (!scene.is_timed) {
    remarks.emplace_back(
        "is one look at a job that may be running well, so nobody is accused: take another one half a minute later, or "
        "say with --timeout for how long the job had stood");
  } else if (scene.still == Duration::zero()) {
    remarks.emplace_back("shows that more was launched since the looks before it: the job, or a part of it, goes on");
  } else if (!is_still) {
    remarks.push_back("is too soon after the looks before it: that nothing was launched for " +
                      FormatDuration(scene.still) + " may be the rhythm of the job");
  } else if (scene.is_even && scene.not_seen.empty()) {
    remarks.emplace_back(
        "shows a job that stands, in which all members of each communicator have launched the same: it is a device or "
        "a link, and RAS does not tell which");
  }
  if (!scene.is_numbered) {
    remarks.emplace_back("names no communicator of all processes: the numbers of ranks are not those of the job");
  }
  for (const auto& [_, sentence] : scene.behind) {
    if (is_named || (scene.is_timed && !is_still) || remarks.size() == kRasSentencesMax) break;
    remarks.push_back("says: " + sentence +
                      (is_still ? ", and that may be a wait for what RAS does not count, as a send or receive" : ""));
  }
  size_t troubles = 0;
  for (const auto& [rank, trouble] : scene.troubles) {
    if (++troubles > kRasSentencesMax) break;
    const auto process = scene.processes.find(rank);
    remarks.push_back("says of " + RankText(Value(rank)) +
                      (process == scene.processes.end() ? "" : " (" + process->second + ")") + ": " + trouble);
  }
  return remarks;
}

}  // namespace

void RasCollection::Add(std::string file, std::string_view bytes) {
  Result<RasReport> report = ReadRasReport(bytes);
  std::string reason;
  if (!report) {
    reason = report.error().message;
  } else if (report->communicators.empty()) {
    reason = "is a report of RAS without a communicator";
  } else if (looks_.size() == kLooksMax) {
    reason = "is one report of RAS too many: " + std::to_string(kLooksMax) + " are read";
  }
  if (!reason.empty()) {
    notes_.push_back({.file = std::move(file), .reason = std::move(reason)});
    return;
  }
  looks_.push_back({.file = std::move(file), .digest = Fnv1a(bytes), .report = std::move(*report)});
}

void RasCollection::LeaveOut(const std::string& reason) {
  for (Look& look : looks_) notes_.push_back({.file = std::move(look.file), .reason = reason});
  looks_.clear();
}

std::vector<DumpNote> RasCollection::TakeNotes() { return std::exchange(notes_, {}); }

// The newest look is what is judged; others are of use where they are of the same job, and tell when they were taken.
void RasCollection::KeepOneJob() {
  std::ranges::sort(looks_, {}, [](const Look& look) {
    return std::tuple(look.report.taken_seconds.value_or(INT64_MIN), std::string_view(look.file));
  });
  const Look newest = looks_.back();
  std::vector<Look> kept;
  for (Look& look : looks_) {
    const bool is_newest = look.file == newest.file;
    const bool is_copy = !kept.empty() && kept.back().digest == look.digest;
    if (!is_newest && !IsSameJob(look.report, newest.report)) {
      notes_.push_back({.file = look.file,
                        .reason = "is of another job, or an earlier run: it has no communicator in "
                                  "common with " +
                                  newest.file + ", which is the newest"});
    } else if (!is_newest && !look.report.taken_seconds) {
      notes_.push_back({.file = look.file, .reason = "does not tell when it was taken"});
    } else if (is_copy) {
      notes_.push_back({.file = look.file, .reason = "is the same as " + kept.back().file});
    } else {
      kept.push_back(std::move(look));
    }
  }
  looks_ = std::move(kept);
}

std::vector<Verdict> RasCollection::Judge(std::optional<Duration> stood_for, const HangTiming& timing,
                                          DumpReading& reading) {
  KeepOneJob();
  std::vector<RasReport> reports;
  std::vector<std::string> files;
  for (Look& look : looks_) {
    reports.push_back(std::move(look.report));
    files.push_back(std::move(look.file));
  }
  looks_.clear();
  RasScene scene = MakeRasScene(reports, stood_for);
  std::vector<Verdict> verdicts = FindRasHangs(scene, timing);
  const bool is_named =
      std::ranges::any_of(verdicts, [](const Verdict& verdict) { return verdict.kind != VerdictKind::kNoProbeData; });
  for (std::string& remark : Remarks(scene, timing, is_named)) {
    notes_.push_back({.file = files.back(), .reason = std::move(remark), .is_used = true});
  }
  reading.ranks_seen = static_cast<size_t>(std::ranges::count_if(scene.observation.ranks, &RankState::is_observed));
  reading.observation = std::move(scene.observation);
  reading.dumps_used = files.size();
  reading.stood_for = stood_for.value_or(Duration::zero());
  reading.source = DumpSource::kRas;
  reading.is_judged = scene.is_timed;
  return verdicts;
}

}  // namespace aimaster::c4d
