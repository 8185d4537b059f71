#include "detect/collective_progress.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace aimaster {
namespace {

constexpr size_t kRanksListed = 8;      // in a sentence
constexpr int64_t kFarApart = 8;        // groups of one kind that run one program are this close together at all times
constexpr size_t kAccusedRanksMax = 8;  // who accuses more says nothing

// ---- reading lines
// ---------------------------------------------------------------------------------------------------

std::optional<int64_t> NumberAt(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end != text.data() ? std::optional(number) : std::nullopt;
}

// What follows `label` up to one of `ends`.
std::optional<std::string_view> After(std::string_view line, std::string_view label, std::string_view ends) {
  const size_t at = line.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(at + label.size());
  return rest.substr(0, rest.find_first_of(ends));
}

std::optional<int64_t> NumberAfter(std::string_view line, std::initializer_list<std::string_view> labels) {
  for (std::string_view label : labels) {
    const size_t at = line.find(label);
    if (at == std::string_view::npos) continue;
    if (const auto number = NumberAt(line.substr(at + label.size()))) return number;
  }
  return std::nullopt;
}

// "[PG ID 11 PG GUID 119 Rank 1]", "[PG ID 0 PG GUID 0(default_pg) Rank 3]", "[PG 1 Rank 2]", "[PG 0 (default_pg) Rank
// 1]".
void ReadGroup(std::string_view line, CollectiveReport& report) {
  if (const auto name = After(line, "PG GUID ", " ]")) {
    report.group = *name;
    report.ordinal = NumberAfter(line, {"[PG ID "});
  } else if (const auto old = After(line, "[PG ", "]")) {
    const std::string_view name_and_rank = *old;
    report.ordinal = NumberAt(name_and_rank);
    report.group = name_and_rank.substr(0, name_and_rank.find(" Rank"));
  }
}

// "[0, 3] finished collective #7, but didn't join collective #8", "ranks [47] are the lagging ranks", "Rank 1 failed to
// pass monitoredBarrier in 30000 ms".
void ReadAccused(std::string_view line, CollectiveReport& report) {
  std::string_view list;
  size_t end = std::string_view::npos;
  for (std::string_view deed :
       {"] finished collective #", "] joined but didn't finish collective #", "] are the lagging ranks"}) {
    end = std::min(end, line.find(deed));
  }
  const size_t barrier = line.find(" failed to pass monitoredBarrier");
  if (end != std::string_view::npos) {
    const size_t begin = line.rfind('[', end);
    if (begin == std::string_view::npos) return;
    list = line.substr(begin + 1, end - begin - 1);
  } else if (barrier != std::string_view::npos) {
    const size_t begin = std::max(line.rfind("Rank ", barrier) + 1, line.rfind("Ranks ", barrier) + 1);
    if (begin == 0) return;
    list = line.substr(begin - 1, barrier - begin + 1);
    list.remove_prefix(std::min(list.find(' ') + 1, list.size()));
  }
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    const auto number = NumberAt(item.substr(std::min(item.find_first_not_of(' '), item.size())));
    if (number && *number >= 0 && *number < UINT32_MAX) report.accused.push_back(Rank{static_cast<uint32_t>(*number)});
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
}

std::optional<CollectiveReport> ReadLine(Rank rank, std::string_view line) {
  CollectiveReport report{.rank = rank};
  ReadGroup(line, report);
  ReadAccused(line, report);
  report.timed_out = NumberAfter(
      line, {"SeqNum=", "at work: ", "at work sequence id: ", "Timeout at NCCL work: ", "Timeout at HCCL work: "});
  report.last_enqueued =
      NumberAfter(line, {"ast enqueued work: ", "ast enqueued NCCL work: ", "ast enqueued HCCL work: "});
  if (const auto operation = After(line, "OpType=", ",)")) report.operation = *operation;
  report.elements_in = NumberAfter(line, {"NumelIn="});
  report.elements_out = NumberAfter(line, {"NumelOut="});
  if (!report.timed_out && !report.last_enqueued && report.accused.empty() && report.operation.empty()) return {};
  return report;
}

// A library tells of one operation in several lines, and only some of them name the group.
bool Continues(const CollectiveReport& known, const CollectiveReport& more) {
  const bool group = known.group.empty() || more.group.empty() || known.group == more.group;
  const bool number = !known.timed_out || !more.timed_out || known.timed_out == more.timed_out;
  return group && number && known.accused.empty() && more.accused.empty();
}

template <typename T>
void Fill(T& known, const T& more) {
  if (known == T{}) known = more;
}

void Join(CollectiveReport& known, const CollectiveReport& more) {
  Fill(known.group, more.group);
  Fill(known.ordinal, more.ordinal);
  Fill(known.timed_out, more.timed_out);
  Fill(known.last_enqueued, more.last_enqueued);
  Fill(known.operation, more.operation);
  Fill(known.elements_in, more.elements_in);
  Fill(known.elements_out, more.elements_out);
}

// ---- comparing
// -------------------------------------------------------------------------------------------------------

// Sends and receives are numbered by each rank for itself.
bool IsPointToPoint(const CollectiveReport& report) {
  for (std::string_view name : {"SEND", "RECV", "COALESCED"}) {
    if (report.operation.find(name) != std::string::npos) return true;
  }
  return false;
}

// Their sizes are the same on every rank.
bool IsEven(std::string_view operation) { return operation.starts_with("ALLREDUCE") || operation == "BROADCAST"; }

bool IsWholeJob(const CollectiveReport& report) {
  return report.group.empty() || report.group.find("default_pg") != std::string::npos || report.group == "0";
}

std::string Listed(std::span<const Rank> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < kRanksListed; ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(Value(ranks[i]));
  }
  if (ranks.size() > kRanksListed) text += " and " + std::to_string(ranks.size() - kRanksListed) + " more";
  return text;
}

