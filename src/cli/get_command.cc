#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/command.h"
#include "cli/job_care.h"
#include "cli/job_lookup.h"
#include "cli/job_texts.h"
#include "cli/notify_file.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/text.h"
#include "core/parameter_parser.h"
#include "journal/job_json.h"

namespace aimaster::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kAnswerMax{500};  // a master that is there answers within a few

constexpr std::array kOptions = {Option{.name = "--json", .help = "as a JSON object"}};

std::string CommandText(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + QuoteParameterWord(word);
  return text;
}

std::string NodeText(const JobSnapshot& snapshot, NodeIndex node) {
  const auto found = snapshot.nodes.find(node);
  return found == snapshot.nodes.end() ? "-" : found->second.name;
}

std::string RanksText(const InstanceState& instance) {
  const uint32_t first = Value(instance.first_rank);
  return instance.ranks == 1 ? std::to_string(first)
                             : std::to_string(first) + "-" + std::to_string(first + instance.ranks - 1);
}

std::string ExitText(const InstanceState& instance) {
  if (instance.signal) return "signal " + std::to_string(*instance.signal);
  return instance.exit_code ? std::to_string(*instance.exit_code) : "";
}

std::vector<Cell> MasterRow(const JobId& id, const JobSnapshot& snapshot, bool alive) {
  const InstanceStatus status = IsEnd(snapshot.summary.status) ? InstanceStatus::kSucceeded
                                : alive                        ? InstanceStatus::kRunning
                                                               : InstanceStatus::kFailed;
  const uint64_t epoch = Value(snapshot.summary.epoch);
  return {MasterInstanceName(id),
          "",
          "",
          Cell(std::string(Name(status)), ColourOf(status)),
          std::to_string(epoch == 0 ? 0 : epoch - 1),
          ""};
}

std::string InstanceTable(const JobId& id, const JobSnapshot& snapshot, bool master_alive, const Terminal& terminal) {
  const std::vector<Column> columns = {{.title = "INSTANCE"},
                                       {.title = "NODE", .may_be_cut = true},
                                       {.title = "RANKS"},
                                       {.title = "STATUS"},
                                       {.title = "ATTEMPT", .align = Column::Align::kRight},
                                       {.title = "EXIT"}};
  std::vector<std::vector<Cell>> rows;
  for (const InstanceState& instance : snapshot.instances) {
    rows.push_back({instance.name, NodeText(snapshot, instance.node), RanksText(instance),
                    Cell(std::string(Name(instance.status)), ColourOf(instance.status)),
                    std::to_string(Value(instance.attempt)), ExitText(instance)});
  }
  rows.push_back(MasterRow(id, snapshot, master_alive));
  return FormatTable(columns, rows, terminal);
}

std::string NodeNotes(const JobSnapshot& snapshot, const Terminal& terminal) {
  std::string notes;
  for (const auto& [index, node] : snapshot.nodes) {
    if (!node.lost && !node.isolated) continue;
    notes +=
        terminal.Paint(Colour::kRed, "node " + OneLine(node.name) + (node.isolated ? " is isolated: " : " is lost ")) +
        OneLine(node.isolation_reason) + "\n";
  }
  return notes;
}

// What a journal says while nobody writes it was true when it was written last.
std::optional<Wall> AsOf(const OpenedJob& job, const JobSnapshot& snapshot, const JobCare& care) {
  if (care.leads || IsEnd(snapshot.summary.status)) return std::nullopt;
  std::optional<Wall> newest;
  for (const std::string& file : {job.directory.journal().string(), job.directory.journal().string() + "-wal"}) {
    struct stat status{};
    if (stat(file.c_str(), &status) != 0) continue;
    const Wall written{std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec)};
    newest = newest ? std::max(*newest, written) : written;
  }
  return newest;
}

std::string MasterText(const JobCare& care, const JobSpec& spec) {
  if (!care.master) return "none: " + care.trouble;
  return "process " + std::to_string(care.master->pid) + ", on " + ListeningText(*care.master, spec);
}

