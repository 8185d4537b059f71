#include <poll.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "cli/command.h"
#include "cli/directory_watch.h"
#include "cli/job_lookup.h"
#include "cli/launch_master.h"
#include "cli/rank_tee.h"
#include "cli/report.h"
#include "cli/screen.h"
#include "cli/text.h"
#include "engine/layout.h"
#include "journal/job_json.h"

namespace aimaster::cli {
namespace {

constexpr std::array kOptions = {
    Option{.name = "--follow", .short_name = "-f", .help = "go on until the job has ended, over restarts"},
    Option{.name = "--instance",
           .value = "INSTANCE",
           .help = "only this instance, worker-1 say; aimaster-0 is the job's master"},
    Option{.name = "--rank", .value = "R", .help = "only this rank"},
    Option{.name = "--round", .value = "N", .help = "of this round; default: the last one"},
    Option{.name = "--tail", .short_name = "-n", .value = "N", .help = "only the last N lines of each rank and stream"},
};
constexpr int kLookAgainMs = 100;

struct Request {
  TeeSelection selection;
  bool masters_log = false;
  bool follow = false;
  std::optional<uint64_t> tail;
  std::string what = "output";  // in words
};

Result<Request> ParseRequest(const Arguments& arguments, const JobSpec& spec) {
  Request request{.follow = arguments.Has("--follow")};
  request.selection.all_to_stdout = true;
  const Result<std::optional<uint64_t>> tail = arguments.Number("--tail", 0, UINT64_MAX);
  const Result<std::optional<uint64_t>> rank = arguments.Number("--rank", 0, UINT32_MAX);
  const Result<std::optional<uint64_t>> round = arguments.Number("--round", 0, UINT32_MAX);
  for (const auto* number : {&tail, &rank, &round}) {
    if (!*number) return std::unexpected(number->error());
  }
  request.tail = *tail;
  if (*rank) {
    if (**rank >= WorldSize(spec)) {
      return Fail(ErrorKind::kNotFound, "job " + spec.id.text() + " has no rank " + std::to_string(**rank) +
                                            "; its ranks are 0 to " + std::to_string(WorldSize(spec) - 1));
    }
    request.selection.rank = static_cast<uint32_t>(**rank);
    request.what += " of rank " + std::to_string(**rank);
  }
  if (arguments.Has("--instance")) {
    const std::string written = arguments.Text("--instance"), prefix = spec.id.text() + "-";
    request.selection.instance = written.starts_with(prefix) ? written : prefix + written;
    request.masters_log = request.selection.instance == MasterInstanceName(spec.id);
    const std::vector<InstanceState> all = LayOutInstances(spec);
    if (!request.masters_log && std::ranges::find(all, request.selection.instance, &InstanceState::name) == all.end()) {
      return Fail(ErrorKind::kNotFound, "job " + spec.id.text() + " has no instance " + InQuotes(written) +
                                            "; `aimaster get " + spec.id.text() + "` lists them");
    }
    request.what += " of " + written;
  }
  if (*round) {
    request.selection.first_round = request.selection.last_round = static_cast<uint32_t>(**round);
    request.what += " in round " + std::to_string(**round);
  }
  return request;
}

// Narrows the selection to what the person means by it, now that it is known what there is.
void Complete(Request& request, const std::vector<AttemptLogs>& attempts, bool round_given) {
  uint32_t last_round = 0;
  for (const AttemptLogs& attempt : attempts) last_round = std::max(last_round, attempt.round);
  if (!round_given) request.selection.first_round = last_round;
  size_t ranks = 0;
  for (const AttemptLogs& attempt : attempts) {
    if (attempt.round >= request.selection.first_round) ranks += attempt.ranks.size();
  }
  request.selection.with_prefixes = !request.selection.rank && ranks != 1;
}

bool HasEnded(OpenedJob& job) {
  const Result<JobSummary> summary = job.reader.ReadSummary();
  return summary && IsEnd(summary->status);
}

int Show(OpenedJob& job, const Request& request) {
  Screen screen;
  DirectoryWatch watch(job.directory.path());
  TeeSelection selection = request.selection;
  selection.none = request.masters_log;
  RankTee tee(job.directory.path(), selection);
  if (request.masters_log) tee.Add(MasterLog(job.directory.path()));
  tee.Discover();
  if (tee.sources() == 0 && !request.follow) {
    return Complain({ErrorKind::kNotFound, "job " + job.spec.id.text() + " has no " + request.what});
  }
  if (request.tail) tee.SkipToLastLines(*request.tail);
  while (true) {
    watch.Clear();
    // Asked before reading: whatever was printed before the end is then read.
    const bool ended = !request.follow || HasEnded(job);
    tee.Discover();
    while (tee.Pump(screen) || !screen.empty()) {
      pollfd reader{.fd = screen.waiting_for(), .events = POLLOUT, .revents = 0};
      if (!screen.empty()) poll(&reader, 1, -1);
      screen.Flush();
    }
    if (ended) break;
    watch.Await(kLookAgainMs);
  }
  tee.Finish(screen);
  screen.FlushBeforeLeaving();
  if (const uint64_t skipped = tee.skipped_bytes(); skipped > 0) {
    Complain(
        {ErrorKind::kNotFound, std::to_string(skipped) + " bytes had been freed by --log-max-bytes and are not shown"});
  }
  if (screen.out_error() == 0) return kExitSuccess;
  return Complain(
      {ErrorKind::kEnvironment, std::string("cannot write to standard output: ") + std::strerror(screen.out_error())});
}

int Run(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  Result<Request> request = ParseRequest(arguments, job->spec);
  if (!request) return Complain(request.error());
  if (!request->masters_log) {
    Complete(*request, FindAttempts(job->directory.path(), request->selection.instance), arguments.Has("--round"));
  }
  return Show(*job, *request);
}

}  // namespace

const Command kLogsCommand = {
    .name = "logs",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "what the job's processes printed",
    .details =
        "Without a selection: the output of all ranks in the last round, each line with its rank in front. The output "
        "of one "
        "rank alone comes as it is. Standard output and standard error of a rank are kept in two files; here both go "
        "to "
        "standard output, first the one, then the other. Old output that --log-max-bytes has freed is left out.",
    .examples =
        "aimaster logs -f nightly\n"
        "aimaster logs nightly --rank 3 --round 0 --tail 50\n"
        "aimaster logs nightly --instance worker-1\n"
        "aimaster logs nightly --instance aimaster-0",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
