// The text of a notify file (docs/notifications.md) as a plan. Everything that is wrong in it is found here, before a
// job starts; what can only be found by sending is what `aimaster notify test` is for.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "notify/plan.h"

namespace aimaster::notify {

// What a file may refer to.
struct Surroundings {
  std::string file;                 // its name, for errors
  std::filesystem::path directory;  // that relative paths in it begin at; absolute
  std::function<std::optional<std::string>(const std::string& name)> variable;
  // Whether a file that is named in it can be read now.
  std::function<Status(const std::filesystem::path& path)> check_file;
};

// kUsage: "FILE:LINE: what is wrong, and what was probably meant". No secret is ever part of it.
Result<Plan> ParsePlanYaml(std::string_view text, const Surroundings& surroundings);

}  // namespace aimaster::notify
