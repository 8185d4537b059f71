#include "detect/log_judge.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <utility>

#include "core/check.h"
#include "core/names.h"
#include "detect/collective_progress.h"
#include "detect/error_words.h"
#include "detect/outlived.h"
#include "detect/rank_cause.h"
#include "detect/root_cause.h"
#include "detect/torchrun_words.h"

namespace aimaster {
namespace {

constexpr Names<RetryLabel, 3> kLabels{{{RetryLabel::kRetryable, "retryable"},
                                        {RetryLabel::kNotRetryable, "not_retryable"},
                                        {RetryLabel::kAmbiguous, "ambiguous"}}};

constexpr uint32_t kRanksMax = 10'000'000;  // who is accused beyond that is no rank
constexpr std::string_view kJobName = "the whole job";

// The ranks of a log as failures. Whoever has no number gets one behind those of the job.
class Failures {
 public:
  explicit Failures(const std::vector<LogRank>& ranks) {
    for (const LogRank& rank : ranks) {
      if (!rank.number) continue;
      ranks_of_job_ = std::max(ranks_of_job_, *rank.number + 1);
      // One that others accuse is of the job, though its log may be missing.
      for (const CollectiveReport& report : ReadCollectiveReports(Rank{*rank.number}, rank.matches)) {
        for (Rank accused : report.accused) {
          if (Value(accused) < kRanksMax) ranks_of_job_ = std::max(ranks_of_job_, Value(accused) + 1);
        }
      }
    }
    next_ = ranks_of_job_;
    for (const LogRank& rank : ranks) {
      Add(rank.number, rank.name);
      list_.back().matches = rank.matches;
      // By its own measure: how much it went on after a line tells how old the line is.
      for (LineMatch& match : list_.back().matches) match.offset /= rank.voices;
      list_.back().last_error_line = rank.last_error_line;
      is_nobody_[list_.back().rank] = rank.is_nobody;
      if (!rank.is_nobody) ++speakers_;
    }
    if (ranks_of_job_ == 0) ranks_of_job_ = static_cast<uint32_t>(list_.size());
  }

  RankFailure& Add(std::optional<uint32_t> number, std::string name) {
    const Rank rank{number ? *number : next_++};
    names_[rank] = std::move(name);
    if (number) numbers_[rank] = *number;
    list_.push_back({.rank = rank, .instance = InstanceIndex{Value(rank)}, .node = {}});
    return list_.back();
  }

  RootCause Find(const RuleTable& rules) const { return FindIn(list_, rules); }

  // Among those that have a name alone; none when nobody has.
  std::optional<RootCause> FindAmongSpeakers(const RuleTable& rules) {
    speaking_.clear();
    for (const RankFailure& failure : list_) {
      if (!IsNobody(failure.rank)) speaking_.push_back(failure);
    }
    return speaking_.empty() ? std::nullopt : std::optional(FindIn(speaking_, rules));
  }

  bool IsNobody(Rank rank) const {
    const auto found = is_nobody_.find(rank);
    return found != is_nobody_.end() && found->second;
  }
  // Where one alone has a name, lines without one are most likely his.
  std::optional<Rank> OnlySpeaker() const {
    std::optional<Rank> only;
    for (const RankFailure& failure : list_) {
      if (IsNobody(failure.rank)) continue;
      if (only) return std::nullopt;
      only = failure.rank;
    }
    return only;
  }
  std::optional<uint32_t> NumberOf(Rank rank) const {
    if (const auto known = numbers_.find(rank); known != numbers_.end()) return known->second;
    // One that is not in the log, and that others name.
    return names_.contains(rank) ? std::nullopt : std::optional(Value(rank));
  }
  std::string NameOf(Rank rank) const {
    const auto known = names_.find(rank);
    return known == names_.end() ? "rank " + std::to_string(Value(rank)) : known->second;
  }
  std::vector<RankFailure>& list() { return list_; }

 private:
  RootCause FindIn(const std::vector<RankFailure>& failures, const RuleTable& rules) const {
    const auto anywhere = [](Rank rank) { return std::optional(RankPlace{InstanceIndex{Value(rank)}, {}}); };
    return FindRootCause(failures, ranks_of_job_, rules, anywhere,
                         {.ranks_alike = speakers_, .name_of = [this](Rank rank) { return NameOf(rank); }});
  }

