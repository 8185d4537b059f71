#include "cli/c4d_findings.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <variant>

#include "cli/job_texts.h"
#include "cli/rank_grid.h"
#include "cli/text.h"

namespace aimaster::cli {
namespace {

using nlohmann::json;
using Verdicts = std::vector<CommunicationVerdict>;

const CommunicationJudged& Judged(const Input& input) { return std::get<CommunicationJudged>(input.event); }

std::string_view LevelName(C4dLogLevel level) {
  return level == C4dLogLevel::kError ? "Error" : level == C4dLogLevel::kWarning ? "Warning" : "Info";
}

Colour ColourOf(C4dLogLevel level) {
  return level == C4dLogLevel::kError ? Colour::kRed : level == C4dLogLevel::kWarning ? Colour::kYellow : Colour::kBlue;
}

bool IsAskedFor(const JobSpec& spec) {
  return spec.fault_tolerance.enable_c4d_hang_detection && spec.fault_tolerance.enable_job_hang_detection;
}

// Empty where the job has ended, or has been started again since.
Verdicts HoldsNow(const JobSnapshot& job, const std::vector<Input>& findings) {
  const bool is_of_now = !findings.empty() && !IsEnd(job.summary.status) &&
                         Judged(findings.back()).round == job.summary.round &&
                         job.summary.status == JobStatus::kRunning;
  return is_of_now ? Judged(findings.back()).verdicts : Verdicts();
}

std::vector<std::string> NodesOf(const JobSnapshot& job, const CommunicationVerdict& verdict) {
  std::vector<std::string> names;
  for (const NodeIndex index : verdict.nodes) {
    const auto node = job.nodes.find(index);
    if (node != job.nodes.end()) names.push_back(node->second.name);
  }
  return names;
}

std::string Headline(const CommunicationVerdict& verdict, const Terminal& terminal) {
  return terminal.Paint(ColourOf(verdict.level), std::string(LevelName(verdict.level))) + ": " + OneLine(verdict.text) +
         " (" + OneLine(verdict.kind) + ")";
}

std::string Now(const JobSnapshot& job, const Verdicts& verdicts, const Terminal& terminal) {
  std::string text;
  for (const CommunicationVerdict& verdict : verdicts) {
    text += Headline(verdict, terminal) + "\n";
    std::string nodes;
    for (const std::string& node : NodesOf(job, verdict)) nodes += (nodes.empty() ? "" : ", ") + OneLine(node);
    if (!nodes.empty()) text += Hanging(nodes, "  node       ", terminal);
    if (verdict.lasts > Duration::zero()) {
      text += Hanging(FormatDuration(verdict.lasts) + " when it was found", "  since      ", terminal);
    }
    for (const std::string& sentence : verdict.evidence) text += Hanging(OneLine(sentence), "  - ", terminal);
  }
  return text;
}

// Of an MPI program the job knows no more ranks than those that verdicts name.
std::string Picture(const JobSnapshot& job, const Verdicts& verdicts, const Terminal& terminal) {
  size_t ranks = 0;
  for (const InstanceState& instance : job.instances) ranks += instance.ranks;
  RankGrid grid(ranks);
  for (const CommunicationVerdict& verdict : verdicts) {
    const bool is_group = !verdict.is_culprit;
    grid.Mark(verdict.ranks, SignOf(verdict.kind, is_group));
  }
  return grid.Draw(terminal);
}

std::string History(const std::vector<Input>& findings, const Terminal& terminal) {
  std::string text;
  for (const Input& finding : findings) text += C4dLines(finding, terminal);
  return text;
}

json VerdictJson(const JobSnapshot& job, const CommunicationVerdict& verdict) {
  json ranks = json::array();
  for (const Rank rank : verdict.ranks) ranks.push_back(Value(rank));
  const std::vector<std::string> nodes = NodesOf(job, verdict);
  return {{"kind", verdict.kind},
          {"level", LevelName(verdict.level)},
          {"ranks", ranks},
          {"is_group", !verdict.is_culprit && verdict.kind != "NoProbeData"},
          {"node", nodes.size() == 1 ? json(nodes.front()) : json(nullptr)},
          {"since", std::chrono::duration<double>(verdict.lasts).count()},
          {"text", verdict.text},
          {"evidence", verdict.evidence}};
}

json VerdictsJson(const JobSnapshot& job, const Verdicts& verdicts) {
  json list = json::array();
  for (const CommunicationVerdict& verdict : verdicts) list.push_back(VerdictJson(job, verdict));
  return list;
}

}  // namespace

std::string C4dLines(const Input& finding, const Terminal& terminal) {
  const std::string at = terminal.Paint(
      Colour::kDim, DateTime(finding.at.wall) + "  round " + std::to_string(Value(Judged(finding).round)));
  if (Judged(finding).verdicts.empty()) return at + "  over\n";
  std::string text;
  for (const CommunicationVerdict& verdict : Judged(finding).verdicts) {
    const std::string lasts = verdict.lasts > Duration::zero() ? ", for " + FormatDuration(verdict.lasts) : "";
    text += at + "  " + Headline(verdict, terminal) + lasts + "\n";
  }
  return text;
}

json C4dFindingJson(const JobSnapshot& job, const Input& finding) {
  return {{"time", FormatRfc3339(finding.at.wall)},
          {"round", Value(Judged(finding).round)},
          {"verdicts", VerdictsJson(job, Judged(finding).verdicts)}};
}

std::string C4dFindings(const JobSpec& spec, const JobSnapshot& job, const std::vector<Input>& findings,
                        const Terminal& terminal) {
  if (!IsAskedFor(spec)) {
    return "C4D does not look at job " + spec.id.text() +
           ": it needs --enable-c4d-hang-detection=True and --enable-job-hang-detection=True.\n";
  }
  if (findings.empty()) return "C4D has found nothing in job " + spec.id.text() + ".\n";
  const Verdicts holding = HoldsNow(job, findings);
  const std::string now = Now(job, holding, terminal) + Picture(job, holding, terminal);
  const std::string title = now.empty() ? "Nothing is found now. Found before:\n" : "\nFound, in order:\n";
  return now + terminal.Paint(Colour::kDim, title) + History(findings, terminal);
}

json C4dFindingsJson(const JobSpec& spec, const JobSnapshot& job, const std::vector<Input>& findings) {
  json history = json::array();
  for (const Input& finding : findings) history.push_back(C4dFindingJson(job, finding));
  return {{"job", spec.id.text()},
          {"is_on", IsAskedFor(spec)},
          {"verdicts", VerdictsJson(job, HoldsNow(job, findings))},
          {"findings", history}};
}

}  // namespace aimaster::cli
