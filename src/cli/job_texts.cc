#include "cli/job_texts.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include "cli/text.h"
#include "core/count.h"

namespace aimaster::cli {
namespace {

constexpr size_t kFailuresShown = 5;  // in a summary; `aimaster records` has all

std::string LocalTime(Wall time, const char* format) {
  const time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(time.since_epoch).count();
  tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  strftime(text.data(), text.size(), format, &parts);
  return text.data();
}

std::string RestartCount(const JobSpec& spec, const JobSummary& summary) {
  if (!spec.fault_tolerance.enable_job_restart) return Count(summary.restarts, "restart");
  return std::to_string(summary.restarts) + " of " + Count(spec.fault_tolerance.max_num_of_job_restart, "restart");
}

std::string FailureText(const JobSpec& spec, const RestartRecord& record) {
  std::string text = "round " + std::to_string(Value(record.round)) + ": ";
  if (record.judgement.root_rank) text += "rank " + std::to_string(Value(*record.judgement.root_rank));
  if (!record.instance_name.empty()) {
    text += (record.judgement.root_rank ? " of " : "") + ShortName(spec, record.instance_name);
  }
  if (!record.node_name.empty()) text += " on " + record.node_name;
  const std::string code =
      record.judgement.error_code ? "exit code " + std::to_string(*record.judgement.error_code) : "";
  if (!code.empty()) text += ", " + code;
  if (!record.judgement.message.empty() && record.judgement.message != code) text += ": " + record.judgement.message;
  return text;
}

struct Entry {
  std::string label, text;
};

std::vector<Entry> SummaryEntries(const JobSpec& spec, const JobSnapshot& snapshot,
                                  const std::filesystem::path& job_directory) {
  std::vector<Entry> entries;
  const JobSummary& summary = snapshot.summary;
  if (summary.status != JobStatus::kSucceeded && !summary.reason_message.empty()) {
    entries.push_back({"reason", summary.reason_message});
  }
  if (!snapshot.records.empty()) {
    entries.push_back({"rounds", Count(snapshot.rounds.size(), "round") + ", " + RestartCount(spec, summary)});
  }
  const size_t shown = std::min(snapshot.records.size(), kFailuresShown);
  if (snapshot.records.size() > shown) {
    entries.push_back({"failed", Count(snapshot.records.size() - shown, "earlier failure") + " left out here"});
  }
  for (size_t i = snapshot.records.size() - shown; i < snapshot.records.size(); ++i) {
    entries.push_back({"failed", FailureText(spec, snapshot.records[i])});
  }
  if (const std::string lost = TimeLost(snapshot.rounds); !lost.empty()) entries.push_back({"time lost", lost});
  entries.push_back({"logs", spec.log_directory.empty() ? (job_directory / "nodes").string() : spec.log_directory});
  if (!snapshot.records.empty() || summary.status != JobStatus::kSucceeded) {
    entries.push_back({"why", "aimaster explain " + spec.id.text()});
  }
  return entries;
}

}  // namespace

std::string ShortName(const JobSpec& spec, const std::string& instance) {
  const std::string prefix = spec.id.text() + "-";
  return instance.starts_with(prefix) ? instance.substr(prefix.size()) : instance;
}

std::string ClockTime(Wall time) { return LocalTime(time, "%H:%M:%S"); }

std::string DateTime(const std::optional<Wall>& time) {
  return time && time->since_epoch.count() != 0 ? LocalTime(*time, "%Y-%m-%d %H:%M:%S") : "-";
}

std::string WholeSeconds(Duration duration) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(std::max(duration, Duration{}));
  return seconds < std::chrono::minutes(1) ? std::to_string(seconds.count()) + " s" : FormatDuration(seconds);
}

std::string Hanging(const std::string& text, std::string_view first, const Terminal& terminal) {
  constexpr size_t kTextWidthMin = 30;
  const size_t indent = DisplayWidth(first);
  const size_t width =
      terminal.width > 0 ? std::max(static_cast<size_t>(terminal.width), indent + kTextWidthMin) : SIZE_MAX / 2;
  std::string out;
  for (const std::string& line : Wrap(OneLine(text), width - indent)) {
    out += (out.empty() ? std::string(first) : std::string(indent, ' ')) + line + "\n";
  }
  return out;
}

Colour ColourOf(JobStatus status) {
  switch (status) {
    case JobStatus::kCreating:
    case JobStatus::kQueuing:
    case JobStatus::kEnvPreparing:
      return Colour::kBlue;
    case JobStatus::kRunning:
    case JobStatus::kSucceeded:
      return Colour::kGreen;
    case JobStatus::kRestarting:
    case JobStatus::kStopping:
    case JobStatus::kStopped:
      return Colour::kYellow;
    case JobStatus::kFailed:
      return Colour::kRed;
  }
  return Colour::kNone;
}