std::string Operation(const CollectiveReport& report) {
  std::string text = "collective " + std::to_string(report.timed_out.value_or(0));
  if (!report.operation.empty()) text += " (" + report.operation + ")";
  if (!report.group.empty()) text += " of group " + report.group;
  return text;
}

// What a rank calls, as far as it has to be the same on all.
using Call = std::pair<std::string, std::pair<int64_t, int64_t>>;
std::string CallName(const Call& call) {
  std::string text = call.first;
  if (call.second.first >= 0) text += " of " + std::to_string(call.second.first) + " elements";
  return text;
}

// One report per rank of one group: the first operation that did not end there.
using Group = std::map<Rank, const CollectiveReport*>;

std::map<std::string, Group> Groups(std::span<const CollectiveReport> reports) {
  std::map<std::string, Group> groups;
  for (const CollectiveReport& report : reports) {
    if (IsPointToPoint(report) || (!report.timed_out && !report.last_enqueued)) continue;
    const CollectiveReport*& kept = groups[report.group][report.rank];
    const auto key = [](const CollectiveReport& each) {
      return std::pair(each.timed_out.value_or(INT64_MAX), std::string_view(each.operation));
    };
    if (!kept || key(report) < key(*kept)) kept = &report;
  }
  return groups;
}

// The number for which most of a group wait; the greater of two. None when nobody waits.
const CollectiveReport* Awaited(const Group& group) {
  std::map<int64_t, size_t> waiting;
  for (const auto& [rank, report] : group) {
    if (report->timed_out) ++waiting[*report->timed_out];
  }
  const auto most = std::max_element(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second, a.first) < std::pair(b.second, b.first);
  });
  if (most == waiting.end()) return nullptr;
  for (const auto& [rank, report] : group) {
    if (report->timed_out == most->first) return report;
  }
  return nullptr;
}

