// A user's rules file (`--rules FILE`, docs/rules.md): read, checked, compiled, and ready to judge by.
//
// `aimaster-rules` compiles it, once: what it made is kept in the cache of the home, under the file's content and this
// version of the program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/error.h"
#include "detect/rules_in_force.h"
#include "journal/job_directory.h"

namespace aimaster::cli {

struct LoadedRules {
  RulesFiles files;       // for the directory of a job
  RulesInForce in_force;  // the built-in rules and the user's
  std::string note;       // what a person should know of them; or empty
};

// kUsage names the file, the line in it, and what is wrong. Without a home that can be written to it is compiled every
// time.
Result<LoadedRules> LoadRuleFile(const std::filesystem::path& file);

// Compiles the rules of a job again where another version of the program did, or where what it made is damaged.
Status RenewRulesOf(const std::filesystem::path& job_directory);

}  // namespace aimaster::cli
