// The program `aimaster-notify`: everything about notifications that needs YAML or the network. `aimaster` starts it.
//
//   check FILE                         a notify file in, the plan that a job keeps out
//   test FILE [--sink NAME] [--json]   a message to each sink, and what each answered
//   serve DIR                          the courier of the job in DIR, beside its master
//
// A program of its own for the same reasons as aimaster-rules: `aimaster` starts for every job and every listing, and
// what is here is many times its size.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/quote.h"
#include "journal/files.h"
#include "notify/command_run.h"
#include "notify/courier.h"
#include "notify/plan.h"
#include "notify/plan_yaml.h"
#include "notify/sender.h"

namespace aimaster::notify {
namespace {

constexpr int kExitFailure = 1, kExitUsage = 2;

int Complain(const std::string& message) {
  std::cerr << message << "\n";
  return kExitUsage;
}

Result<Plan> ReadFileOf(const std::string& name) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(name, error);
  const Result<std::string> text = error ? Fail(ErrorKind::kUsage, error.message()) : ReadFile(path, kFileMaxBytes);
  if (!text) return Fail(ErrorKind::kUsage, Printable(name) + ": " + text.error().message);
  const auto variable = [](const std::string& wanted) -> std::optional<std::string> {
    const char* value = std::getenv(wanted.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  const auto check_file = [](const std::filesystem::path& file) -> Status {
    if (access(file.c_str(), R_OK) == 0) return {};
    return Fail(ErrorKind::kUsage, file.string() + ": " + std::strerror(errno));
  };
  return ParsePlanYaml(*text,
                       {.file = name, .directory = path.parent_path(), .variable = variable, .check_file = check_file});
}

int Check(const std::string& name) {
  const Result<Plan> plan = ReadFileOf(name);
  if (!plan) return Complain(plan.error().message);
  std::cout << EncodePlan(*plan) << std::flush;
  return std::cout ? 0 : kExitFailure;
}

// ---- test ----

Letter TestLetter(const Sink& sink, Wall now) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  Message message{.number = ToMilliseconds(now.since_epoch),
                  .time = now,
                  .type = "aimaster.notify.test",
                  .title = "Test Message",
                  .severity = EventSeverity::kInfo,
                  .job_id = "test",
                  .job_name = "no job",
                  .subject = "",
                  .text = "a test of sink " + Quoted(sink.name) + " by `aimaster notify test` on " + host.data(),
                  .facts = {{"advice", "nothing is to be done; messages arrive here"}},
                  .look = "aimaster help notify"};
  const int64_t number = message.number;
  return {.message = std::move(message), .first = number, .last = number, .more = 0, .kinds = {}};
}

struct Tried {
  const Sink* sink = nullptr;
  Outcome outcome;
  Duration took{};
};

std::vector<Tried> TryAll(const std::vector<const Sink*>& sinks) {
  std::vector<Tried> tried(sinks.size());
  Sender sender;
  const auto began = std::chrono::steady_clock::now();
  for (size_t i = 0; i < sinks.size(); ++i) {
    const Wall now{std::chrono::system_clock::now().time_since_epoch()};
    tried[i].sink = sinks[i];
    sender.Start(i, *sinks[i], TestLetter(*sinks[i], now), now);
  }
  while (!sender.is_idle()) {
    for (auto& [sink, outcome] : sender.Perform()) {
      tried[sink].outcome = std::move(outcome);
      tried[sink].took = std::chrono::steady_clock::now() - began;
    }
    if (!sender.is_idle()) sender.Wait({}, milliseconds(1000));
  }
  return tried;
}

void Show(const std::vector<Tried>& tried, bool json) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [sink, outcome, took] : tried) {
    if (json) {
      list.push_back({{"sink", sink->name},
                      {"type", Name(sink->type)},
                      {"place", PlaceOf(*sink)},
                      {"delivered", outcome.delivered},
                      {"answer", outcome.answer},
                      {"duration_ms", ToMilliseconds(took)}});
    } else {
      std::cout << sink->name << " (" << Name(sink->type) << " at " << PlaceOf(*sink)
                << "): " << (outcome.delivered ? "delivered" : "NOT delivered") << " in " << FormatDuration(took)
                << ": " << outcome.answer << "\n";
    }
  }
  if (json) std::cout << list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  std::cout << std::flush;
}

int Test(const std::string& name, const std::string& only, bool json) {
  const Result<Plan> plan = ReadFileOf(name);
  if (!plan) return Complain(plan.error().message);
  std::vector<const Sink*> sinks;
  std::string names;
  for (const Sink& sink : plan->sinks) {
    names += (names.empty() ? "" : ", ") + sink.name;
    if (only.empty() || sink.name == only) sinks.push_back(&sink);
  }
  if (sinks.empty()) return Complain(name + ": there is no sink " + Quoted(only) + "; there are " + names);
  const std::vector<Tried> tried = TryAll(sinks);
  Show(tried, json);
  for (const Tried& each : tried) {
    if (!each.outcome.delivered) return kExitFailure;
  }
  return std::cout ? 0 : kExitFailure;
}

// ---- serve ----

// Async-signal-safe.
void EndAtOnce(int) {
  KillAllCommands();
  _exit(kExitFailure);
}

int Serve(const std::string& directory, pid_t master) {
  // Not one moment longer than the master, whatever we are at: its successor sends the same. SIGKILL would leave behind
  // what a command has started; the end of standard input would only be noticed after the message that is next.
  signal(SIGTERM, EndAtOnce);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != master) return kExitFailure;
  return ServeJob(directory);
}

int Main(std::span<const std::string> words) {
  signal(SIGPIPE, SIG_IGN);
  if (words.size() == 2 && words[0] == "check") return Check(words[1]);
  if (words.size() == 3 && words[0] == "serve") return Serve(words[1], std::atoi(words[2].c_str()));
  if (words.size() >= 2 && words[0] == "test") {
    std::string only;
    bool json = false;
    for (size_t i = 2; i < words.size(); ++i) {
      if (words[i] == "--json") {
        json = true;
      } else if (words[i] == "--sink" && i + 1 < words.size()) {
        only = words[++i];
      } else {
        return Complain("unknown option " + Quoted(words[i]));
      }
    }
    return Test(words[1], only, json);
  }
  return Complain("started by aimaster; see `aimaster help notify`");
}

}  // namespace
}  // namespace aimaster::notify

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return aimaster::notify::Main(words);
}
