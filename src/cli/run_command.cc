#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>

#include "cli/command.h"
#include "cli/command_lookup.h"
#include "cli/directory_watch.h"
#include "cli/follower.h"
#include "cli/interrupts.h"
#include "cli/job_builder.h"
#include "cli/job_care.h"
#include "cli/launch_master.h"
#include "cli/listen_check.h"
#include "cli/notify_file.h"
#include "cli/report.h"
#include "cli/rule_file.h"
#include "cli/text.h"
#include "journal/job_directory.h"
#include "journal/job_reader.h"

namespace aimaster::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kJournalMax{10'000};
constexpr int kJournalPollMs = 5;
constexpr std::chrono::milliseconds kAddressMax{2000};

constexpr std::array kOptions = {
    Option{.name = "--name", .value = "NAME", .help = "what to call the job; default: the script's or program's name"},
    Option{.name = "--error-monitoring-args",
           .value = "STRING",
           .help = "fault-tolerance parameters as one string, as the DLC service takes them",
           .repeatable = true,
           .value_is_flags = true},
    Option{.name = "--env",
           .value = "NAME=VALUE",
           .help = "a variable for the ranks; may be repeated",
           .repeatable = true},
    Option{.name = "--keep-env",
           .help =
               "also pass on inherited variables that say who a process is within another job (RANK, SLURM_PROCID, …)"},
    Option{.name = "--workdir", .value = "DIR", .help = "where the ranks start; default: here"},
    Option{.name = "--log-dir", .value = "DIR", .help = "where the ranks' output goes; default: the job's directory"},
    Option{.name = "--listen",
           .value = "ADDRESS",
           .help = "the IP address (or localhost) that the job's master listens on; default: 127.0.0.1. Beyond "
                   "loopback it always speaks TLS. The port is chosen by the system; `aimaster get` shows it"},
    Option{.name = "--tls-cert",
           .value = "FILE",
           .help = "the master's certificate (PEM), in place of one that the job makes itself; also turns TLS on on "
                   "loopback"},
    Option{.name = "--tls-key", .value = "FILE", .help = "the private key (PEM) that belongs to --tls-cert"},
    Option{.name = "--rules",
           .value = "FILE",
           .help =
               "rules of your own (YAML, docs/rules.md), which override and add to those by which failures are judged"},
    Option{.name = "--notify",
           .value = "FILE",
           .help = "whom to tell of what happens (YAML, docs/notifications.md); `aimaster notify test FILE` tries it"},
    kTeeOption,
    Option{.name = "--detach", .short_name = "-d", .help = "print the job's id and return at once"},
};

Status CheckDirectories(const JobSpec& spec) {
  std::error_code error;
  if (!fs::is_directory(spec.working_directory, error)) {
    return Fail(ErrorKind::kUsage, "--workdir: there is no directory " + InQuotes(spec.working_directory));
  }
  if (spec.log_directory.empty()) return {};
  fs::create_directories(spec.log_directory, error);
  if (!error && access(spec.log_directory.c_str(), W_OK | X_OK) != 0) error = {errno, std::generic_category()};
  if (error) {
    return Fail(ErrorKind::kEnvironment,
                "--log-dir: cannot write to " + InQuotes(spec.log_directory) + ": " + std::strerror(error.value()));
  }
  return {};
}

std::optional<std::string> PathOf(const JobSpec& spec) {
  const auto found = spec.environment.find("PATH");
  return found == spec.environment.end() ? std::nullopt : std::optional(found->second);
}

Result<JobSpec> MakeSpec(const Arguments& arguments) {
  std::error_code error;
  Surroundings surroundings{.working_directory = fs::current_path(error)};
  if (error) return Fail(ErrorKind::kEnvironment, "the current directory is gone: cd to one that exists");
  size_t variables = 0;
  while (environ[variables] != nullptr) ++variables;
  surroundings.environment = std::span<const char* const>(environ, variables);
  surroundings.now = {std::chrono::system_clock::now().time_since_epoch()};
  if (getrandom(&surroundings.random, sizeof surroundings.random, 0) != sizeof surroundings.random) {
    return Fail(ErrorKind::kEnvironment, std::string("no random bytes for a job id: ") + std::strerror(errno));
  }
  return BuildJob(arguments, surroundings);
}

// A script that goes on with the id has to find the job in every command.
Status AwaitJournal(const JobDirectory& directory, const ProcessIdentity& supervisor) {
  const ProcessHandle handle(supervisor);
  const DirectoryWatch watch(directory.path());
  const auto deadline = std::chrono::steady_clock::now() + kJournalMax;
  while (true) {
    const Result<JobReader> reader = JobReader::Open(directory);
    if (reader) return {};
    const bool too_late = std::chrono::steady_clock::now() > deadline;
    if (handle.HasEnded() || too_late) {
      return Fail(ErrorKind::kEnvironment, "the master of job " + directory.path().filename().string() +
                                               (too_late ? " is slow to start" : " could not be started") + "; see " +
                                               InQuotes(MasterLog(directory.path()).string()));
    }
    watch.Await(kJournalPollMs);
  }
}

// The journal comes a moment before the port.
void TellAddress(const JobDirectory& directory, const JobSpec& spec) {
  const auto deadline = std::chrono::steady_clock::now() + kAddressMax;
  Result<MasterAddress> master = directory.FindLiveMaster();
  while (!master && std::chrono::steady_clock::now() < deadline) {
    poll(nullptr, 0, kJournalPollMs);
    master = directory.FindLiveMaster();
  }
  if (master) Complain({ErrorKind::kEnvironment, "the job's master listens on " + ListeningText(*master, spec)});
}

int StartAndFollow(const JobSpec& spec, const RulesFiles* rules, const std::string& notify_plan,
                   const Arguments& arguments) {
  // From here on nothing that a person does may leave half a job.
  Interrupts interrupts;
  const Result<Home> home = Home::Find();
  if (!home) return Complain(home.error());
  const Result<JobDirectory> directory = JobDirectory::Create(*home, spec, rules, notify_plan);
  if (!directory) return Complain(directory.error());
  const Result<ProcessIdentity> supervisor = LaunchMaster(directory->path());
  if (!supervisor) {
    std::error_code ignored;
    fs::remove_all(directory->path(), ignored);
    return Complain(supervisor.error());
  }
  if (arguments.Has("--detach")) {
    if (Status started = AwaitJournal(*directory, *supervisor); !started) return Complain(started.error());
    if (arguments.Has("--listen")) TellAddress(*directory, spec);
    return Print(spec.id.text() + "\n");
  }
  FollowOptions options{.tell_address = arguments.Has("--listen"), .supervisor = *supervisor};
  if (arguments.Has("--tee")) options.tee = ParseTee(arguments.Text("--tee"));
  return Follow(*directory, spec, interrupts, std::move(options));
}

// What holds a secret of the notify file is not passed on, unless it was given for the ranks by --env.
void HideFromRanks(const std::vector<std::string>& variables, const Arguments& arguments, JobSpec& spec) {
  const std::vector<std::string> given = arguments.Texts("--env");
  for (const std::string& name : variables) {
    const bool is_given =
        std::ranges::any_of(given, [&](const std::string& one) { return one.starts_with(name + "="); });
    if (!is_given) spec.environment.erase(name);
  }
}

int Run(const Arguments& arguments) {
  if (arguments.operands.empty()) {
    return Complain({ErrorKind::kUsage, "the command is missing: aimaster run [OPTIONS] -- python train.py"});
  }
  Result<JobSpec> spec = MakeSpec(arguments);
  if (!spec) return Complain(spec.error());
  if (Status directories = CheckDirectories(*spec); !directories) return Complain(directories.error());
  if (Status listening = CheckListening(*spec); !listening) return Complain(listening.error());
  const auto failure = CheckProgram(spec->command.front(), spec->working_directory, PathOf(*spec));
  if (failure) {
    Complain({ErrorKind::kUsage, failure->message});
    return failure->exit_code;
  }
  std::string notify_plan;
  if (arguments.Has("--notify")) {
    Result<LoadedNotifyFile> file = LoadNotifyFile(arguments.Text("--notify"));
    if (!file) return Complain(file.error());
    HideFromRanks(file->variables, arguments, *spec);
    notify_plan = std::move(file->plan);
  }
  if (!arguments.Has("--rules")) return StartAndFollow(*spec, nullptr, notify_plan, arguments);
  const Result<LoadedRules> rules = LoadRuleFile(arguments.Text("--rules"));
  if (!rules) return Complain(rules.error());
  if (!rules->note.empty()) Complain({ErrorKind::kEnvironment, rules->note});
  return StartAndFollow(*spec, &rules->files, notify_plan, arguments);
}

}  // namespace

