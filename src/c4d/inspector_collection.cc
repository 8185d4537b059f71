#include "c4d/inspector_collection.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "c4d/analysis_limits.h"
#include "c4d/hang_words.h"
#include "c4d/job_ranks.h"
#include "c4d/slow_replay.h"
#include "core/count.h"

namespace aimaster::c4d {
namespace {

constexpr size_t kRecordsMax = 8'000'000;  // of all logs
constexpr uint64_t kKinds = static_cast<uint64_t>(Function::kOtherCollective) + 1;
constexpr uint64_t kUntoldOneIn = 10;  // of whose collectives more are not told is not accused

constexpr std::string_view kSmallOnes =
    "What is smaller than NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES (8 KiB) is not recorded: who waits in that for somebody "
    "else seems late itself.";

// More of the numbers of one kind are missing than may be by chance.
bool HasGaps(const InspectorLog& log) {
  struct Numbers {
    uint64_t count = 0, least = UINT64_MAX, most = 0;
  };
  std::map<std::pair<uint32_t, Function>, Numbers> of;
  for (const InspectorRecord& record : log.records) {
    if (IsPointToPoint(record.function)) continue;
    Numbers& numbers = of[{record.group, record.function}];
    ++numbers.count;
    numbers.least = std::min(numbers.least, record.sequence);
    numbers.most = std::max(numbers.most, record.sequence);
  }
  return std::ranges::any_of(of, [](const auto& entry) {
    const uint64_t all = entry.second.most - entry.second.least + 1;
    return all > entry.second.count && all - entry.second.count > all / kUntoldOneIn;
  });
}

// Of the process of each log one rank, of its communicators those of the job, and of its lines operations.
class InspectorJudge {
 public:
  // By process.
  InspectorJudge(const std::vector<InspectorFile>& logs, std::vector<DumpNote>& notes) : notes_(notes) {
    for (const InspectorFile& one : logs) {
      if (!used_.empty() && used_.back()->log.process == one.log.process) {
        Note(one.file, "is of the same process as " + used_.back()->file, false);
      } else {
        used_.push_back(&one);
      }
    }
  }

  InspectorFindings Judge() && {
    SeatAll();
    for (const InspectorFile* one : used_) Hear(*one, ranks_.of.at(one->log.process));
    std::ranges::sort(findings_.seen);
    SlowReplay replay = ReplaySlowness(std::move(operations_), findings_.communicators);
    findings_.is_judged = replay.is_enough;
    NoteWhatIsLacking(replay);
    for (Verdict& verdict : replay.verdicts) Tell(std::move(verdict));
    return std::move(findings_);
  }

 private:
  using GroupKey = std::pair<std::string, uint32_t>;  // id and size

  void Note(const std::string& file, std::string reason, bool is_used = true) {
    notes_.push_back({.file = file, .reason = std::move(reason), .is_used = is_used});
  }

  void SeatAll() {
    std::map<GroupKey, SeatedGroup> seated;
    for (const InspectorFile* one : used_) {
      for (const InspectorGroup& group : one->log.groups) {
        SeatedGroup& seats = seated[{group.id, group.size}];
        seats.size = group.size;
        seats.seats.emplace_back(group.position, one->log.process);
      }
    }
    std::vector<SeatedGroup> groups;
    for (const auto& [key, group] : seated) {
      numbers_.emplace(key, static_cast<uint32_t>(groups.size()));
      groups.push_back(group);
    }
    ranks_ = NumberRanks(groups);
    findings_.ranks = ranks_.count;
    findings_.is_numbered = ranks_.is_numbered;
    for (const auto& [key, group] : seated) {
      std::set<Rank> members;
      for (const auto& [_, process] : group.seats) members.insert(ranks_.of.at(process));
      findings_.communicators.push_back(
          {.name = key.first, .description = {}, .members = {members.begin(), members.end()}});
    }
  }

