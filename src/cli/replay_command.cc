#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/command.h"
#include "cli/job_lookup.h"
#include "cli/job_texts.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/text.h"
#include "core/count.h"
#include "core/parameter_parser.h"
#include "detect/judge_apart.h"
#include "detect/root_cause.h"
#include "engine/engine.h"
#include "engine/layout.h"
#include "journal/compare.h"
#include "journal/job_rules.h"
#include "journal/replay.h"

namespace aimaster::cli {
namespace {

using nlohmann::json;

constexpr std::array kOptions = {
    Option{.name = "--json", .help = "as a JSON object: result, summary, decisions, judgements"}};

// What people asked for, as flags: "--max-num-of-job-restart=1".
std::string Flags(const std::vector<ParameterOrigin>& given) {
  std::string flags;
  for (const ParameterOrigin& origin : given) {
    flags += (flags.empty() ? "--" : " --") + origin.name + "=" + QuoteParameterWord(origin.value);
  }
  return flags;
}

// "would have failed". The kinds are those that the engine gives its decisions.
std::string WouldHave(const std::vector<Decision>& decisions) {
  if (decisions.empty()) return "would have gone on without a decision";
  const std::string& kind = decisions.front().kind;
  if (kind == "Restart") return "would have been restarted";
  if (kind == "RestartInstance") return "would have had an instance restarted alone";
  if (kind == "RetryStart") return "would have been started again in place";
  if (kind == "Fail" || kind == "Unkillable" || kind == "NoNode") return "would have failed";
  if (kind == "Succeed") return "would have succeeded";
  if (kind == "TakeBack") return "would have taken its success back";
  if (kind == "Stop") return "would have been stopped";
  return "would have got the decision '" + kind + "'";
}

std::string When(const ReplayedInput& input) {
  return ClockTime(input.at.wall) + " (round " + std::to_string(Value(input.round)) + ")";
}

std::string ProgramOf(const Replay& replay, Epoch epoch) {
  for (const MasterLife& life : replay.lives) {
    if (life.epoch == epoch) return life.program + ", engine " + std::to_string(life.engine);
  }
  return "an older version";
}

std::string DecisionCount(const Replay& replay) {
  size_t decisions = 0;
  for (const ReplayedInput& input : replay.inputs) decisions += input.recorded.size();
  return Count(decisions, "decision") + " on " + Count(static_cast<uint64_t>(replay.replayed_inputs), "input");
}

std::string CheckSummary(const Replay& replay) {
  if (replay.ending == ReplayEnding::kSame && replay.state_difference.empty()) {
    return "the same was decided: " + DecisionCount(replay);
  }
  if (replay.ending == ReplayEnding::kSame) {
    return "the same was decided, but this version (engine " + std::to_string(kEngineVersion) +
           ") ends in another state: " + replay.state_difference;
  }
  const auto differs = [](const ReplayedInput& input) { return input.recorded != input.replayed; };
  const ReplayedInput& first = *std::ranges::find_if(replay.inputs, differs);
  std::string text = "another decision at input " + std::to_string(first.number) + " (" + first.kind + "), " +
                     When(first) + ": recorded " + DescribeDecisions(first.recorded) + " by " +
                     ProgramOf(replay, first.epoch) + "; now " + DescribeDecisions(first.replayed) + " by engine " +
                     std::to_string(kEngineVersion);
  if (LeadToTheSame(first.recorded, first.replayed)) {
    text += "; only words differ: " + DecisionDifference(first.recorded, first.replayed);
  }
  return text;
}

std::string WhatIfSummary(const Replay& replay, const std::string& flags) {
  if (replay.ending != ReplayEnding::kParts) {
    return "with " + flags + " the job would have gone the same way: " + DecisionCount(replay);
  }
  const ReplayedInput& last = replay.inputs.back();
  if (replay.parts_anyway) {
    return "this version decides otherwise at input " + std::to_string(last.number) + ", " + When(last) +
           ", with the job's own parameters too, so nothing can be said about " + flags + " from there on";
  }
  std::string text = "with " + flags + " the job " + WouldHave(last.replayed) + " at " + When(last);
  if (!last.replayed.empty()) text += ": " + last.replayed.front().summary;
  return text + "; recorded is " + DescribeDecisions(last.recorded) + "; what came after can't be followed";
}

std::string JudgementText(const Judgement& judgement) {
  return judgement.fault + " (" + std::string(Name(judgement.retryable)) + ") at " +
         (judgement.root_rank ? "rank " + std::to_string(Value(*judgement.root_rank)) : "all ranks alike") + ": " +
         judgement.message;
}

std::string JudgementLine(const JudgementDifference& difference) {
  return "rules changed: the failure of " + ClockTime(difference.at.wall) + " (round " +
         std::to_string(Value(difference.round)) + ") was judged " + JudgementText(difference.recorded) +
         "; today's rules say " + JudgementText(difference.now);
}

std::string Cellful(const std::vector<Decision>& decisions) {
  std::string text;
  for (const Decision& decision : decisions) {
    text += (text.empty() ? "" : "; ") + decision.kind + ": " + decision.summary;
  }
  return text.empty() ? "-" : text;
}

std::string Table(const Replay& replay) {
  const std::vector<Column> columns = {{.title = "INPUT", .align = Column::Align::kRight},
                                       {.title = "TIME"},
                                       {.title = "ROUND", .align = Column::Align::kRight},
                                       {.title = "RECORDED", .may_be_cut = true},
                                       {.title = "REPLAYED", .may_be_cut = true}};
  std::vector<std::vector<Cell>> rows;
  for (const ReplayedInput& input : replay.inputs) {
    const bool same = input.recorded == input.replayed;
    const bool parts = !LeadToTheSame(input.recorded, input.replayed);
    rows.push_back({std::to_string(input.number), ClockTime(input.at.wall), std::to_string(Value(input.round)),
                    Cellful(input.recorded),
                    Cell(same    ? "the same"
                         : parts ? Cellful(input.replayed)
                                 : "differs in " + DecisionDifference(input.recorded, input.replayed),
                         parts  ? Colour::kRed
                         : same ? Colour::kGreen
                                : Colour::kYellow)});
  }
  return FormatTable(columns, rows, LookAt(1));
}

json DecisionsJson(const std::vector<Decision>& decisions) {
  json list = json::array();
  for (const Decision& decision : decisions) {
    list.push_back({{"decision", decision.kind}, {"summary", decision.summary}, {"reasons", decision.reasons}});
  }
  return list;
}

json JudgementJson(const Judgement& judgement) {
  return {{"root_rank", judgement.root_rank ? json(Value(*judgement.root_rank)) : json(nullptr)},
          {"fault", judgement.fault},
          {"retryable", Name(judgement.retryable)},
          {"message", judgement.message}};
}

std::string_view ResultName(const Replay& replay) {
  if (replay.ending == ReplayEnding::kSame && !replay.state_difference.empty()) return "state-differs";
  switch (replay.ending) {
    case ReplayEnding::kSame:
      return "same";
    case ReplayEnding::kWords:
      return "words-differ";
    case ReplayEnding::kParts:
      return "parts";
  }
  return "unknown";
}

json ReplayJson(const JobId& job, const Replay& replay, const std::vector<ParameterOrigin>& given,
                const std::string& summary) {
  json parameters = json::object();
  for (const ParameterOrigin& origin : given) parameters[origin.name] = origin.value;
  json decisions = json::array();
  for (const ReplayedInput& input : replay.inputs) {
    decisions.push_back({{"input", input.number},
                         {"kind", input.kind},
                         {"time", FormatRfc3339(input.at.wall)},
                         {"round", Value(input.round)},
                         {"epoch", Value(input.epoch)},
                         {"recorded", DecisionsJson(input.recorded)},
                         {"replayed", DecisionsJson(input.replayed)},
                         {"same", input.recorded == input.replayed},
                         {"differs", DecisionDifference(input.recorded, input.replayed)}});
  }
  json judgements = json::array();
  for (const JudgementDifference& difference : replay.judgements) {
    judgements.push_back({{"input", difference.input},
                          {"time", FormatRfc3339(difference.at.wall)},
                          {"round", Value(difference.round)},
                          {"recorded", JudgementJson(difference.recorded)},
                          {"now", JudgementJson(difference.now)}});
  }
  json masters = json::array();
  for (const MasterLife& life : replay.lives) {
    masters.push_back(
        {{"epoch", Value(life.epoch)}, {"program", life.program}, {"engine", life.engine}, {"rules", life.rules}});
  }
  return {{"job_id", job.text()},
          {"result", ResultName(replay)},
          {"summary", summary},
          {"parameters", parameters},
          {"engine", kEngineVersion},
          {"masters", masters},
          {"recorded_inputs", replay.recorded_inputs},
          {"replayed_inputs", replay.replayed_inputs},
          {"status", Name(replay.status)},
          {"decisions", decisions},
          {"judgement_differences", judgements}};
}

int Run(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  const Result<ParsedParameters> parsed = ParseParameters(arguments.parameters, job->spec.fault_tolerance);
  if (!parsed) return Complain(parsed.error());
  const Result<RulesInForce> rules = ReadRulesOf(job->directory);
  if (!rules) return Complain(rules.error());
  const bool what_if = !parsed->given.empty();
  ReplayOptions options;
  options.judge = [&](const JobState& state) {
    return Judge(state.failures, WorldSize(state.spec), rules->table(),
                 [&state](Rank rank) { return PlaceOf(state, rank); });
  };
  options.judge_apart = [&](const JobState& state) {
    return JudgeApart(state.failures, WorldSize(state.spec), rules->table());
  };
  if (what_if) options.parameters = parsed->fault_tolerance;
  const Result<Replay> replay = job->reader.Replay(options);
  if (!replay) return Complain(replay.error());

  const std::string summary = what_if ? WhatIfSummary(*replay, Flags(parsed->given)) : CheckSummary(*replay);
  const bool failed = what_if ? replay->parts_anyway : ResultName(*replay) != "same";
  int printed = kExitSuccess;
  if (arguments.Has("--json")) {
    printed = PrintJson(ReplayJson(job->spec.id, *replay, parsed->given, summary));
  } else {
    std::string text = LookAt(1).Paint(Colour::kBold, OneLine("job " + job->spec.id.text() + ": " + summary)) + "\n";
    for (const JudgementDifference& difference : replay->judgements) text += OneLine(JudgementLine(difference)) + "\n";
    for (const std::string& note : parsed->notes) text += "note: " + OneLine(note) + "\n";
    if (!replay->inputs.empty()) text += "\n" + Table(*replay);
    printed = Print(text);
  }
  return printed != kExitSuccess ? printed : failed ? kExitFailure : kExitSuccess;
}

}  // namespace

const Command kReplayCommand = {
    .name = "replay",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "the job's history decided again, with the same or other parameters",
    .details =
        "Feeds everything that happened to the job to the engine once more and prints the decisions that were recorded "
        "beside those that are made now. Nothing is written and nothing is started; the job may be running.\n\n"
        "Without parameters it is a check: the same has to be decided again. Where it is not, the first difference is "
        "named, with the input, what was recorded, by which version, and what is decided now; the exit code is 1.\n\n"
        "With parameters it shows what would have been decided with them; those that are not given stay as the job had "
        "them. The replay ends where the job would have gone another way, since nobody knows what would have happened "
        "then; the first line says when, and what. The exit code is 0, unless this version of aimaster decides "
        "differently with the job's own parameters already.\n\n"
        "Failures were judged by the rules of their time, and those judgements are replayed. Where today's rules judge "
        "one differently, a line says so; the job's own rules, where it was started with --rules, are still those that "
        "it "
        "was started with.\n\n"
        "--json prints one object. result is same, words-differ (the job goes the same way for other reasons), parts, "
        "or state-differs; summary is the first line; decisions holds one element per input at which anything was "
        "decided, with the lists recorded and replayed, and in differs the first thing in which they differ; "
        "judgement_differences what the rules judge differently today; "
        "masters who decided, with engine version and a hash of the rules.",
    .examples =
        "aimaster replay nightly\naimaster replay nightly --max-num-of-job-restart=1\n"
        "aimaster replay nightly --fault-tolerant-policy=OnFailure --json | jq -r .summary",
    .options = kOptions,
    .run = &Run,
    .takes_parameters = TakesParameters::kFaultTolerance,
};

}  // namespace aimaster::cli