const Command kRunCommand = {
    .name = "run",
    .operands = "-- CMD…",
    .operands_min = 0,
    .operands_max = SIZE_MAX,
    .summary = "start a job here and follow it",
    .details =
        "Starts a job whose workers all run CMD, with the variables that torchrun would set (RANK, LOCAL_RANK, "
        "WORLD_SIZE, "
        "MASTER_ADDR, MASTER_PORT and more), and follows it: events go to standard error, the output of rank 0 to the "
        "streams that it wrote to. CMD is executed as it stands, without a shell. Write -- before it; from CMD on "
        "nothing "
        "is an option of aimaster.\n"
        "\n"
        "The job has a master of its own that needs neither this command nor the terminal. Ctrl-C (SIGINT) and SIGTERM "
        "stop "
        "the job: SIGTERM to its processes, --stop-grace, SIGKILL; a second one stops it at once. SIGUSR1 and SIGUSR2 "
        "are "
        "passed on to the ranks. When the terminal goes away (SIGHUP), or this command is killed, the job runs on: "
        "`aimaster "
        "attach JOB` comes back to it.\n"
        "\n"
        "The exit code is 0 when the job succeeded; when it failed, that of the process that made it fail (128 + n "
        "when "
        "signal n killed it), or 1 when no process did; 130 or 143 when it was stopped by Ctrl-C or SIGTERM; 2 when "
        "the "
        "command line is wrong, 127 when CMD is not found, 126 when it is not executable: then nothing was started.\n"
        "\n"
        "A failed job is restarted when --enable-job-restart=True and its failure is worth it; `aimaster help params` "
        "and "
        "docs/parameters.md say how that is decided. The fault-tolerance parameters may be given one by one, or as one "
        "string with --error-monitoring-args; the same one given twice with different values is an error.",
    .examples =
        "aimaster run --workers 8 --enable-job-restart=True -- python train.py --lr 0.1\n"
        "aimaster run --workers 4 --local-nodes 2 --devices 0,1,2,3 -- python train.py\n"
        "aimaster run --error-monitoring-args '--enable-job-restart True --max-num-of-job-restart 5' -- ./train\n"
        "job=$(aimaster run --detach --name nightly -- python train.py)",
    .options = kOptions,
    .run = &Run,
    .takes_parameters = TakesParameters::kYes,
    .operands_end_options = true,
};

}  // namespace aimaster::cli
