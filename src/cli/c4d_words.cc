#include "cli/c4d_words.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "c4d/hang_words.h"
#include "c4d/verdict_words.h"
#include "cli/job_texts.h"
#include "cli/rank_grid.h"
#include "cli/text.h"
#include "core/count.h"

namespace aimaster::cli {
namespace {

using c4d::DumpNote;
using c4d::DumpReading;
using c4d::Level;
using c4d::Observation;
using c4d::RankWords;
using c4d::Sentence;
using c4d::Verdict;
using c4d::VerdictKind;
using nlohmann::json;

constexpr size_t kNotesMax = 20;

std::vector<uint32_t> Numbers(const std::vector<Rank>& ranks) {
  std::vector<uint32_t> numbers;
  for (const Rank rank : ranks) numbers.push_back(Value(rank));
  return numbers;
}

std::vector<Rank> NotSeen(const Observation& observation) {
  std::vector<Rank> ranks;
  for (uint32_t rank = 0; rank < observation.ranks.size(); ++rank) {
    if (!observation.ranks[rank].is_observed) ranks.push_back(Rank{rank});
  }
  return ranks;
}

std::string NothingFound(const DumpReading& reading) {
  const size_t all = reading.observation.ranks.size();
  if (!reading.is_judged)
    return (reading.source == c4d::DumpSource::kInspector ? "Whether anybody is slow" : "Whether anybody hangs") +
           std::string(" is not judged: see below");
  if (reading.source == c4d::DumpSource::kInspector) {
    return "No rank is found to be slow in the logs of " + std::to_string(reading.ranks_seen) + " of " +
           Count(all, "rank");
  }
  if (reading.source == c4d::DumpSource::kRas) {
    return "No rank is found to hang in what RAS tells of " + std::to_string(reading.ranks_seen) + " of " +
           Count(all, "rank");
  }
  if (reading.ranks_seen == all) return "No rank is found to hang in the dumps of all " + Count(all, "rank");
  return "No rank can be named: none that has a whole dump is to blame, and of " +
         RankWords(NotSeen(reading.observation)) + " there is none";
}

Colour ColourOf(Level level) {
  switch (level) {
    case Level::kError:
      return Colour::kRed;
    case Level::kWarning:
      return Colour::kYellow;
    case Level::kInfo:
      return Colour::kBlue;
  }
  return Colour::kNone;
}

std::string GroupWords(const Observation& observation, uint32_t index) {
  const c4d::Communicator& group = observation.communicators[index];
  const std::string name = group.description.empty() ? group.name : group.description + " (" + group.name + ")";
  return OneLine(name) + ", " + RankWords(group.members);
}

// For how long it has been so without what was only supposed; none where little is left.
std::optional<Duration> KnownSince(const DumpReading& reading, const Verdict& verdict) {
  const bool is_slow = verdict.kind == VerdictKind::kRankCommSlow || verdict.kind == VerdictKind::kRankNonCommSlow;
  if (is_slow) return verdict.since;
  if (!verdict.since || *verdict.since - reading.stood_for < reading.stood_for) return std::nullopt;
  return *verdict.since - reading.stood_for;
}

std::string Details(const DumpReading& reading, const Verdict& verdict, const Terminal& terminal) {
  const Observation& observation = reading.observation;
  const auto row = [&](std::string_view title, const std::string& text) {
    return text.empty() ? std::string() : Hanging(text, "  " + std::string(title), terminal);
  };
  std::string text = terminal.Paint(ColourOf(verdict.level), std::string(Name(verdict.level))) + ": " +
                     Sentence(verdict.kind, verdict.ranks, verdict.is_group) + " (" + std::string(Name(verdict.kind)) +
                     ")\n";
  if (verdict.communicator) text += row("group      ", GroupWords(observation, *verdict.communicator));
  std::string operation = OneLine(verdict.operation);
  if (verdict.sequence) {
    operation += (operation.empty() ? "number " : ", number ") + std::to_string(*verdict.sequence);
  }
  text += row("operation  ", operation);
  if (const auto since = KnownSince(reading, verdict)) {
    text += row("since      ", FormatDuration(*since) + " or longer");
  }
  if (!verdict.waiting.empty()) text += row("waiting    ", RankWords(verdict.waiting));
  for (const std::string& sentence : verdict.evidence) text += Hanging(sentence, "  - ", terminal);
  return text;
}

std::string Picture(const Observation& observation, const std::vector<Verdict>& verdicts, const Terminal& terminal) {
  RankGrid grid(observation.ranks.size());
  grid.Mark(NotSeen(observation), RankSign::kNotSeen);
  for (const Verdict& verdict : verdicts) {
    grid.Mark(verdict.waiting, RankSign::kWaits);
    grid.Mark(verdict.ranks, SignOf(Name(verdict.kind), verdict.is_group));
  }
  const std::string text = grid.Draw(terminal);
  return text.empty() ? text : "\n" + text;
}

std::string NoteList(const std::vector<DumpNote>& notes, bool is_used, std::string_view title,
                     const Terminal& terminal) {
  std::string text;
  size_t count = 0;
  for (const DumpNote& note : notes) {
    if (note.is_used != is_used || ++count > kNotesMax) continue;
    text += Hanging(OneLine(note.file + " " + note.reason), "  - ", terminal);
  }
  if (count > kNotesMax) text += "  - and " + Count(count - kNotesMax, "more file") + "; --json names them all\n";
  return text.empty() ? text : "\n" + terminal.Paint(Colour::kDim, title) + "\n" + text;
}

json VerdictJson(const DumpReading& reading, const Verdict& verdict) {
  const Observation& observation = reading.observation;
  json value = {{"kind", Name(verdict.kind)},
                {"level", Name(verdict.level)},
                {"ranks", Numbers(verdict.ranks)},
                {"is_group", verdict.is_group},
                {"node", nullptr},
                {"communicator", nullptr},
                {"communicator_description", nullptr},
                {"operation", verdict.operation.empty() ? json(nullptr) : json(verdict.operation)},
                {"sequence", verdict.sequence ? json(*verdict.sequence) : json(nullptr)},
                {"since", nullptr},
                {"waiting", Numbers(verdict.waiting)},
                {"evidence", verdict.evidence}};
  if (verdict.communicator) {
    const c4d::Communicator& group = observation.communicators[*verdict.communicator];
    value["communicator"] = group.name;
    value["communicator_description"] = group.description;
  }
  if (const auto since = KnownSince(reading, verdict)) {
    value["since"] = std::chrono::duration<double>(*since).count();
  }
  return value;
}

}  // namespace

std::string C4dHeadline(const DumpReading& reading, const std::vector<Verdict>& verdicts) {
  // Ranks of one kind are named together, also where each has a verdict of its own.
  struct Part {
    VerdictKind kind;
    bool is_group;
    std::vector<Rank> ranks;
  };
  std::vector<Part> parts;
  const bool has_culprit =
      std::ranges::any_of(verdicts, [](const Verdict& verdict) { return verdict.kind != VerdictKind::kNoProbeData; });
  for (const Verdict& verdict : verdicts) {
    if (has_culprit && verdict.kind == VerdictKind::kNoProbeData) continue;
    const auto same = std::ranges::find_if(parts, [&](const Part& part) {
      return part.kind == verdict.kind && !part.is_group && !verdict.is_group &&
             verdict.kind != VerdictKind::kCyclicWait;
    });
    if (same == parts.end()) {
      parts.push_back({verdict.kind, verdict.is_group, verdict.ranks});
    } else {
      same->ranks.insert(same->ranks.end(), verdict.ranks.begin(), verdict.ranks.end());
    }
  }
  std::string line;
  for (Part& part : parts) {
    std::ranges::sort(part.ranks);
    const auto [first, last] = std::ranges::unique(part.ranks);
    part.ranks.erase(first, last);
    line += (line.empty() ? "" : "; ") + Sentence(part.kind, part.ranks, part.is_group) + " (" +
            std::string(Name(part.kind)) + ")";
  }
  return line.empty() ? NothingFound(reading) : c4d::Capital(line);
}

std::string C4dStory(const DumpReading& reading, const std::vector<Verdict>& verdicts, const Terminal& terminal) {
  const Observation& observation = reading.observation;
  std::string text = terminal.Paint(Colour::kBold, C4dHeadline(reading, verdicts)) + "\n";
  for (const Verdict& verdict : verdicts) text += "\n" + Details(reading, verdict, terminal);
  text += Picture(observation, verdicts, terminal);
  std::string seen = "Seen: " + std::to_string(reading.ranks_seen) + " of " + Count(observation.ranks.size(), "rank");
  const std::vector<Rank> not_seen = NotSeen(observation);
  if (!not_seen.empty()) seen += "; not " + RankWords(not_seen);
  if (reading.last_record) {
    seen += ". The last operation was recorded at " + FormatRfc3339(*reading.last_record) + ", by most ranks' clocks";
  }
  seen += ".";
  if (!verdicts.empty() && reading.stood_for > Duration::zero()) {
    seen += " A dump does not say when it was made: times above suppose that the job had stood for " +
            FormatDuration(reading.stood_for) + " by then; it may have been longer.";
  }
  text += "\n" + Hanging(seen, "", terminal);
  text += NoteList(reading.notes, false, "Not used:", terminal);
  text += NoteList(reading.notes, true, "Used, but:", terminal);
  return text;
}

json C4dJson(const DumpReading& reading, const std::vector<Verdict>& verdicts) {
  json list = json::array();
  for (const Verdict& verdict : verdicts) list.push_back(VerdictJson(reading, verdict));
  json left_out = json::array();
  json in_part = json::array();
  for (const DumpNote& note : reading.notes) {
    (note.is_used ? in_part : left_out).push_back({{"file", note.file}, {"reason", note.reason}});
  }
  return {{"verdicts", list},
          {"ranks", reading.observation.ranks.size()},
          {"ranks_seen", reading.ranks_seen},
          {"ranks_not_seen", Numbers(NotSeen(reading.observation))},
          {"last_record", reading.last_record ? json(FormatRfc3339(*reading.last_record)) : json(nullptr)},
          {"files_left_out", left_out},
          {"files_used_in_part", in_part}};
}

}  // namespace aimaster::cli