  std::vector<RankFailure> list_, speaking_;
  std::map<Rank, std::string> names_;
  std::map<Rank, uint32_t> numbers_;
  std::map<Rank, bool> is_nobody_;
  uint32_t ranks_of_job_ = 0;
  uint32_t next_ = 0;
  uint32_t speakers_ = 0;
};

// What the exit status of a whole job says by itself, without a rank's.
bool SaysSomething(const RankExit& exit, const RuleTable& rules) {
  const Rule& rule = rules.rule(rules.ForEnding(RankFailure{.exit = exit}));
  return !IsSuccess(exit) && rule.code != kUnknownErrorCode &&
         std::find(rule.endings.begin(), rule.endings.end(), Ending::kAnyExitCode) == rule.endings.end();
}

RetryLabel LabelOf(const Rule& rule, bool ending_is_known) {
  const bool unknown = rule.fault_class == FaultClass::kUnknown;
  if (rule.retryable != Retryable::kNo) return unknown ? RetryLabel::kAmbiguous : RetryLabel::kRetryable;
  // A failure of which nothing is known is not tried again; a log of which nothing is known need not be of a failure.
  return unknown && !ending_is_known ? RetryLabel::kAmbiguous : RetryLabel::kNotRetryable;
}

// The line with its true place.
LineMatch OriginalOf(const std::vector<LogRank>& ranks, const RankFailure& teller, const LineMatch& line,
                     const std::vector<RankFailure>& failures) {
  const auto rank = static_cast<size_t>(&teller - failures.data());
  const auto match = static_cast<size_t>(&line - teller.matches.data());
  return ranks[rank].matches[match];
}

// Lines of one kind that are nobody's and name the ranks that they are about.
struct NamedRanks {
  std::optional<uint32_t> only;
  bool several = false;
};
template <typename IsTelling>
NamedRanks RanksNamedBy(const RankFailure& teller, IsTelling&& is_telling) {
  NamedRanks named;
  for (const LineMatch& match : teller.matches) {
    if (!is_telling(match.rule)) continue;
    const std::optional<uint32_t> rank = RankNamedIn(match.line);
    if (!rank) continue;
    if (named.only && *named.only != *rank) named.several = true;
    if (!named.only) named.only = rank;
  }
  return named;
}

// "failed (exitcode: -9) local_rank: 5 (pid: 486) of binary: …" has the number on its node; the table below it has the
// one of the job, and the same process.
std::optional<Rank> RankOfProcess(std::string_view line, Failures& failures) {
  constexpr std::string_view kProcess = "(pid: ";
  if (!IsTorchrunWord(line)) return std::nullopt;
  const size_t begin = line.find(kProcess);
  const size_t end = begin == std::string_view::npos ? begin : line.find(')', begin);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view process = line.substr(begin, end + 1 - begin);
  for (const RankFailure& failure : failures.list()) {
    if (!failures.NumberOf(failure.rank)) continue;
    for (const LineMatch& match : failure.matches) {
      if (IsTorchrunWord(match.line) && match.line.find(process) != std::string::npos) return failure.rank;
    }
  }
  return std::nullopt;
}

// What became of the exit status of the whole; empty where it counts.
std::string TakeExit(const RankExit& exit, Failures& failures, const RuleTable& rules) {
  if (failures.list().size() == 1) {
    failures.list().front().exit = exit;
    return "";
  }
  const bool somebody_tells = failures.Find(rules).has_own_fault;
  if (somebody_tells || !SaysSomething(exit, rules)) {
    return DescribeEnding(RankFailure{.exit = exit}) + " is how the job ended, not any one rank";
  }
  failures.Add(std::nullopt, std::string(kJobName)).exit = exit;
  return "";
}

struct Root {
  std::optional<uint32_t> rank;
  bool all = false;
  std::string name;  // empty: it has none
};

Root RootOf(const RootCause& found, Failures& failures, const RuleTable& rules) {
  if (!found.judgement.root_rank) return {.rank = {}, .all = found.all_alike, .name = ""};
  const Rank blamed = *found.judgement.root_rank;
  const auto as_root = [&](Rank rank) { return Root{failures.NumberOf(rank), false, failures.NameOf(rank)}; };
  if (failures.NumberOf(blamed)) return as_root(blamed);
  // A line that is nobody's may say whom it is about.
  if (found.line) {
    if (const auto rank = RankOfProcess(found.line->line, failures)) return as_root(*rank);
  }
  const Rule& rule = rules.rule(found.rule);
  NamedRanks named = RanksNamedBy(*found.teller, [&](const std::string& code) { return code == rule.code; });
  if (!named.only) {  // or a line that backs it up does
    named = RanksNamedBy(*found.teller, [&](const std::string& code) {
      const std::optional<RuleIndex> other = rules.Find(code);
      return other && rules.rule(*other).role == RuleRole::kConfirmation &&
             rules.rule(*other).category == rule.category;
    });
  }
  if (named.several) return {.rank = {}, .all = true, .name = ""};
  if (named.only) return {.rank = named.only, .all = false, .name = "rank " + std::to_string(*named.only)};
  if (!failures.IsNobody(blamed)) return failures.list().size() > 1 ? as_root(blamed) : Root{};
  if (const auto speaker = failures.OnlySpeaker()) return as_root(*speaker);
  // The kernel, say, tells of a broken device, and one rank's program that its device is broken.
  const std::optional<RootCause> speaking = failures.FindAmongSpeakers(rules);
  const bool has_own_fault = speaking && speaking->has_own_fault && speaking->judgement.root_rank;
  return has_own_fault ? as_root(*speaking->judgement.root_rank) : Root{};
}

}  // namespace

std::string_view Name(RetryLabel label) { return NameIn(kLabels, label); }

std::optional<RankExit> ParseExitCode(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < -64 || value > 255) return std::nullopt;
  RankExit exit;
  if (value < 0) {
    exit.signal = -value;
  } else {
    exit.code = value;
  }
  return exit;
}

