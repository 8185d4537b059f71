#include "cli/rule_file.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/helper_program.h"
#include "cli/text.h"
#include "core/fnv1a.h"
#include "detect/pattern_literals.h"
#include "detect/rule_merge.h"
#include "detect/rules_yaml.h"
#include "journal/files.h"
#include "journal/private_directory.h"

namespace aimaster::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCachedMax = 64;  // files in the cache; the oldest go

Error CannotCompile(const std::string& why) { return {ErrorKind::kEnvironment, "cannot compile the rules: " + why}; }

// `aimaster-rules` with the text; what it made, or what it says is wrong.
Result<std::string> RunCompiler(std::string_view text) {
  Result<HelperEnd> end = RunHelper("aimaster-rules", {}, text, kCompiledRulesMaxBytes);
  if (!end) return std::unexpected(CannotCompile(end.error().message));
  if (end->signal == SIGXCPU) {
    return Fail(ErrorKind::kUsage, "they take too long to compile: use fewer or simpler patterns");
  }
  if (end->signal != 0) {
    return Fail(ErrorKind::kUsage, "compiling them was ended by signal " + std::to_string(end->signal));
  }
  if (end->exit_code == 0) return std::move(end->output);
  const std::string message = OneLine(end->complaint);
  return Fail(ErrorKind::kUsage, message.empty() ? "they can't be compiled" : message);
}

fs::path CacheFile(const Home& home, std::string_view text) {
  char name[40];
  std::snprintf(name, sizeof name, "%016llx.rules", static_cast<unsigned long long>(Fnv1a(text, Fnv1a(ThisBuild()))));
  return home.path() / "cache" / "rules" / name;
}

void DropOldest(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    if (const auto time = fs::last_write_time(entry->path(), gone); !gone) files.emplace_back(time, entry->path());
  }
  if (files.size() <= kCachedMax) return;
  std::ranges::sort(files);
  for (size_t i = 0; i < files.size() - kCachedMax; ++i) fs::remove(files[i].second, error);
}

// A cache that can't be written to is none; nothing else is wrong then.
void Keep(const fs::path& file, std::string_view compiled) {
  if (!MakePrivateDirectories(file.parent_path()) || !CheckPrivate(file.parent_path())) return;
  if (WriteFileAtomically(file, compiled, 0600)) DropOldest(file.parent_path());
}

std::optional<CompiledRules> FindCached(const fs::path& file, std::string_view text) {
  if (!CheckPrivate(file.parent_path())) return std::nullopt;
  const Result<std::string> bytes = ReadFile(file, kCompiledRulesMaxBytes);
  if (!bytes) return std::nullopt;
  Result<CompiledRules> rules = DecodeCompiledRules(*bytes);
  if (!rules || rules->build != ThisBuild() || rules->source != text) return std::nullopt;
  return std::move(*rules);
}

Result<CompiledRules> Compile(std::string_view text) {
  const Result<std::string> bytes = RunCompiler(text);
  if (!bytes) return std::unexpected(bytes.error());
  return DecodeCompiledRules(*bytes);
}

Result<CompiledRules> CompileOrFind(std::string_view text) {
  const Result<Home> home = Home::Find();
  const fs::path cached = home ? CacheFile(*home, text) : fs::path();
  if (!cached.empty()) {
    if (std::optional<CompiledRules> found = FindCached(cached, text)) return std::move(*found);
  }
  Result<CompiledRules> rules = Compile(text);
  if (rules && !cached.empty()) Keep(cached, Encode(*rules));
  return rules;
}

std::string NoteOn(const CompiledRules& rules, const std::string& name) {
  if (!rules.patterns.every_line) return {};
  const std::vector<Pattern> patterns = ListPatterns(rules.rules);
  const Pattern* slow = FindWithoutWords(patterns);
  return name + ": " + (slow ? "the pattern " + InQuotes(slow->text) : "a pattern") +
         " has no plain text that stands in all that it matches, so each line of output is tried one by one, which "
         "takes several times the processor time";
}

}  // namespace

Result<LoadedRules> LoadRuleFile(const fs::path& file) {
  const std::string name = InQuotes(file.string());
  const Result<std::string> text = ReadFile(file, kRulesTextMaxBytes);
  if (!text) return Fail(ErrorKind::kUsage, "the rules file " + name + " can't be read: " + text.error().message);
  Result<CompiledRules> rules = CompileOrFind(*text);
  if (!rules) return Fail(rules.error().kind, file.string() + ": " + rules.error().message);
  RulesFiles files{.text = *text, .compiled = Encode(*rules)};
  std::string note = NoteOn(*rules, file.string());
  Result<RulesInForce> in_force = RulesInForce::With(std::move(*rules));
  if (!in_force) return Fail(in_force.error().kind, file.string() + ": " + in_force.error().message);
  return LoadedRules{std::move(files), std::move(*in_force), std::move(note)};
}

Status RenewRulesOf(const fs::path& job_directory) {
  const Result<JobDirectory> job = JobDirectory::Open(job_directory);
  if (!job) return {};  // whoever needs it says so
  const Result<std::string> text = ReadFile(job->rules(), kRulesTextMaxBytes);
  if (!text) return text.error().kind == ErrorKind::kNotFound ? Status() : std::unexpected(text.error());
  const Result<std::string> bytes = ReadFile(job->compiled_rules(), kCompiledRulesMaxBytes);
  if (bytes) {
    const Result<CompiledRules> known = DecodeCompiledRules(*bytes);
    if (known && known->build == ThisBuild()) return {};
  }
  const Result<CompiledRules> rules = CompileOrFind(*text);
  if (!rules) return Fail(rules.error().kind, job->rules().string() + ": " + rules.error().message);
  return WriteFileAtomically(job->compiled_rules(), Encode(*rules), 0600);
}

}  // namespace aimaster::cli
