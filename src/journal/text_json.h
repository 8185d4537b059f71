// TextJson: any bytes as JSON, without loss. JSON holds only UTF-8, but a path, an argument or a line that a rank
// printed may hold anything. Text that is not UTF-8 becomes {"hex": "63af…"}.
//
// Replacing bad bytes was rejected: a job would be started with another argument than the one that was given, and a
// master that recovers would reason over other texts than the one that died.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace aimaster {

bool IsUtf8(std::string_view text);

nlohmann::json TextToJson(const std::string& text);
// What is wrong with `from`, or empty.
std::string TextFromJson(const nlohmann::json& from, std::string& text);

}  // namespace aimaster
