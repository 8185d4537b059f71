#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "c4d/folder_reading.h"
#include "c4d/limits.h"
#include "cli/c4d_findings.h"
#include "cli/c4d_words.h"
#include "cli/command.h"
#include "cli/directory_watch.h"
#include "cli/job_lookup.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/trouble_watch.h"
#include "core/count.h"
#include "core/nearest_name.h"
#include "journal/files.h"

namespace aimaster::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array kOptions = {
    Option{.name = "--timeout",
           .value = "SECONDS",
           .help = "for how long the job had stood when the dumps were made, at the least; default: 10"},
    Option{.name = "--follow", .short_name = "-f", .help = "what is found, as it comes, until the job has ended"},
    Option{.name = "--json", .help = "as a JSON object; with --follow one for each line"},
};
constexpr std::string_view kAnalyze = "analyze";
constexpr uint64_t kTimeoutMaxSeconds = uint64_t{7} * 86'400;
constexpr size_t kFilesMax = 100'000;
constexpr int kDepthMax = 4;
constexpr size_t kReasonsMax = 3;
constexpr int kLookAgainMs = 200;

// All files below a folder, in order. Folders that may not be read are left out.
Result<std::vector<fs::path>> ListFiles(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    const std::string why = error ? error.message() : fs::exists(folder) ? "is no folder" : "there is no such folder";
    return Fail(ErrorKind::kUsage, InQuotes(folder.string()) + ": " + why);
  }
  std::vector<fs::path> files;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) {
      if (entry.depth() + 1 >= kDepthMax) entry.disable_recursion_pending();
      continue;
    }
    if (files.size() == kFilesMax) {
      return Fail(ErrorKind::kUsage, InQuotes(folder.string()) + " holds more than " + std::to_string(kFilesMax) +
                                         " files: name the folder of the dumps");
    }
    files.push_back(entry->path());
  }
  if (error) return Fail(ErrorKind::kEnvironment, InQuotes(folder.string()) + ": " + error.message());
  std::ranges::sort(files);
  return files;
}

void ReadDump(const fs::path& folder, const fs::path& file, c4d::FolderReading& collection) {
  std::string name = OneLine(file.lexically_relative(folder).string());
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return collection.LeaveOut(std::move(name), "is no regular file");
  if (const uintmax_t size = fs::file_size(file, error); !error && size > c4d::kDumpMaxBytes) {
    return collection.LeaveOut(std::move(name),
                               "is larger than " + std::to_string(c4d::kDumpMaxBytes >> 20) + " MiB, and was not read");
  }
  const Result<std::string> bytes = ReadFile(file, c4d::kDumpMaxBytes);
  if (!bytes) return collection.LeaveOut(std::move(name), "can't be read: " + bytes.error().message);
  collection.Add(std::move(name), *bytes);
}

int NothingToRead(const std::string& folder, const c4d::DumpReading& reading) {
  std::string message = InQuotes(folder) + " holds no dump that can be read";
  if (reading.notes.empty()) {
    message += "; it is empty";
  } else {
    message += ": of " + Count(reading.notes.size(), "file");
    for (size_t i = 0; i < std::min(reading.notes.size(), kReasonsMax); ++i) {
      message += (i == 0 ? ", " : "; ") + reading.notes[i].file + " " + reading.notes[i].reason;
    }
    if (reading.notes.size() > kReasonsMax) message += "; …";
  }
  return Complain({ErrorKind::kEnvironment, message});
}

int Analyze(const Arguments& arguments) {
  const Result<std::optional<uint64_t>> seconds = arguments.Number("--timeout", 1, kTimeoutMaxSeconds);
  if (!seconds) return Complain(seconds.error());
  c4d::HangTiming timing;
  std::optional<Duration> stood_for;
  if (*seconds) stood_for = timing.timeout = std::chrono::seconds(**seconds);
  const fs::path folder = arguments.operands[1];
  const Result<std::vector<fs::path>> files = ListFiles(folder);
  if (!files) return Complain(files.error());
  c4d::FolderReading collection;
  for (const fs::path& file : *files) ReadDump(folder, file, collection);
  const auto [reading, verdicts] = collection.Conclude(stood_for, timing);
  if (reading.dumps_used == 0) return NothingToRead(folder.string(), reading);
  return arguments.Has("--json") ? PrintJson(C4dJson(reading, verdicts))
                                 : Print(C4dStory(reading, verdicts, LookAt(1)));
}

int ShowFindings(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  const Result<JobSnapshot> snapshot = job->reader.ReadSnapshot();
  if (!snapshot) return Complain(snapshot.error());
  const Result<std::vector<Input>> findings = job->reader.ReadCommunication();
  if (!findings) return Complain(findings.error());
  return arguments.Has("--json") ? PrintJson(C4dFindingsJson(job->spec, *snapshot, *findings))
                                 : Print(C4dFindings(job->spec, *snapshot, *findings, LookAt(1)));
}

