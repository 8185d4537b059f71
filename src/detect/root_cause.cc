#include "detect/root_cause.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/count.h"
#include "detect/collective_progress.h"
#include "detect/conclusion.h"
#include "detect/launcher_words.h"
#include "detect/line_text.h"
#include "detect/outlived.h"
#include "detect/rank_cause.h"

namespace aimaster {
namespace {

constexpr size_t kConsequenceTextMaxBytes = 512;  // of a detail that is no root

// Rules by which a rank says only that it waited in vain.
constexpr std::array<std::string_view, 3> kWaitedInVain{"CollectiveTimeout", "CollectiveProgress", "GlooTimeout"};
constexpr std::string_view kCollectiveMismatch = "CollectiveMismatch";

// ---- order
// -----------------------------------------------------------------------------------------------------------

// Total, so that no result depends on the order in which failures were reported.
auto Key(const RankCause& cause) {
  const RankFailure& failure = *cause.failure;
  return std::tuple(!cause.time.has_value(), cause.time.value_or(Wall{}), cause.rule, failure.rank, failure.instance,
                    failure.attempt, failure.node, failure.exit ? ShellStatus(*failure.exit) : -1,
                    std::string_view(cause.message), failure.stopped_by_us, failure.clock_uncertainty);
}

void Sort(Causes& causes) {
  std::sort(causes.begin(), causes.end(), [](const RankCause& a, const RankCause& b) {
    if (a.standing != b.standing) return a.standing < b.standing;
    return Key(a) < Key(b);
  });
}

// Those of the candidates that no other one surely preceded. On one node one clock counts, and it is exact; over nodes
// times are as good as their uncertainty; who has no time may have been the first.
std::vector<const RankCause*> PossiblyFirst(std::span<const RankCause> candidates) {
  std::optional<Wall> surely_by;  // by then at least one had failed, on any node
  std::map<NodeIndex, Wall> first_on_node;
  for (const RankCause& cause : candidates) {
    if (!cause.time) continue;
    const Wall latest = *cause.time + cause.failure->clock_uncertainty;
    surely_by = surely_by ? std::min(*surely_by, latest) : latest;
    const auto [first, is_new] = first_on_node.emplace(cause.failure->node, *cause.time);
    if (!is_new) first->second = std::min(first->second, *cause.time);
  }
  std::vector<const RankCause*> first;
  for (const RankCause& cause : candidates) {
    const RankFailure& failure = *cause.failure;
    const bool may_be = !cause.time || (*cause.time == first_on_node.at(failure.node) &&
                                        *cause.time + -failure.clock_uncertainty <= *surely_by);
    if (may_be) first.push_back(&cause);
  }
  return first;
}

// causes is sorted; the candidates are those of the greatest standing.
std::span<const RankCause> Candidates(const Causes& causes) {
  const auto end = std::find_if(causes.begin(), causes.end(),
                                [&](const RankCause& cause) { return cause.standing != causes.front().standing; });
  return {causes.data(), static_cast<size_t>(end - causes.begin())};
}

// Of ranks that speak in one log, without times.
bool IsOneLog(std::span<const RankCause* const> causes) {
  return std::all_of(causes.begin(), causes.end(), [&](const RankCause* cause) {
    return !cause->time && cause->line && causes.front()->line && cause->line->file == causes.front()->line->file;
  });
}

// How a launcher counts up its dead at the end, in an order of its own.
bool IsSummary(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  const std::string_view text = line.substr(begin == std::string_view::npos ? line.size() : begin);
  return text.starts_with("exitcode ") || text.starts_with("traceback ");
}

const RankCause& RootOf(const Causes& causes, const RuleTable& rules, const LogView& log) {
  const std::vector<const RankCause*> first = PossiblyFirst(Candidates(causes));
  if (log.name_of && IsOneLog(first)) {
    // Who speaks first was first; but what speaks against the machine explains what programs say about it before.
    const auto key = [&](const RankCause& cause) {
      const bool is_summary = IsSummary(cause.line->line);
      return std::tuple(!rules.rule(cause.rule).node_suspect, is_summary, is_summary ? 0 : cause.line->offset,
                        cause.rule, cause.line->offset);
    };
    return **std::min_element(first.begin(), first.end(),
                              [&](const RankCause* a, const RankCause* b) { return key(*a) < key(*b); });
  }
  // Where times can't decide, the strength of the evidence does: the order of the rules. Then the time, then the rank.
  return **std::min_element(first.begin(), first.end(), [](const RankCause* a, const RankCause* b) {
    if (a->rule != b->rule) return a->rule < b->rule;
    return Key(*a) < Key(*b);
  });
}

// ---- all alike
// -------------------------------------------------------------------------------------------------------

// The beginning of a message without its numbers: ranks, devices and addresses differ where the words are the same, and
// the end of a long text may have been cut off to keep it.
std::string Words(std::string_view message) {
  std::string words;
  for (char c : message.substr(0, kAlikeTextMaxBytes)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) words += c;
    if (digit && !words.ends_with('#')) words += '#';
  }
  return words;
}

// In a log, lines that are nobody's have a number behind those of the job.
bool IsOfJob(const RankCause& cause, uint32_t ranks_of_job) { return Value(cause.failure->rank) < ranks_of_job; }

bool AllAlike(const Causes& causes, uint32_t ranks_alike, uint32_t ranks_of_job, const RuleTable& rules) {
  const auto first_of_job =
      std::ranges::find_if(causes, [&](const RankCause& cause) { return IsOfJob(cause, ranks_of_job); });
  if (first_of_job == causes.end()) return false;
  const RankCause& one = *first_of_job;
  if (ranks_alike < 2 || one.standing > Standing::kConsequence || rules.rule(one.rule).node_suspect) return false;
  std::set<Rank> ranks;
  std::optional<Wall> first, last;
  const std::string words = Words(one.message);
  const auto status = [](const RankCause& cause) {
    return cause.failure->exit ? std::optional(ShellStatus(*cause.failure->exit)) : std::nullopt;
  };
  for (const RankCause& cause : causes) {
    if (cause.standing != one.standing || cause.rule != one.rule || status(cause) != status(one)) return false;
    if (!IsOfJob(cause, ranks_of_job)) continue;  // another line of the same accident, in other words
    if (cause.time.has_value() != one.time.has_value() || Words(cause.message) != words) return false;
    ranks.insert(cause.failure->rank);
    if (!cause.time) continue;
    first = first ? std::min(*first, *cause.time) : cause.time;
    last = last ? std::max(*last, *cause.time) : cause.time;
  }
  return ranks.size() == ranks_alike && (!first || *last - *first <= kAllAlikeWithin);
}

// ---- a collective that did not end
// -----------------------------------------------------------------------------------------

bool SaysSomethingOfItself(const RankCause& cause) { return cause.line || cause.standing == Standing::kOwnFault; }

// Ranks that may be what the others wait for: of them nothing is known but that they, at most, were stopped.
std::vector<Rank> SilentRanks(const Causes& causes, const std::set<Rank>& reporters, uint32_t ranks_of_job) {
  std::set<Rank> silent, failed;
  for (const RankCause& cause : causes) {
    if (IsOfJob(cause, ranks_of_job)) failed.insert(cause.failure->rank);
    if (!SaysSomethingOfItself(cause) && !reporters.contains(cause.failure->rank)) silent.insert(cause.failure->rank);
  }
  for (const RankCause& cause : causes) {
    if (SaysSomethingOfItself(cause)) silent.erase(cause.failure->rank);
  }
  // Where most are silent none stands out.
  if (ranks_of_job > failed.size() && ranks_of_job - failed.size() <= reporters.size()) {
    for (uint32_t rank = 0; rank < ranks_of_job; ++rank) {
      if (!failed.contains(Rank{rank})) silent.insert(Rank{rank});
    }
  }
  return {silent.begin(), silent.end()};
}

// Who kept the others waiting, where to have waited in vain is all that the strongest candidate says.
std::optional<OddRanks> OddRanksOf(const RankCause& strongest, const Causes& causes, uint32_t ranks_of_job,
                                   const RuleTable& rules) {
  const std::string& code = rules.rule(strongest.rule).code;
  if (std::find(kWaitedInVain.begin(), kWaitedInVain.end(), code) == kWaitedInVain.end()) return std::nullopt;
  std::vector<CollectiveReport> reports;
  std::set<Rank> reporters;
  for (const RankCause& cause : causes) {
    for (CollectiveReport& report : ReadCollectiveReports(cause.failure->rank, cause.failure->matches)) {
      reporters.insert(report.rank);
      reports.push_back(std::move(report));
    }
  }
  return FindOddRanks(reports, SilentRanks(causes, reporters, ranks_of_job), ranks_of_job);
}

// Of a log: the only rank that says nothing of a failure, where all others say no more than that they lost a peer. It
// is the one that they lost.
std::optional<OddRanks> LostWithoutAWord(const RankCause& strongest, const Causes& causes, const LogView& log) {
  if (strongest.standing != Standing::kConsequence) return std::nullopt;
  std::vector<Rank> silent;
  for (const RankCause& cause : causes) {
    if (cause.standing == Standing::kSilent) silent.push_back(cause.failure->rank);
  }
  if (silent.size() != 1) return std::nullopt;
  const size_t others = causes.size() - 1;
  return OddRanks{
      .how = OddRanks::How::kSilent,
      .ranks = silent,
      .words = log.name_of(silent.front()) + " says nothing while " + Count(others, "other rank") + " lost a peer"};
}

// ---- what is concluded
// ---------------------------------------------------------------------------------------------------

Conclusion Conclude(const Causes& causes, uint32_t ranks_of_job, const RuleTable& rules, const PlaceOfRank& place_of,
                    const LogView& log) {
  const RankCause& strongest = RootOf(causes, rules, log);
  Conclusion conclusion{.witness = &strongest, .rule = strongest.rule};
  conclusion.odd = OddRanksOf(strongest, causes, ranks_of_job, rules);
  if (!conclusion.odd && log.name_of) conclusion.odd = LostWithoutAWord(strongest, causes, log);
  if (!conclusion.odd) {
    conclusion.alike = AllAlike(causes, log.ranks_alike, ranks_of_job, rules);
    if (!conclusion.alike) conclusion.blamed = &strongest;
  } else {
    if (conclusion.odd->how == OddRanks::How::kDifferent) {
      conclusion.rule = rules.Find(kCollectiveMismatch).value_or(strongest.rule);
    }
    const std::vector<Rank>& ranks = conclusion.odd->ranks;
    if (ranks.empty()) return conclusion;
    const auto found = std::find_if(causes.begin(), causes.end(),
                                    [&](const RankCause& cause) { return cause.failure->rank == ranks.front(); });
    if (found != causes.end()) {
      conclusion.blamed = &*found;
    } else if (const auto place = place_of ? place_of(ranks.front()) : std::nullopt) {
      conclusion.blamed_rank = ranks.front();
      conclusion.blamed_place = place;
    } else {
      conclusion.blamed = &strongest;
    }
  }
  if (conclusion.blamed) conclusion.blamed_rank = conclusion.blamed->failure->rank;
  return conclusion;
}

std::vector<FailureDetail> Details(const Conclusion& conclusion, const Judgement& judgement, const Causes& causes,
                                   const RuleTable& rules) {
  std::vector<FailureDetail> details;
  const bool nobody = !judgement.root_rank.has_value();
  if (conclusion.blamed_place) {  // the one that kept the others waiting has not failed itself
    details.push_back({.rank = *conclusion.blamed_rank,
                       .instance = conclusion.blamed_place->instance,
                       .node = conclusion.blamed_place->node,
                       .is_root = true,
                       .error_code = 0,
                       .fault = judgement.fault,
                       .message = judgement.message,
                       .source = judgement.source});
  }
  const auto add = [&](const RankCause& cause) {
    if (details.size() == kDetailsMax) return;
    const bool is_root = nobody || &cause == conclusion.blamed;
    const bool is_odd = is_root && conclusion.odd;
    const RankFailure& failure = *cause.failure;
    details.push_back(
        {.rank = failure.rank,
         .instance = failure.instance,
         .node = failure.node,
         .is_root = is_root,
         .error_code = failure.exit ? ShellStatus(*failure.exit) : 0,
         .fault = is_odd ? judgement.fault : rules.rule(cause.rule).code,
         .message = is_root && !nobody ? judgement.message : OneLine(cause.message, kConsequenceTextMaxBytes),
         .source = cause.source,
         .mpi_rank = failure.mpi_rank ? std::optional(failure.mpi_rank->rank) : std::nullopt});
  };
  const RankCause& first = conclusion.blamed ? *conclusion.blamed : *conclusion.witness;
  add(first);
  for (const RankCause& cause : causes) {
    if (&cause != &first) add(cause);
  }
  return details;
}

}  // namespace

