#include "cli/job_builder.h"

#include <algorithm>
#include <array>

#include "cli/rank_environment_scrub.h"
#include "cli/text.h"
#include "core/parameter_parser.h"
#include "core/quote.h"
#include "core/roles.h"
#include "wire/stream.h"

namespace aimaster::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNameMaxBytes = 128;

std::string FileName(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return name.empty() ? path : name;
}

// "python3.11" too.
bool IsInterpreter(const std::string& program) {
  constexpr std::array<std::string_view, 8> kInterpreters = {"python", "pypy",  "bash", "sh",
                                                             "perl",   "julia", "ruby", "node"};
  std::string name = FileName(program);
  name.erase(std::ranges::find_if(name, [](char c) { return c >= '0' && c <= '9'; }), name.end());
  return std::ranges::find(kInterpreters, name) != kInterpreters.end();
}

Status CheckName(const std::string& name) {
  if (!name.empty() && name.size() <= kNameMaxBytes && IsPrintable(name)) return {};
  return Fail(ErrorKind::kUsage, "--name is " + Quoted(name) + "; allowed: 1 to " + std::to_string(kNameMaxBytes) +
                                     " bytes of printable text");
}

std::string AbsolutePath(const std::string& path, const fs::path& directory) {
  fs::path absolute = (directory / path).lexically_normal();
  if (!absolute.has_filename() && absolute.has_relative_path()) absolute = absolute.parent_path();  // "a/" → "a"
  return absolute.string();
}

Result<std::vector<GivenParameter>> GivenParameters(const Arguments& arguments) {
  std::vector<GivenParameter> all;
  for (const std::string& text : arguments.Texts("--error-monitoring-args")) {
    Result<std::vector<GivenParameter>> given = SplitParameterString(text);
    if (!given) return Fail(ErrorKind::kUsage, "in --error-monitoring-args: " + given.error().message);
    all.insert(all.end(), given->begin(), given->end());
  }
  all.insert(all.end(), arguments.parameters.begin(), arguments.parameters.end());
  return all;
}

Status ApplyListening(const Arguments& arguments, const fs::path& directory, JobSpec& spec) {
  if (arguments.Has("--listen")) {
    spec.listen_address = arguments.Text("--listen");
    if (!Endpoints(spec.listen_address, 0, /*encrypted=*/true)) {
      return Fail(ErrorKind::kUsage, "--listen: " + Quoted(spec.listen_address) +
                                         " is not an IP address; give one of this machine's, or 0.0.0.0");
    }
  }
  const std::pair<const char*, std::string*> files[] = {{"--tls-cert", &spec.tls_certificate},
                                                        {"--tls-key", &spec.tls_key}};
  for (const auto& [option, path] : files) {
    if (!arguments.Has(option)) continue;
    if (arguments.Text(option).empty())
      return Fail(ErrorKind::kUsage, std::string(option) + " is empty; it takes a file");
    *path = AbsolutePath(arguments.Text(option), directory);
  }
  if (spec.tls_certificate.empty() != spec.tls_key.empty()) {
    return Fail(ErrorKind::kUsage, "--tls-cert and --tls-key belong together: give both, or neither");
  }
  return {};
}

bool IsGiven(std::span<const ParameterOrigin> given, std::string_view name) {
  return std::ranges::find(given, name, &ParameterOrigin::name) != given.end();
}

// Roles and slots of an MPI job, from the options that mean workers and their ranks elsewhere.
Status CompleteMpi(std::span<const ParameterOrigin> given, JobSpec& spec) {
  const auto of = [&spec](Role role) { return std::ranges::find(spec.roles, role, &RoleSpec::role); };
  for (const Role role : {Role::kMaster, Role::kChief, Role::kPs, Role::kEvaluator}) {
    if (of(role) == spec.roles.end() || of(role)->count == 0) continue;
    return Fail(ErrorKind::kUsage, "an MPI job has no " + std::string(Name(role)) + ": leave --" +
                                       std::string(Name(role)) + " out; its roles are launcher and --workers");
  }
  const auto worker = of(Role::kWorker);
  const bool has_workers = worker != spec.roles.end() && IsGiven(given, "workers");
  const bool has_slots = worker != spec.roles.end() && IsGiven(given, "nproc-per-node");
  spec.mpi_slots = has_slots ? worker->ranks_per_instance : 0;
  spec.roles = MpiRoles(has_workers ? worker->count : 0);
  return {};
}

void NoteSharedDevices(JobSpec& spec) {
  uint64_t ranks = 0;
  for (const RoleSpec& role : spec.roles) ranks += uint64_t{role.count} * role.ranks_per_instance;
  if (spec.devices.empty() || ranks <= spec.devices.size()) return;
  spec.notes.push_back(std::to_string(ranks) + " ranks share " + std::to_string(spec.devices.size()) +
                       (spec.devices.size() == 1 ? " device" : " devices") +
                       ": give --devices as many as there are ranks, or start fewer ranks");
}

}  // namespace

std::string DefaultJobName(std::span<const std::string> command) {
  const std::string program = command.empty() ? "job" : FileName(command.front());
  std::string name = program;
  if (!command.empty() && IsInterpreter(command.front())) {
    for (const std::string& word : command.subspan(1)) {
      // Behind -c comes a program's text, behind -m a module's name, not a file's.
      if (word == "-c") break;
      if (word.starts_with('-')) continue;
      name = FileName(word);
      break;
    }
  }
  if (CheckName(name)) return name;
  return CheckName(program) ? program : "job";
}

Result<JobSpec> BuildJob(const Arguments& arguments, const Surroundings& surroundings) {
  JobSpec spec;
  spec.id = JobId::FromRandom(surroundings.random);
  spec.create_time = surroundings.now;
  spec.command = arguments.operands;
  spec.name = arguments.Has("--name") ? arguments.Text("--name") : DefaultJobName(spec.command);
  if (Status status = CheckName(spec.name); !status) return std::unexpected(status.error());

  Result<std::map<std::string, std::string>> environment =
      JobEnvironment(surroundings.environment, arguments.Has("--keep-env"), arguments.Texts("--env"));
  if (!environment) return std::unexpected(environment.error());
  spec.environment = *std::move(environment);

  spec.working_directory = AbsolutePath(arguments.Text("--workdir"), surroundings.working_directory);
  if (arguments.Has("--log-dir")) {
    if (arguments.Text("--log-dir").empty()) return Fail(ErrorKind::kUsage, "--log-dir is empty; it takes a directory");
    spec.log_directory = AbsolutePath(arguments.Text("--log-dir"), surroundings.working_directory);
  }

  if (Status listening = ApplyListening(arguments, surroundings.working_directory, spec); !listening) {
    return std::unexpected(listening.error());
  }

  const Result<std::vector<GivenParameter>> given = GivenParameters(arguments);
  if (!given) return std::unexpected(given.error());
  const auto applied = ApplyParameters(*given, spec);
  if (!applied) return std::unexpected(applied.error());
  if (spec.framework == Framework::kMpi) {
    if (Status completed = CompleteMpi(*applied, spec); !completed) return std::unexpected(completed.error());
  } else {
    CompleteRoles(spec.roles);
    if (Status roles = CheckRoles(spec); !roles) return std::unexpected(roles.error());
    NoteSharedDevices(spec);
  }
  return spec;
}

}  // namespace aimaster::cli
