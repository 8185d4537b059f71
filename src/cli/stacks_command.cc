#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.h"
#include "cli/job_care.h"
#include "cli/job_lookup.h"
#include "cli/master_call.h"
#include "cli/report.h"
#include "cli/stack_dumps.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "core/time.h"
#include "journal/files.h"
#include "journal/job_reader.h"
#include "journal/stack_files.h"
#include "stacks/document.h"
#include "stacks/render.h"

namespace aimaster::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, 5> kFormats = {"text", "tree", "folded", "json", "dot"};
constexpr std::array kOptions = {
    Option{.name = "--now", .help = "take the stacks of a running job now, and print them"},
    Option{.name = "--format", .value = "FORMAT", .help = "text, tree, folded, json or dot", .choices = kFormats},
    Option{.name = "--json", .help = "the same as --format json"},
    Option{.name = "--all", .help = "all threads and all frames"},
    Option{.name = "--capture", .value = "N", .help = "an earlier capture of the job; default: its last one"},
};
constexpr std::string_view kMerge = "merge";
constexpr auto kBeyondTimeout = 5s;  // for the master to store what it has
constexpr auto kLookEvery = 200ms;

Result<stacks::Capture> ReadCapture(const JobDirectory& directory, uint32_t number) {
  const std::filesystem::path file = directory.path() / StackFileName(number);
  const Result<std::string> bytes = ReadFile(file, stacks::kDocumentMaxBytes);
  if (!bytes) return std::unexpected(bytes.error());
  Result<stacks::Capture> capture = stacks::ParseDocument(*bytes);
  if (!capture) return Fail(ErrorKind::kEnvironment, file.string() + " " + capture.error().message);
  return capture;
}

// One whose journal can't be read may run: the master says so.
Status CheckRunning(const JobDirectory& directory) {
  Result<JobReader> reader = JobReader::Open(directory);
  const Result<JobSummary> summary = reader ? reader->ReadSummary() : std::unexpected(reader.error());
  if (!summary || !IsEnd(summary->status)) return {};
  return Fail(ErrorKind::kNotFound,
              "the job has ended, " + std::string(Name(summary->status)) + "; without --now its last stacks are shown");
}

// The number of the capture that a master has taken for us.
Result<uint32_t> TakeNow(const JobDirectory& directory, const JobSpec& spec) {
  const std::vector<uint32_t> before = StackFileNumbers(directory.path());
  const nlohmann::json body{{"by", "aimaster stacks"}};
  if (const auto answer = CallMaster(directory.path(), "/api/v1/stacks", body.dump()); !answer) {
    return Fail(answer.error().kind, "no stacks can be taken now: " + answer.error().message);
  }
  const auto until = std::chrono::steady_clock::now() + spec.timing.stack_timeout + kBeyondTimeout;
  while (std::chrono::steady_clock::now() < until) {
    const std::vector<uint32_t> now = StackFileNumbers(directory.path());
    if (!now.empty() && (before.empty() || now.back() > before.back())) return now.back();
    if (const Status running = CheckRunning(directory); !running) return std::unexpected(running.error());
    std::this_thread::sleep_for(kLookEvery);
  }
  return Fail(ErrorKind::kEnvironment, "the stacks were not there within --stack-timeout (" +
                                           FormatDuration(spec.timing.stack_timeout) +
                                           "); `aimaster events` of the job says what became of them");
}

Result<stacks::Capture> OfJob(const Arguments& arguments) {
  const Result<JobDirectory> directory = LookUpJob(arguments.operands.front());
  if (!directory) return std::unexpected(directory.error());
  const Result<JobSpec> spec = directory->ReadSpec();
  if (!spec) return std::unexpected(spec.error());
  const auto wanted = arguments.Number("--capture", 1, UINT32_MAX);
  if (!wanted) return std::unexpected(wanted.error());
  if (arguments.Has("--now")) {
    if (*wanted) return Fail(ErrorKind::kUsage, "--now takes a new capture, --capture shows an old one: leave one out");
    if (const Status running = CheckRunning(*directory); !running) return std::unexpected(running.error());
    const Result<uint32_t> taken = TakeNow(*directory, *spec);
    if (!taken) return std::unexpected(taken.error());
    return ReadCapture(*directory, *taken);
  }
  const std::vector<uint32_t> captures = StackFileNumbers(directory->path());
  if (captures.empty()) {
    return Fail(ErrorKind::kNotFound, "no stacks of job " + spec->id.text() +
                                          " were taken yet; `aimaster stacks --now JOB` takes them while it runs");
  }
  const auto number = static_cast<uint32_t>(wanted->value_or(captures.back()));
  if (std::ranges::find(captures, number) == captures.end()) {
    std::string known;
    for (const uint32_t capture : captures) known += (known.empty() ? "" : ", ") + std::to_string(capture);
    return Fail(ErrorKind::kNotFound, "there is no capture " + std::to_string(number) + " of job " + spec->id.text() +
                                          " (any more); there are: " + known);
  }
  return ReadCapture(*directory, number);
}