// All that was found, and what is found from now on.
int FollowFindings(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  const Terminal terminal = LookAt(1);
  DirectoryWatch watch(job->directory.path());
  TroubleWatch trouble(job->directory.path());
  for (int64_t told = 0;;) {
    watch.Clear();
    // The state first: what was found before the end is then among the findings that are read after it.
    const Result<JobSnapshot> snapshot = job->reader.ReadSnapshot();
    if (!snapshot) return Complain(snapshot.error());
    const Result<std::vector<Input>> findings = job->reader.ReadCommunication(told);
    if (!findings) return Complain(findings.error());
    std::string text;
    for (const Input& finding : *findings) {
      text += arguments.Has("--json") ? C4dFindingJson(*snapshot, finding).dump() + "\n" : C4dLines(finding, terminal);
    }
    told += static_cast<int64_t>(findings->size());
    if (const int code = Print(text); code != kExitSuccess) return code;
    if (IsEnd(snapshot->summary.status)) return kExitSuccess;
    if (const auto changed = trouble.Look(std::chrono::steady_clock::now())) {
      Complain({ErrorKind::kEnvironment, *changed});
    }
    watch.Await(kLookAgainMs);
  }
}

int Run(const Arguments& arguments) {
  const std::string& first = arguments.operands.front();
  if (first == kAnalyze && arguments.Has("--follow")) {
    return Complain({ErrorKind::kUsage, "--follow is for a job; what is in dumps does not change"});
  }
  if (first == kAnalyze && arguments.operands.size() == 2) return Analyze(arguments);
  if (first == kAnalyze) return Complain({ErrorKind::kUsage, "which folder? write aimaster c4d analyze DIR"});
  if (arguments.operands.size() == 1 && !arguments.Has("--timeout")) {
    return arguments.Has("--follow") ? FollowFindings(arguments) : ShowFindings(arguments);
  }
  if (arguments.operands.size() == 1) return Complain({ErrorKind::kUsage, "--timeout is for aimaster c4d analyze DIR"});
  constexpr std::array kActions = {kAnalyze};
  const std::string meant = DidYouMean(first, kActions);
  return Complain({ErrorKind::kUsage,
                   "aimaster c4d does not know " + InQuotes(first) + (meant.empty() ? "; it knows analyze" : meant)});
}

}  // namespace

const Command kC4dCommand = {
    .name = "c4d",
    .operands = "JOB | analyze DIR",
    .operands_min = 1,
    .operands_max = 2,
    .summary = "which rank hangs or is slow, in the communication or outside",
    .details =
        "Prints what C4D has found in a job: what holds now, with what it rests on, and below it all that was found, "
        "also after the job has ended. With --follow only the latter, a line for each finding, as they come, and on "
        "standard error "
        "when nobody leads the job, so that nothing is looked for; with --json too an object for each. With --json "
        "alone: verdicts, those that hold now (of each: kind, level, "
        "ranks, is_group, node, since, text, evidence, as below), findings (of each: time, round, and the verdicts "
        "that held from then "
        "on), and is_on, whether the job is looked at.\n\n"
        "analyze needs no job: it reads the dumps that the ranks of a job left behind when a collective operation "
        "timed out, and says "
        "which of them hang, in the communication layer or outside, and which only wait for those (docs/c4d.md). No "
        "job is needed, and nothing in a dump is ever executed.\n\n"
        "DIR holds a file for each rank, a pickle or JSON, whose name ends in the rank: nccl_trace_rank_12. Folders "
        "within it are looked into as well. Files that are missing, cut short, of another job, or no dumps, do no "
        "harm: each is named with the reason, and nobody is accused for what a dump that is not whole does not say.\n\n"
        "Reports of NCCL's RAS (ncclras -f json, NCCL 2.28 or later) are read where there are no dumps: two of them, "
        "half a minute apart, or one with --timeout. They tell who has launched less than others. Logs of NCCL's "
        "Inspector, as JSON, tell who is slow.\n\n"
        "--json prints one object: verdicts (of each: kind, one of RankCommHang, RankNonCommHang, CollectiveMismatch, "
        "CyclicWait, RankCommSlow, RankNonCommSlow, NoProbeData; level; ranks, the culprits; is_group, true where "
        "ranks are a whole group of which "
        "none can be singled out; node, null, for dumps do not tell it; communicator and communicator_description; "
        "operation; sequence; since, the seconds that it has been so at the least, as far as the dumps themselves "
        "show, or null; waiting, the ranks that "
        "wait for the culprits; evidence), ranks, ranks_seen, ranks_not_seen, last_record, files_left_out and "
        "files_used_in_part (of each: file, reason). The exit code is 0 whenever there was a dump that could be read, "
        "and 1 when there was none.",
    .examples =
        "aimaster c4d dlc1k2j3h4\naimaster c4d -f dlc1k2j3h4\naimaster c4d analyze /shared/dumps\naimaster c4d analyze "
        "--json dumps | jq "
        "'.verdicts[].ranks'",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