  void Hear(const InspectorFile& one, Rank rank) {
    const InspectorLog& log = one.log;
    findings_.seen.push_back(rank);
    processes_.emplace(rank, log.process);
    if (log.lines_left_out > 0) Note(one.file, "has " + Count(log.lines_left_out, "line") + " that can't be used");
    if (log.lines_without_device > 0) {
      Note(one.file, "has " + Count(log.lines_without_device, "operation") + " without the time of a device, left out");
    }
    if (HasGaps(log)) {
      untold_.insert(rank);
      Note(one.file, "lacks more than a tenth of the collectives, by their numbers, so " + RankText(Value(rank)) +
                         " is not accused of being late: set NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=0, and a larger "
                         "NCCL_INSPECTOR_DUMP_COLL_RING_SIZE");
    }
    for (const InspectorRecord& record : log.records) {
      const InspectorGroup& group = log.groups[record.group];
      if (group.size < 2) continue;
      // Kinds are numbered by themselves.
      const uint64_t sequence = record.sequence * kKinds + static_cast<uint64_t>(record.function);
      operations_.push_back({.operation = {.communicator = numbers_.at({group.id, group.size}),
                                           .sequence = sequence,
                                           .rank = rank,
                                           .members = group.size,
                                           .function = record.function,
                                           .bytes = record.bytes,
                                           .duration = record.duration},
                             .written = record.written});
    }
  }

  void NoteWhatIsLacking(const SlowReplay& replay) {
    const std::string& first = used_.front()->file;
    if (!replay.is_enough) {
      Note(first, "and the other logs tell too little to judge who is slow: they fill " +
                      Count(replay.windows, "window") + " of " + FormatDuration(replay.window) +
                      ", and five are needed");
    }
    if (!ranks_.is_numbered) {
      Note(first,
           "and the other logs name no communicator of all processes: the numbers of ranks are not those of the job");
    }
  }

  void Tell(Verdict verdict) {
    const bool is_late = verdict.kind == VerdictKind::kRankNonCommSlow;
    if (is_late && std::ranges::any_of(verdict.ranks, [&](Rank rank) { return untold_.contains(rank); })) return;
    if (is_late) verdict.evidence.emplace_back(kSmallOnes);
    for (size_t i = 0; i < std::min(verdict.ranks.size(), kRanksWithEvidenceMax); ++i) {
      const auto process = processes_.find(verdict.ranks[i]);
      if (process == processes_.end()) continue;
      verdict.evidence.push_back(Capital(RankText(Value(verdict.ranks[i]))) + " is " + process->second + ".");
    }
    findings_.verdicts.push_back(std::move(verdict));
  }

  std::vector<DumpNote>& notes_;
  std::vector<const InspectorFile*> used_;
  std::map<GroupKey, uint32_t> numbers_;  // of communicators
  JobRanks ranks_;
  std::map<Rank, std::string> processes_;
  std::set<Rank> untold_;
  std::vector<LoggedOperation> operations_;
  InspectorFindings findings_;
};

}  // namespace

void InspectorCollection::Add(std::string file, std::string_view bytes) {
  Result<InspectorLog> log = ReadInspectorLog(bytes, kRecordsMax - records_);
  if (!log) {
    notes_.push_back({.file = std::move(file), .reason = log.error().message});
    return;
  }
  records_ += log->records.size();
  logs_.push_back({.file = std::move(file), .log = std::move(*log)});
}

std::vector<DumpNote> InspectorCollection::TakeNotes() { return std::exchange(notes_, {}); }

void InspectorCollection::LeaveOut(const std::string& reason) {
  std::erase_if(notes_, [&](const DumpNote& note) {
    return std::ranges::any_of(logs_, [&](const InspectorFile& one) { return one.file == note.file; });
  });
  for (InspectorFile& one : logs_) notes_.push_back({.file = std::move(one.file), .reason = reason});
  logs_.clear();
}

InspectorFindings InspectorCollection::Judge() {
  std::ranges::sort(logs_, {}, [](const InspectorFile& one) {
    return std::tuple(std::string_view(one.log.process), std::string_view(one.file));
  });
  return InspectorJudge(logs_, notes_).Judge();
}

}  // namespace aimaster::c4d