Colour ColourOf(InstanceStatus status) {
  switch (status) {
    case InstanceStatus::kPending:
    case InstanceStatus::kStarting:
      return Colour::kBlue;
    case InstanceStatus::kRunning:
    case InstanceStatus::kSucceeded:
      return Colour::kGreen;
    case InstanceStatus::kStopping:
    case InstanceStatus::kStopped:
      return Colour::kYellow;
    case InstanceStatus::kFailed:
      return Colour::kRed;
  }
  return Colour::kNone;
}

Colour ColourOfEvent(std::string_view type) {
  for (const std::string_view bad : {".failed", ".lost", ".unkillable", ".denied"}) {
    if (type.ends_with(bad)) return Colour::kRed;
  }
  for (const std::string_view odd :
       {".restarting", ".stopping", ".stopped", ".start_retried", ".isolated", ".note", ".gave_up"}) {
    if (type.ends_with(odd)) return Colour::kYellow;
  }
  return type.ends_with(".succeeded") || type.ends_with(".ready") ? Colour::kGreen : Colour::kNone;
}

std::optional<std::string> EventLine(const JobEvent& event, const Terminal& terminal) {
  // A job of a thousand nodes would push everything else off the screen; `aimaster events` has them.
  if (event.type == "aimaster.node.joined") return std::nullopt;
  return terminal.Paint(Colour::kDim, "aimaster: " + ClockTime(event.at.wall)) + " " +
         terminal.Paint(ColourOfEvent(event.type), OneLine(event.message));
}

std::string LiveLine(const JobSpec& spec, const JobSnapshot& snapshot, Wall now) {
  uint64_t ranks = 0, ready = 0;
  for (const InstanceState& instance : snapshot.instances) {
    ranks += instance.ranks;
    const bool is_ready = instance.ready || instance.status == InstanceStatus::kSucceeded;
    if (is_ready) ready += instance.ranks;
  }
  std::string line = spec.id.text() + " " + std::string(Name(snapshot.summary.status)) + " · round " +
                     std::to_string(Value(snapshot.summary.round)) + " · " + RestartCount(spec, snapshot.summary);
  if (ranks > 0) line += " · " + std::to_string(ready) + " of " + Count(ranks, "rank") + " ready";
  return line + " · " + WholeSeconds(now - spec.create_time);
}

std::string TimeLost(const std::vector<RoundState>& rounds) {
  std::map<Stage, Duration> sums;
  Duration total{};
  for (const RoundState& round : rounds) {
    if (Value(round.round) == 0) continue;  // bringing the job up for the first time is no loss
    for (const StageTime& stage : round.stages) {
      sums[stage.stage] += stage.duration.value_or(Duration{});
      total += stage.duration.value_or(Duration{});
    }
  }
  if (sums.empty()) return "";
  std::string text = FormatDuration(total) + " (";
  bool first = true;
  for (const auto& [stage, sum] : sums) {
    if (ToMilliseconds(sum) == 0) continue;
    text += (first ? "" : ", ") + std::string(Name(stage)) + " " + FormatDuration(sum);
    first = false;
  }
  return first ? FormatDuration(total) : text + ")";
}

std::vector<std::string> SummaryLines(const JobSpec& spec, const JobSnapshot& snapshot,
                                      const std::filesystem::path& job_directory, const Terminal& terminal) {
  const JobSummary& summary = snapshot.summary;
  const Wall end = summary.end_time.value_or(spec.create_time);
  const std::string status(Name(summary.status));
  const std::string after = " after " + FormatDuration(end - spec.create_time);
  std::vector<std::string> lines;
  if (terminal.is_terminal) {
    lines.push_back("");
    lines.push_back(terminal.Paint(Colour::kBold, "job " + spec.id.text() + " (" + OneLine(spec.name) + ") ") +
                    terminal.Paint(ColourOf(summary.status), status) + after);
  } else {
    lines.push_back("aimaster: job " + spec.id.text() + " " + status + after);
  }
  std::string last_label;
  for (const Entry& entry : SummaryEntries(spec, snapshot, job_directory)) {
    const std::string text = OneLine(entry.text);
    if (!terminal.is_terminal) {
      lines.push_back("aimaster: " + entry.label + ": " + text);
      continue;
    }
    const std::string label = entry.label == last_label ? "" : entry.label;
    lines.push_back("  " + terminal.Paint(Colour::kDim, label) + std::string(11 - DisplayWidth(label), ' ') + text);
    last_label = entry.label;
  }
  return lines;
}

}  // namespace aimaster::cli
