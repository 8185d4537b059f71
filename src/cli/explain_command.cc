#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/job_lookup.h"
#include "cli/job_texts.h"
#include "cli/log_input.h"
#include "cli/report.h"
#include "cli/text.h"
#include "core/count.h"
#include "detect/rule_table.h"
#include "journal/job_json.h"
#include "journal/job_rules.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {Option{.name = "--json", .help = "as a JSON array of decisions with their reasons"}};
constexpr size_t kLabelWidth = 14;      // with the indent before it
constexpr size_t kFollowersShown = 4;   // kinds of consequences
constexpr size_t kRankRangesShown = 8;  // of one kind

// Tells the decisions of one job.
class Story {
 public:
  Story(const OpenedJob& job, const JobSnapshot& snapshot, const RuleTable& rules, const Terminal& terminal)
      : job_(job), snapshot_(snapshot), rules_(rules), terminal_(terminal) {}

  std::string Heading() const {
    const JobSummary& summary = snapshot_.summary;
    const std::string reason = summary.reason_message.empty() ? "" : ": " + summary.reason_message;
    const std::string heading =
        "job " + job_.spec.id.text() + " (" + job_.spec.name + "): " + std::string(Name(summary.status)) + reason;
    return terminal_.Paint(Colour::kBold, Hanging(heading, "", terminal_));
  }

  std::string Tell(const Explanation& explanation) const {
    const Decision& decision = explanation.decision;
    const std::string when = ClockTime(decision.at.wall) + " round " + std::to_string(Value(decision.round)) + "  ";
    std::string heading = Hanging(decision.kind + ": " + decision.summary, when, terminal_);
    heading = terminal_.Paint(Colour::kDim, when) + terminal_.Paint(Colour::kBold, heading.substr(when.size()));
    std::string text = "\n" + heading;
    if (explanation.judgement) text += Cause(*explanation.judgement, explanation.line);
    bool first = true;
    for (const std::string& reason : explanation.limits) {
      text += Entry(first ? explanation.judgement ? "limits" : "because" : "", reason);
      first = false;
    }
    return text;
  }

 private:
  std::string Entry(const std::string& label, const std::string& text) const {
    const std::string padded = "    " + label + std::string(kLabelWidth - 4 - label.size(), ' ');
    std::string entry = Hanging(text, padded, terminal_);
    const std::string painted = "    " + terminal_.Paint(Colour::kDim, label);
    return entry.replace(0, 4 + label.size(), painted);
  }

  std::string Cause(const Judgement& judgement, const std::optional<TellingLine>& line) const {
    std::string text = Entry("first", judgement.reasons.front());
    if (judgement.root_rank) text += Entry("where", Place(judgement.root_instance, judgement.root_node));
    if (line) {
      text += Entry("told by", line->match.line);
      text += Entry("", PositionIn(FileOf(job_.directory, job_.spec, snapshot_, *line).string(), line->match.offset));
    }
    text += Followers(judgement);
    return text + Meaning(judgement);
  }

  std::string Place(InstanceIndex instance, NodeIndex node) const {
    return ShortName(job_.spec, InstanceNameOf(snapshot_, instance)) + " on " + NodeNameOf(snapshot_, node);
  }
  // What was only a consequence, those with the same words together.
  std::string Followers(const Judgement& judgement) const {
    std::map<std::string, std::vector<uint32_t>> ranks_by_words;
    for (const FailureDetail& detail : judgement.details) {
      if (!detail.is_root) ranks_by_words[detail.message + " (" + detail.fault + ")"].push_back(Value(detail.rank));
    }
    std::string text;
    size_t told = 0, ranks_told = 0;
    for (auto& [words, ranks] : ranks_by_words) {
      if (told == kFollowersShown) break;
      text += Entry(told == 0 ? "followed" : "", Ranks(ranks) + ": " + words);
      ranks_told += ranks.size();
      ++told;
    }
    const auto roots = static_cast<size_t>(std::ranges::count(judgement.details, true, &FailureDetail::is_root));
    const size_t all = judgement.failed_ranks > roots ? judgement.failed_ranks - roots : 0;
    if (all > ranks_told && told > 0) text += Entry("", "and " + Count(all - ranks_told, "more failed rank"));
    return text;
  }

  // "ranks 0-2, 5".
  static std::string Ranks(std::vector<uint32_t>& ranks) {
    std::ranges::sort(ranks);
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    size_t ranges = 0;
    for (size_t i = 0; i < ranks.size(); ++i, ++ranges) {
      if (ranges == kRankRangesShown) return text + " and " + std::to_string(ranks.size() - i) + " more";
      const uint32_t begin = ranks[i];
      while (i + 1 < ranks.size() && ranks[i + 1] == ranks[i] + 1) ++i;
      text += (ranges == 0 ? "" : ", ") + std::to_string(begin);
      if (ranks[i] != begin) text += "-" + std::to_string(ranks[i]);
    }
    return text;
  }

  std::string Meaning(const Judgement& judgement) const {
    static const std::map<Retryable, std::string> kRetry = {{Retryable::kYes, "retryable"},
                                                            {Retryable::kNo, "not retryable"},
                                                            {Retryable::kOncePerPlace, "retryable once per place"}};
    const std::optional<RuleIndex> index = rules_.Find(judgement.fault);
    const std::string meaning = index ? ": " + rules_.rule(*index).message : "";
    std::string text = Entry(
        "rule", judgement.fault + " (" + judgement.category + ", " + kRetry.at(judgement.retryable) + ")" + meaning);
    if (index && !rules_.rule(*index).advice.empty()) text += Entry("advice", rules_.rule(*index).advice);
    return text;
  }

  const OpenedJob& job_;
  const JobSnapshot& snapshot_;
  const RuleTable& rules_;
  const Terminal& terminal_;
};

int Run(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  if (arguments.Has("--json")) {
    const Result<std::vector<Decision>> decisions = job->reader.ReadDecisions();
    return decisions ? PrintJson(ExplainJson(*decisions)) : Complain(decisions.error());
  }
  const Result<JobSnapshot> snapshot = job->reader.ReadSnapshot();
  if (!snapshot) return Complain(snapshot.error());
  const Result<std::vector<Explanation>> explanations = job->reader.ReadExplanations();
  if (!explanations) return Complain(explanations.error());
  const Terminal terminal = LookAt(1);
  const Result<RulesInForce> rules = ReadRulesOf(job->directory);  // says what codes mean: no reason to be silent
  const Story story(*job, *snapshot, rules ? rules->table() : RuleTable::BuiltIn(), terminal);
  std::string text = story.Heading();
  for (const Explanation& explanation : *explanations) text += story.Tell(explanation);
  return Print(text);
}

}  // namespace

const Command kExplainCommand = {
    .name = "explain",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "what was decided about the job, and why",
    .details =
        "First how the job stands, then every decision in the order of time. Of a failure: which rank was first, and "
        "where; the line of its output that tells why, with its file and line; which ranks only followed; the rule and "
        "what it advises; which limits were applied.\n\n"
        "--json has each decision with the whole chain of its reasons.",
    .examples = "aimaster explain nightly\naimaster explain --json nightly | jq '.[-1].reasons'",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