LogJudgement JudgeLogs(const std::vector<LogRank>& ranks, const std::optional<RankExit>& exit, const RuleTable& rules) {
  CHECK(!ranks.empty());
  if (std::ranges::any_of(ranks, [](const LogRank& rank) { return SaysItWentOn(rank.matches); })) {
    std::vector<LogRank> lasting = ranks;
    std::vector<std::vector<LineMatch>*> matches;
    for (LogRank& rank : lasting) matches.push_back(&rank.matches);
    std::vector<std::string> outlived = SetAsideOutlived(matches, rules);
    LogJudgement judgement = JudgeLogs(lasting, exit, rules);
    std::ranges::move(outlived, std::back_inserter(judgement.reasons));
    return judgement;
  }
  Failures failures(ranks);
  const std::string job_exit = exit ? TakeExit(*exit, failures, rules) : "";
  const RootCause found = failures.Find(rules);
  const Judgement& judgement = found.judgement;
  const Rule& rule = rules.rule(*rules.Find(judgement.fault));
  const Root root = RootOf(found, failures, rules);

  LogJudgement result{.label = LabelOf(rule, found.teller->exit.has_value()),
                      .fault_class = rule.fault_class,
                      .code = rule.code,
                      .message = judgement.message,
                      .node_suspect = judgement.node_suspect,
                      .root_rank = root.rank,
                      .all_ranks = root.all,
                      .root_name = root.name,
                      .line = {},
                      .rule = rules.rule(found.rule).code,
                      .meaning = rule.message,
                      .advice = rule.advice,
                      .reasons = judgement.reasons,
                      .about_cause = found.about_cause};
  if (found.line) result.line = OriginalOf(ranks, *found.teller, *found.line, failures.list());
  if (rule.code == kUnknownErrorCode && SoundsLikeAnError(found.teller->last_error_line)) {
    result.label = RetryLabel::kNotRetryable;
    result.fault_class = FaultClass::kUserCode;
  }
  if (!job_exit.empty()) result.reasons.push_back(job_exit);
  return result;
}

}  // namespace aimaster
