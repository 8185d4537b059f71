// A job in words, for people: the line of an event, the live line, and the summary at the end. Pure: what the journal
// says goes in, text comes out.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "core/job_spec.h"
#include "journal/job_reader.h"

namespace aimaster::cli {

// "15:04:05", in the time zone of the person who reads it.
std::string ClockTime(Wall time);
// "2026-01-31 15:04:05"; "-" when there is none.
std::string DateTime(const std::optional<Wall>& time);

// "12 s", "2 min 10 s": for a time that is still running.
std::string WholeSeconds(Duration duration);

// "dlc…-worker-2" → "worker-2".
std::string ShortName(const JobSpec& spec, const std::string& instance);

// A text behind `first`; what does not fit on a line goes on below, under its start. Each line ends with a line break.
std::string Hanging(const std::string& text, std::string_view first, const Terminal& terminal);

Colour ColourOf(JobStatus status);
Colour ColourOf(InstanceStatus status);
Colour ColourOfEvent(std::string_view type);

// "aimaster: 15:04:05 round 1 starts …"; nothing for events that a follower would only be distracted by.
std::optional<std::string> EventLine(const JobEvent& event, const Terminal& terminal);

// "dlc… Running · round 1 · 1 of 3 restarts · 4 of 4 ranks ready · 2 min 10 s"
std::string LiveLine(const JobSpec& spec, const JobSnapshot& snapshot, Wall now);

// How an ended job went: lines for standard error. In a pipe each stands for itself and starts with "aimaster: ".
std::vector<std::string> SummaryLines(const JobSpec& spec, const JobSnapshot& snapshot,
                                      const std::filesystem::path& job_directory, const Terminal& terminal);

// "detect 3 ms, stop 1.2 s": what restarts cost, stage by stage, over all rounds. Empty when there was none.
std::string TimeLost(const std::vector<RoundState>& rounds);

}  // namespace aimaster::cli