std::string Text(const OpenedJob& job, const JobSnapshot& snapshot, const JobCare& care,
                 const Result<std::vector<SinkState>>& sinks) {
  const Terminal terminal = LookAt(1);
  const JobSummary& summary = snapshot.summary;
  std::string text;
  const auto whole = [&](std::string_view label, const std::string& value, Colour colour = Colour::kNone) {
    text += terminal.Paint(Colour::kDim, label) + std::string(12 - label.size(), ' ') +
            terminal.Paint(colour, OneLine(value)) + "\n";
  };
  const auto line = [&](std::string_view label, const std::string& value, Colour colour = Colour::kNone) {
    whole(label, terminal.width > 14 ? CutToWidth(OneLine(value), terminal.width - 13) : value, colour);
  };
  const std::string budget = job.spec.fault_tolerance.enable_job_restart
                                 ? " of " + std::to_string(job.spec.fault_tolerance.max_num_of_job_restart) + " allowed"
                                 : ", none allowed";
  line("job", job.spec.id.text() + " (" + job.spec.name + ")", Colour::kBold);
  const std::optional<Wall> as_of = AsOf(job, snapshot, care);
  line("status", std::string(Name(summary.status)) + (as_of ? ", as of " + DateTime(*as_of) + ": nobody leads" : ""),
       ColourOf(summary.status));
  if (!summary.reason_message.empty()) line("reason", summary.reason_message);
  if (IsEnd(summary.status)) line("exit code", std::to_string(summary.exit_code));
  line("restarts", std::to_string(summary.restarts) + budget);
  line("round", std::to_string(Value(summary.round)));
  line("command", CommandText(job.spec.command));
  if (const std::string parameters = FormatParameters(job.spec.fault_tolerance); !parameters.empty()) {
    line("parameters", parameters);
  }
  line("created", DateTime(job.spec.create_time));
  line("running", DateTime(summary.running_time));
  line("ended", DateTime(summary.end_time));
  if (!IsEnd(summary.status)) {
    // Whole, however narrow the terminal: a cure that is cut off helps nobody.
    whole("master", MasterText(care, job.spec), care.master ? Colour::kNone : Colour::kRed);
    if (care.master && !care.trouble.empty()) whole("trouble", "nothing is decided: " + care.trouble, Colour::kRed);
    if (!care.note.empty()) whole("note", care.note, Colour::kYellow);
  }
  if (!sinks) whole("notify", sinks.error().message, Colour::kRed);
  for (const SinkState& sink : sinks ? *sinks : std::vector<SinkState>()) {
    const bool is_bad = sink.gave_up > 0 || !sink.trouble.empty();
    whole("notify", Describe(sink), is_bad ? Colour::kYellow : Colour::kNone);
  }
  line("directory", job.directory.path().string());
  return text + "\n" + InstanceTable(job.spec.id, snapshot, care.master.has_value(), terminal) +
         NodeNotes(snapshot, terminal);
}

json Json(const OpenedJob& job, const JobSnapshot& snapshot, const JobCare& care,
          const Result<std::vector<SinkState>>& sinks) {
  json members = GetJson(job.directory, job.spec, snapshot);
  const std::optional<Wall> as_of = AsOf(job, snapshot, care);
  members["status_as_of"] = as_of ? json(FormatRfc3339(*as_of)) : json(nullptr);
  members["supervisor_pid"] = care.supervisor ? json(care.supervisor->pid) : json(nullptr);
  members["listen_host"] = care.master ? json(job.spec.listen_address) : json(nullptr);
  members["listen_port"] = care.master ? json(care.master->port) : json(nullptr);
  members["tls_fingerprint"] =
      care.master && !care.master->tls_fingerprint.empty() ? json(care.master->tls_fingerprint) : json(nullptr);
  members["trouble"] = care.trouble;
  members["notifications"] = json::array();
  for (const SinkState& sink : sinks ? *sinks : std::vector<SinkState>()) {
    members["notifications"].push_back({{"sink", sink.name},
                                        {"type", sink.type},
                                        {"delivered", sink.delivered},
                                        {"waiting", sink.waiting},
                                        {"gave_up", sink.gave_up},
                                        {"trouble", sink.trouble}});
  }
  return members;
}

int Run(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  const Result<JobSnapshot> snapshot = job->reader.ReadSnapshot();
  if (!snapshot) return Complain(snapshot.error());
  // Of a job that has ended nobody is asked.
  const JobCare care = IsEnd(snapshot->summary.status) ? JobCare{} : LookAtCare(job->directory, kAnswerMax);
  const Result<std::vector<SinkState>> sinks = ReadSinkStates(job->directory, job->spec, job->reader);
  if (arguments.Has("--json")) return PrintJson(Json(*job, *snapshot, care, sinks));
  return Print(Text(*job, *snapshot, care, sinks));
}

}  // namespace

const Command kGetCommand = {
    .name = "get",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "a job's status and its instances",
    .details =
        "What the job's journal says at this moment, also while no master runs; then the status says from when it is. "
        "The lines \"master\", \"trouble\" and \"note\" say who leads the job and where its master listens (with the "
        "fingerprint of its certificate beyond loopback), what keeps it from deciding, and what sets that right.\n\n"
        "--json has the same as master_pid, supervisor_pid, listen_host, listen_port, tls_fingerprint, trouble and "
        "status_as_of; what there is not is null, trouble then empty.\n\n"
        "Of a job that was started with --notify there is a line \"notify\" for each sink: how many events it was "
        "told, "
        "how many wait, how many were given up, and what it answered last, where it takes nothing; --json has them in "
        "notifications.",
    .examples = "aimaster get nightly\naimaster get --json dlc1a2b | jq .status",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
