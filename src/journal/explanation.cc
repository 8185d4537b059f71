#include "journal/explanation.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <variant>

#include "engine/input.h"
#include "journal/codec.h"
#include "journal/rows.h"

namespace aimaster {
namespace {

using Judged = std::map<int64_t, std::vector<Judgement>>;  // by the number of the input

Result<Judged> ReadJudgements(Database& database) {
  Judged judged;
  const auto take = [&judged](int64_t number, const std::string& body) -> Status {
    Result<Input> input = DecodeInput(body);
    if (!input) return std::unexpected(input.error());
    auto* failure = std::get_if<FailureJudged>(&input->event);
    if (failure == nullptr) return {};
    std::vector<Judgement>& judgements = judged[number];
    judgements.push_back(std::move(failure->judgement));
    for (Judgement& other : failure->others) judgements.push_back(std::move(other));
    return {};
  };
  const Status read =
      ForEachRow(database, "SELECT seq, body FROM input WHERE kind = 'FailureJudged' ORDER BY seq", take);
  if (!read) return std::unexpected(read.error());
  return judged;
}

// A decision begins with the reasons of the judgement that it rests on.
bool RestsOn(const Decision& decision, const Judgement& judgement) {
  return !judgement.reasons.empty() && judgement.reasons.size() <= decision.reasons.size() &&
         std::equal(judgement.reasons.begin(), judgement.reasons.end(), decision.reasons.begin());
}

// What the root's failure said in the words of the judgement. The last report before it counts.
Result<std::optional<TellingLine>> FindLine(Database& database, const Judgement& judgement, int64_t number) {
  if (judgement.source != ErrorSource::kLog || judgement.details.empty()) return std::nullopt;
  Result<Statement> rows = database.Prepare(
      "SELECT seq, body FROM input WHERE kind = 'RankFailed' AND seq < ? "
      "AND json_extract(body, '$.failure.rank') = ? ORDER BY seq DESC LIMIT 1");
  if (!rows) return std::unexpected(rows.error());
  rows->Bind(number).Bind(static_cast<int64_t>(Value(judgement.details.front().rank)));
  std::optional<TellingLine> found;
  const auto take = [&](int64_t, const std::string& body) -> Status {
    Result<Input> input = DecodeInput(body);
    if (!input) return std::unexpected(input.error());
    const auto* failed = std::get_if<RankFailed>(&input->event);
    if (failed == nullptr) return {};
    const RankFailure& failure = failed->failure;
    const auto match = std::ranges::find(failure.matches, judgement.message, &LineMatch::line);
    if (match != failure.matches.end()) found = {failure.instance, failure.node, failure.attempt, *match};
    return {};
  };
  if (const Status read = ForEachRow(*rows, take); !read) return std::unexpected(read.error());
  return found;
}

}  // namespace

Result<std::vector<Explanation>> ReadExplanations(Database& database) {
  const Result<Judged> judged = ReadJudgements(database);
  if (!judged) return std::unexpected(judged.error());
  std::vector<std::pair<int64_t, Decision>> decisions;  // with the number of the input
  const auto take = [&decisions](int64_t number, const std::string& body) -> Status {
    Result<Decision> decision = DecodeDecision(body);
    if (!decision) return std::unexpected(decision.error());
    decisions.emplace_back(number, std::move(*decision));
    return {};
  };
  if (const Status read = ForEachRow(database, "SELECT input, body FROM decision ORDER BY seq", take); !read) {
    return std::unexpected(read.error());
  }
  std::vector<Explanation> explanations;
  for (auto& [number, decision] : decisions) {
    Explanation& explanation = explanations.emplace_back();
    explanation.limits = decision.reasons;
    explanation.decision = std::move(decision);
    const auto known = judged->find(number);
    if (known == judged->end()) continue;
    const auto basis = std::ranges::find_if(
        known->second, [&](const Judgement& judgement) { return RestsOn(explanation.decision, judgement); });
    if (basis == known->second.end()) continue;
    explanation.judgement = *basis;
    explanation.limits.erase(explanation.limits.begin(),
                             explanation.limits.begin() + static_cast<std::ptrdiff_t>(basis->reasons.size()));
    Result<std::optional<TellingLine>> line = FindLine(database, *basis, number);
    if (!line) return std::unexpected(line.error());
    explanation.line = std::move(*line);
  }
  return explanations;
}

}  // namespace aimaster