std::optional<OddRanks> Different(const Group& group, int64_t awaited) {
  std::map<Call, std::vector<Rank>> calls;
  for (const auto& [rank, report] : group) {
    if (report->timed_out != awaited || report->operation.empty()) continue;
    const bool even = IsEven(report->operation);
    const auto size = even ? std::pair(report->elements_in.value_or(-1), report->elements_out.value_or(-1))
                           : std::pair(int64_t{-1}, int64_t{-1});
    calls[{report->operation, size}].push_back(rank);
  }
  if (calls.size() < 2) return std::nullopt;
  const auto by_ranks = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  const auto few = std::min_element(calls.begin(), calls.end(), by_ranks);
  const auto most = std::max_element(calls.begin(), calls.end(), by_ranks);
  OddRanks odd{.how = OddRanks::How::kDifferent, .ranks = {}, .words = {}};
  if (few->second.size() < most->second.size()) odd.ranks = few->second;
  const auto& other = few == most ? *calls.rbegin() : *most;
  odd.words = Listed(few->second) + " called " + CallName(few->first) + " where " + Listed(other.second) + " called " +
              CallName(other.first) + ", at number " + std::to_string(awaited) +
              (group.begin()->second->group.empty() ? "" : " of group " + group.begin()->second->group);
  return odd;
}

// Ranks that themselves wait for different operations at different numbers of one group: somebody called one more, or
// one less. A rank that is only slow waits for the same as the others, or does not wait.
std::optional<OddRanks> OutOfStep(const Group& group, const CollectiveReport& awaited) {
  if (awaited.group.empty() || awaited.operation.empty()) return std::nullopt;
  OddRanks odd{.how = OddRanks::How::kDifferent, .ranks = {}, .words = {}};
  const CollectiveReport* other = nullptr;
  size_t waiting = 0;
  for (const auto& [rank, report] : group) {
    if (!report->timed_out || report->operation.empty()) continue;
    if (report->timed_out == awaited.timed_out) ++waiting;
    if (report->timed_out == awaited.timed_out || report->operation == awaited.operation) continue;
    if (!other) other = report;
    odd.ranks.push_back(rank);
  }
  if (!other) return std::nullopt;
  odd.words = Listed(odd.ranks) + (odd.ranks.size() == 1 ? " waits" : " wait") + " for " + Operation(*other) +
              " where " + std::to_string(waiting) + (waiting == 1 ? " other waits for " : " others wait for ") +
              Operation(awaited);
  if (odd.ranks.size() >= waiting) odd.ranks.clear();
  return odd;
}

std::optional<OddRanks> Behind(const Group& group, const CollectiveReport& awaited) {
  std::vector<std::pair<int64_t, Rank>> behind;
  size_t waiting = 0;
  for (const auto& [rank, report] : group) {
    const int64_t reached = report->timed_out.value_or(report->last_enqueued.value_or(0));
    // Old libraries don't tell the group: what calls something else may be in another one.
    const bool comparable = !report->group.empty() || report->operation == awaited.operation;
    if (comparable && reached < *awaited.timed_out) behind.emplace_back(reached, rank);
    if (report->timed_out == awaited.timed_out) ++waiting;
  }
  if (behind.empty() || behind.size() > waiting) return std::nullopt;
  std::sort(behind.begin(), behind.end());
  OddRanks odd{.how = OddRanks::How::kBehind, .ranks = {}, .words = {}};
  for (const auto& [reached, rank] : behind) odd.ranks.push_back(rank);
  odd.words = Listed(odd.ranks) + (odd.ranks.size() == 1 ? " is" : " are") + " behind, at " +
              std::to_string(behind.front().first) + ", while " + std::to_string(waiting) +
              (waiting == 1 ? " rank waits" : " ranks wait") + " for " + Operation(awaited);
  return odd;
}

std::optional<OddRanks> Named(std::span<const CollectiveReport> reports, uint32_t ranks_of_job) {
  std::map<Rank, size_t> accusers;
  std::set<Rank> waiting;
  for (const CollectiveReport& report : reports) {
    if (report.accused.empty()) waiting.insert(report.rank);
    for (Rank rank : std::set<Rank>(report.accused.begin(), report.accused.end())) ++accusers[rank];
  }
  if (accusers.empty() || accusers.size() > kAccusedRanksMax || 2 * accusers.size() > ranks_of_job) return std::nullopt;
  OddRanks odd{.how = OddRanks::How::kNamed, .ranks = {}, .words = {}};
  for (const auto& [rank, times] : accusers) {
    if (Value(rank) >= ranks_of_job) return std::nullopt;
    odd.ranks.push_back(rank);
  }
  odd.words = Listed(odd.ranks) + " did not come to a collective, as the other ranks say";
  return odd;
}

