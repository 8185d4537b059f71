// The diagnosis of communication in words and as JSON. Pure: what was observed and concluded goes in, text comes out.
//
// The first line is for somebody who was woken by the alarm: it names the culprits, and nothing else. What it rests on
// comes below, and then what could not be used, for a diagnosis from half of the dumps should look like one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "c4d/dump_collection.h"
#include "c4d/verdict.h"
#include "cli/terminal.h"

namespace aimaster::cli {

std::string C4dStory(const c4d::DumpReading& reading, const std::vector<c4d::Verdict>& verdicts,
                     const Terminal& terminal);
nlohmann::json C4dJson(const c4d::DumpReading& reading, const std::vector<c4d::Verdict>& verdicts);

// "Ranks 12 and 14 hang in the communication layer (RankCommHang)": one line, all culprits.
std::string C4dHeadline(const c4d::DumpReading& reading, const std::vector<c4d::Verdict>& verdicts);

}  // namespace aimaster::cli
