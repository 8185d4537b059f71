#include "c4d/dump_collection.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "c4d/dump_observation.h"
#include "c4d/limits.h"
#include "core/count.h"
#include "core/fnv1a.h"

namespace aimaster::c4d {
namespace {

std::string RankWords(Rank rank) { return "rank " + std::to_string(Value(rank)); }

}  // namespace

void DumpCollection::Add(std::string file, std::string_view bytes) {
  const Result<FlightRecorderDump> dump = ReadFlightRecorderDump(bytes);
  if (!dump) return LeaveOut(std::move(file), dump.error().message);
  if (dump->is_empty()) {
    const std::string why = dump->is_whole ? "recorded nothing; was the recorder on (TORCH_NCCL_TRACE_BUFFER_SIZE)?"
                                           : "holds nothing that can be used: " + dump->trouble;
    return LeaveOut(std::move(file), why);
  }
  const Result<Rank> rank = RankOf(file, *dump);
  if (!rank) return LeaveOut(std::move(file), rank.error().message);
  if (groups_.is_full()) return LeaveOut(std::move(file), "is one too many: the groups before it are too large");
  RankDump made = MakeRankDump(std::move(file), *rank, *dump, groups_);
  made.digest = Fnv1a(bytes);
  dumps_.push_back(std::move(made));
}

void DumpCollection::LeaveOut(std::string file, std::string reason) {
  notes_.push_back({.file = std::move(file), .reason = std::move(reason)});
}

// The dumps of most ranks agree on who belongs to the job.
void DumpCollection::LeaveOutOtherJobs() {
  std::map<uint32_t, size_t> votes;
  for (const RankDump& dump : dumps_) {
    if (dump.world_group && !groups_.groups()[*dump.world_group].members.empty()) ++votes[*dump.world_group];
  }
  if (votes.size() < 2) return;
  const auto best = std::ranges::max_element(
      votes, {}, [&](const auto& vote) { return std::pair(vote.second, groups_.groups()[vote.first].members.size()); });
  const auto size = [&](uint32_t group) { return groups_.groups()[group].members.size(); };
  std::erase_if(dumps_, [&](const RankDump& dump) {
    const bool is_other =
        dump.world_group && *dump.world_group != best->first && !groups_.groups()[*dump.world_group].members.empty();
    if (is_other) {
      LeaveOut(dump.file, "is of another job: its world of " + Count(size(*dump.world_group), "rank") +
                              " is not that of most dumps, which has " + Count(size(best->first), "rank"));
    }
    return is_other;
  });
}

void DumpCollection::KeepOnePerRank() {
  std::ranges::sort(dumps_, [](const RankDump& a, const RankDump& b) {
    return std::tuple(a.rank, !a.is_whole, -a.newest_ns, std::string_view(a.file)) <
           std::tuple(b.rank, !b.is_whole, -b.newest_ns, std::string_view(b.file));
  });
  const RankDump* kept = nullptr;
  std::vector<RankDump> all = std::move(dumps_);
  dumps_.clear();
  for (RankDump& dump : all) {
    if (kept == nullptr || kept->rank != dump.rank) {
      dumps_.push_back(std::move(dump));
      kept = &dumps_.back();
    } else if (dump.digest == kept->digest) {
      LeaveOut(dump.file, "is the same as " + kept->file);
    } else {
      LeaveOut(dump.file, "is another dump of " + RankWords(dump.rank) + ", and " + kept->file +
                              (kept->is_whole && !dump.is_whole ? " is whole" : " is newer, or as new"));
    }
  }
}

void DumpCollection::NoteWhatIsMissing() {
  const int64_t middle_ns = MiddleNewest(dumps_);
  for (const RankDump& dump : dumps_) {
    if (!dump.is_whole) {
      const std::string why = dump.trouble.empty() ? "says nothing of open operations" : dump.trouble.substr(3);
      notes_.push_back(
          {.file = dump.file,
           .reason = why + ", so of " + RankWords(dump.rank) + " counts what it says, and not what it lacks",
           .is_used = true});
    }
    const Duration apart{dump.newest_ns == 0 ? 0 : std::abs(dump.newest_ns - middle_ns)};
    if (apart > kClocksApartMax) {
      notes_.push_back({.file = dump.file,
                        .reason = "is " + FormatDuration(apart) + (dump.newest_ns < middle_ns ? " older" : " newer") +
                                  " than most: the clock of " + RankWords(dump.rank) +
                                  " is wrong, or it is of another run and should be removed",
                        .is_used = true});
    }
  }
}

DumpReading DumpCollection::Take(Duration stood_for) {
  LeaveOutOtherJobs();
  KeepOnePerRank();
  NoteWhatIsMissing();
  std::ranges::sort(notes_, {}, [](const DumpNote& note) {
    return std::tuple(std::string_view(note.file), note.is_used, std::string_view(note.reason));
  });
  DumpReading reading{.observation = MakeObservation(dumps_, groups_, stood_for),
                      .notes = std::move(notes_),
                      .dumps_used = dumps_.size(),
                      .stood_for = stood_for};
  reading.ranks_seen = static_cast<size_t>(std::ranges::count_if(dumps_, &RankDump::is_whole));
  if (const int64_t middle_ns = MiddleNewest(dumps_); middle_ns != 0) reading.last_record = Wall{Duration(middle_ns)};
  return reading;
}

}  // namespace aimaster::c4d