int PrintAs(const std::string& format, const stacks::Capture& capture, bool all) {
  const Terminal terminal = LookAt(1);
  const stacks::TextOptions options{.colours = terminal.colours, .width = terminal.width, .all = all};
  if (format == "json") return Print(stacks::FormatJson(capture));
  if (format == "tree") return Print(stacks::FormatTree(capture, options));
  if (format == "folded") return Print(stacks::FormatFolded(capture, all));
  if (format == "dot") return Print(stacks::FormatDot(capture, all));
  return Print(stacks::FormatText(capture, options));
}

int Run(const Arguments& arguments) {
  const bool merges = arguments.operands.front() == kMerge && arguments.operands.size() > 1;
  if (arguments.operands.front() == kMerge && !merges && !LookUpJob(std::string(kMerge))) {
    return Complain({ErrorKind::kUsage, "which files? write aimaster stacks merge FILE…"});
  }
  if (!merges && arguments.operands.size() > 1) {
    return Complain({ErrorKind::kUsage, InQuotes(arguments.operands[1]) +
                                            " is one job too many; to merge files, write aimaster stacks merge FILE…"});
  }
  if (merges && (arguments.Has("--now") || arguments.Has("--capture"))) {
    return Complain({ErrorKind::kUsage, "--now and --capture are about a job, and merge takes files"});
  }
  std::string format = arguments.Text("--format");
  if (arguments.Has("--json")) {
    if (!format.empty() && format != "json") {
      return Complain({ErrorKind::kUsage, "--json and --format " + format + " say different things: leave one out"});
    }
    format = "json";
  }
  const Result<stacks::Capture> capture =
      merges ? MergeDumpFiles({arguments.operands.begin() + 1, arguments.operands.end()}) : OfJob(arguments);
  if (!capture) return Complain(capture.error());
  const int printed = PrintAs(format, *capture, arguments.Has("--all"));
  const bool took_none = arguments.Has("--now") && capture->threads.empty();
  return took_none && printed == kExitSuccess ? kExitFailure : printed;
}

}  // namespace

const Command kStacksCommand = {
    .name = "stacks",
    .operands = "JOB | merge FILE…",
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .summary = "where every rank is in its program, and which one is alone there",
    .details =
        "Prints the last call stacks that were taken of the job's ranks and of the processes that they have started, "
        "merged over all nodes: threads that are in the same place are one entry, and the rarest come first, since in "
        "a "
        "job that hangs the rank that is where nobody else is is the likeliest culprit. The first line names it. "
        "Places where every rank has an idle thread in the background are left out; --all shows them. Captures stay in "
        "the job's directory after its end; the last 16 are kept.\n\n"
        "--now has all nodes take stacks of the running job, which goes on: its processes stand still for a fraction "
        "of "
        "a second each. It takes at most the job's --stack-timeout, whatever tools and nodes do. The exit code is 1 "
        "where "
        "no stack could be taken at all; what is printed says why.\n\n"
        "merge does the same with files that you have: dumps of py-spy, pystack, eu-stack, gdb or Python's "
        "faulthandler, "
        "or captures of AIMaster. The rank of a dump is the number behind `rank` in the file's name (rank12.txt), else "
        "the only number in it, else its place on the command line.\n\n"
        "FORMAT is text, tree (one tree of frames, each with the ranks that are there: 0-5,7), folded (for flame "
        "graphs), json or dot (for Graphviz).",
    .examples =
        "aimaster stacks --now nightly\naimaster stacks --format tree nightly\n"
        "aimaster stacks merge dumps/rank*.txt\n"
        "aimaster stacks --format folded nightly | flamegraph.pl > stacks.svg",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
