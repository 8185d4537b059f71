#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/text.h"
#include "core/argv.h"
#include "core/nearest_name.h"
#include "notify/event_catalog.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {
    Option{.name = "--sink", .value = "NAME", .help = "test this sink alone"},
    Option{.name = "--json", .help = "as a JSON array"},
};

// Becomes the program that can send; its output and exit code are ours.
int Test(const Arguments& arguments) {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "aimaster-notify";
  std::vector<std::string> words = {program, "test", arguments.operands[1]};
  if (arguments.Has("--sink")) words.insert(words.end(), {"--sink", arguments.Text("--sink")});
  if (arguments.Has("--json")) words.emplace_back("--json");
  const std::vector<char*> argv = ArgvOf(words);
  execv(program.c_str(), argv.data());
  return Complain({ErrorKind::kEnvironment, InQuotes(program) + ": " + std::strerror(errno)});
}

int ShowEvents(bool json) {
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const notify::EventKind& kind : notify::EventKinds()) {
      list.push_back(
          {{"type", kind.type}, {"title", kind.title}, {"severity", notify::Name(kind.severity)}, {"when", kind.help}});
    }
    return PrintJson(list);
  }
  const std::vector<Column> columns = {
      {.title = "TYPE"}, {.title = "TITLE"}, {.title = "SEVERITY"}, {.title = "WHEN", .may_be_cut = true}};
  std::vector<std::vector<Cell>> rows;
  for (const notify::EventKind& kind : notify::EventKinds()) {
    rows.push_back({std::string(kind.type), std::string(kind.title), std::string(notify::Name(kind.severity)),
                    std::string(kind.help)});
  }
  return Print(FormatTable(columns, rows, LookAt(1)));
}

int Run(const Arguments& arguments) {
  const std::string& action = arguments.operands.front();
  if (action == "events" && arguments.operands.size() == 1) return ShowEvents(arguments.Has("--json"));
  if (action == "test" && arguments.operands.size() == 2) return Test(arguments);
  if (action == "test" || action == "events") {
    return Complain({ErrorKind::kUsage, action == "test" ? "which file? aimaster notify test FILE"
                                                         : "aimaster notify events takes no other word"});
  }
  constexpr std::array<std::string_view, 2> kActions = {"test", "events"};
  const std::string meant = DidYouMean(action, kActions);
  return Complain({ErrorKind::kUsage, "aimaster notify does not know " + InQuotes(action) +
                                          (meant.empty() ? "; it knows test and events" : meant)});
}

}  // namespace

const Command kNotifyCommand = {
    .name = "notify",
    .operands = "test FILE | events",
    .operands_min = 1,
    .operands_max = 2,
    .summary = "does a notification arrive, and of what there are some",
    .details =
        "test sends a message to each sink of a notify file (docs/notifications.md), all at once and each one time, "
        "and "
        "says what the other side answered. Nothing is retried, and rules are not looked at. The exit code is 0 when "
        "every sink took its message, 1 when one did not, 2 when the file is wrong.\n\n"
        "events lists the kinds of events: their type, their title, which may be written in the file just as well, and "
        "how severe each is.",
    .examples =
        "aimaster notify test notify.yaml\naimaster notify test --sink chat notify.yaml\naimaster notify events",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