RootCause FindRootCause(std::span<const RankFailure> failures, uint32_t ranks_of_job, const RuleTable& rules,
                        const PlaceOfRank& place_of, const LogView& log) {
  CHECK(!failures.empty());
  Causes causes;
  causes.reserve(failures.size());
  const bool launcher_followed = LauncherFollowed(failures);
  for (const RankFailure& failure : failures) {
    causes.push_back(CauseOf(failure, rules));
    const bool followed = failure.is_launcher && !failure.mpi_rank && launcher_followed;
    if (followed) causes.back().standing = std::max(causes.back().standing, Standing::kConsequence);
  }
  Sort(causes);
  const Conclusion conclusion = Conclude(causes, ranks_of_job, rules, place_of, log);
  const RankCause& witness = *conclusion.witness;
  const Rule& rule = rules.rule(conclusion.rule);
  const RankFailure& failure = *(conclusion.blamed ? conclusion.blamed : conclusion.witness)->failure;

  Judgement judgement;
  judgement.root_rank = conclusion.blamed_rank;
  judgement.root_instance = conclusion.blamed_place ? conclusion.blamed_place->instance : failure.instance;
  judgement.root_node = conclusion.blamed_place ? conclusion.blamed_place->node : failure.node;
  if (failure.exit) judgement.error_code = ShellStatus(*failure.exit);
  judgement.fault = rule.code;
  judgement.category = Name(rule.category);
  judgement.message = conclusion.odd ? OneLine(conclusion.odd->words, kErrorTextMaxBytes) : witness.message;
  judgement.source = witness.source;
  judgement.retryable = rule.retryable;
  judgement.severity = rule.severity;
  judgement.node_suspect = rule.node_suspect;
  judgement.address_in_use = rule.code == kAddressInUseCode;
  judgement.never_started = !failure.exec_error.empty() && !IsWantOfResources(failure.exec_errno);
  Chain chain = ReasonsOf(conclusion, causes, rules, log);
  judgement.reasons = std::move(chain.reasons);
  judgement.details = Details(conclusion, judgement, causes, rules);
  judgement.failed_ranks = static_cast<uint32_t>(failures.size());
  return {.judgement = std::move(judgement),
          .about_cause = chain.about_cause,
          .all_alike = conclusion.alike,
          .rule = witness.rule,
          .line = witness.line,
          .teller = witness.failure,
          .has_own_fault = witness.standing == Standing::kOwnFault};
}

Judgement Judge(std::span<const RankFailure> failures, uint32_t ranks_of_job, const RuleTable& rules,
                const PlaceOfRank& place_of) {
  std::vector<RankFailure> attributed;
  if (std::ranges::any_of(failures, &RankFailure::is_launcher)) {
    attributed = AttributeLauncherOutput({failures.begin(), failures.end()});
    failures = attributed;
  }
  std::vector<std::string> outlived;
  if (std::ranges::any_of(failures, [](const RankFailure& failure) { return SaysItWentOn(failure.matches); })) {
    if (attributed.empty()) attributed.assign(failures.begin(), failures.end());
    outlived = SetAsideOutlived(attributed, rules);
    failures = attributed;
  }
  Judgement judgement = FindRootCause(failures, ranks_of_job, rules, place_of, {ranks_of_job, {}}).judgement;
  std::ranges::move(outlived, std::back_inserter(judgement.reasons));
  return judgement;
}

}  // namespace aimaster
