#include "cli/stack_dumps.h"

#include <charconv>

#include "cli/text.h"
#include "detect/line_text.h"
#include "journal/files.h"
#include "stacks/document.h"
#include "stacks/dump_parsers.h"
#include "stacks/waiting.h"

namespace aimaster::cli {
namespace {

constexpr size_t kFileMaxBytes = 256 << 20;

std::optional<uint32_t> NumberAt(std::string_view text, size_t at) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  return error == std::errc{} && number != stacks::kNone ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<uint32_t> RankInName(std::string_view path) {
  std::string_view name = stacks::LastPart(path);
  if (const size_t dot = name.rfind('.'); dot != std::string_view::npos && dot > 0) name = name.substr(0, dot);
  for (size_t at = name.find("rank"); at != std::string_view::npos; at = name.find("rank", at + 1)) {
    size_t digits = at + 4;
    while (digits < name.size() && (name[digits] == '-' || name[digits] == '_' || name[digits] == '=')) ++digits;
    if (digits < name.size() && IsDigit(name[digits])) return NumberAt(name, digits);
  }
  std::optional<size_t> only;
  for (size_t i = 0; i < name.size(); ++i) {
    if (!IsDigit(name[i]) || (i > 0 && IsDigit(name[i - 1]))) continue;
    if (only) return std::nullopt;
    only = i;
  }
  return only ? NumberAt(name, *only) : std::nullopt;
}

Result<stacks::Capture> MergeDumpFiles(const std::vector<std::string>& files) {
  stacks::CaptureBuilder builder;
  uint32_t place = 0;
  for (const std::string& file : files) {
    const uint32_t rank = RankInName(file).value_or(place);
    ++place;
    const Result<std::string> text = ReadFile(file, kFileMaxBytes);
    if (!text) return std::unexpected(text.error());
    if (const Result<stacks::Capture> capture = stacks::ParseDocument(*text)) {
      builder.Add(*capture);
      continue;
    } else if (capture.error().kind == ErrorKind::kVersion) {
      return Fail(ErrorKind::kVersion, InQuotes(file) + " " + capture.error().message);
    }
    const Result<std::vector<stacks::ProcessDump>> dumps = stacks::ParseDump(*text);
    if (!dumps) return Fail(ErrorKind::kUsage, InQuotes(file) + " " + dumps.error().message);
    bool is_child = false;
    for (const stacks::ProcessDump& dump : *dumps) {
      builder.Add({.node = {},
                   .instance = {},
                   .rank = rank,
                   .pid = dump.pid,
                   .is_child = std::exchange(is_child, true),
                   .command = dump.command,
                   .tool = {},
                   .trouble = {}},
                  dump.threads);
    }
  }
  return builder.Take();
}

}  // namespace aimaster::cli