// Groups of one kind, one per slice of the job, run the same operations at about the same time.
std::optional<OddRanks> Diverged(const std::map<std::string, Group>& groups) {
  std::map<int64_t, const CollectiveReport*> first_of_kind;
  for (const auto& [name, group] : groups) {
    const CollectiveReport* report = Awaited(group);
    if (!report || !report->ordinal || name.empty()) continue;
    const auto [first, is_new] = first_of_kind.emplace(*report->ordinal, report);
    if (is_new) continue;
    const CollectiveReport& other = *first->second;
    const bool same_call = !report->operation.empty() && report->operation == other.operation;
    const int64_t apart = *report->timed_out - *other.timed_out;
    if (same_call || (apart <= kFarApart && apart >= -kFarApart)) continue;
    return OddRanks{.how = OddRanks::How::kDifferent,
                    .ranks = {},
                    .words = "the ranks don't run the same program: " + Operation(other) + " is waited for at rank " +
                             std::to_string(Value(other.rank)) + ", " + Operation(*report) + " at rank " +
                             std::to_string(Value(report->rank))};
  }
  return std::nullopt;
}

std::optional<OddRanks> Silent(const std::map<std::string, Group>& groups, std::span<const Rank> silent) {
  if (silent.empty()) return std::nullopt;
  for (const auto& [name, group] : groups) {
    const CollectiveReport* awaited = Awaited(group);
    if (!awaited || !IsWholeJob(*awaited)) continue;
    if (silent.size() > 1 && 4 * silent.size() > group.size()) continue;  // the others may only be slower to complain
    OddRanks odd{.how = OddRanks::How::kSilent, .ranks = {silent.begin(), silent.end()}, .words = {}};
    std::sort(odd.ranks.begin(), odd.ranks.end());
    odd.words = Listed(odd.ranks) + (odd.ranks.size() == 1 ? " says" : " say") + " nothing while " +
                std::to_string(group.size()) + (group.size() == 1 ? " rank waits" : " ranks wait") + " for " +
                Operation(*awaited);
    return odd;
  }
  return std::nullopt;
}

}  // namespace

std::vector<CollectiveReport> ReadCollectiveReports(Rank rank, std::span<const LineMatch> lines) {
  std::vector<CollectiveReport> reports;
  for (const LineMatch& match : lines) {
    const std::optional<CollectiveReport> report = ReadLine(rank, match.line);
    if (!report) continue;
    const auto known = std::find_if(reports.begin(), reports.end(),
                                    [&](const CollectiveReport& each) { return Continues(each, *report); });
    if (known == reports.end()) {
      reports.push_back(*report);
    } else {
      Join(*known, *report);
    }
  }
  return reports;
}

std::optional<OddRanks> FindOddRanks(std::span<const CollectiveReport> reports, std::span<const Rank> silent,
                                     uint32_t ranks_of_job) {
  const std::map<std::string, Group> groups = Groups(reports);
  // A wrong call first: ranks behind it, or missing, are what follows.
  for (const auto& [name, group] : groups) {
    const CollectiveReport* awaited = Awaited(group);
    if (!awaited) continue;
    if (auto odd = Different(group, *awaited->timed_out)) return odd;
  }
  for (const auto& [name, group] : groups) {
    const CollectiveReport* awaited = Awaited(group);
    if (!awaited) continue;
    if (auto odd = OutOfStep(group, *awaited)) return odd;
  }
  if (auto odd = Named(reports, ranks_of_job)) return odd;
  for (const auto& [name, group] : groups) {
    const CollectiveReport* awaited = Awaited(group);
    if (!awaited) continue;
    if (auto odd = Behind(group, *awaited)) return odd;
  }
  if (auto odd = Silent(groups, silent)) return odd;
  return Diverged(groups);
}

}  // namespace aimaster
