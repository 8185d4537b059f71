#include <array>
#include <vector>

#include "cli/command.h"
#include "cli/job_lookup.h"
#include "cli/job_texts.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/text.h"
#include "core/parameter_parser.h"
#include "journal/job_json.h"

namespace aimaster::cli {
namespace {

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

std::string Text(const OpenedJob& job, const JobSnapshot& snapshot) {
  const Terminal terminal = LookAt(1);
  const JobSummary& summary = snapshot.summary;
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value, Colour colour = Colour::kNone) {
    const std::string cut = terminal.width > 14 ? CutToWidth(OneLine(value), terminal.width - 13) : OneLine(value);
    text +=
        terminal.Paint(Colour::kDim, label) + std::string(12 - label.size(), ' ') + terminal.Paint(colour, cut) + "\n";
  };
  const Result<MasterAddress> master = job.directory.FindLiveMaster();
  const std::string budget = job.spec.fault_tolerance.enable_job_restart
                                 ? " of " + std::to_string(job.spec.fault_tolerance.max_num_of_job_restart) + " allowed"
                                 : ", none allowed";
  line("job", job.spec.id.text() + " (" + job.spec.name + ")", Colour::kBold);
  line("status", std::string(Name(summary.status)), ColourOf(summary.status));
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
    line("master",
         master ? "process " + std::to_string(master->pid) : "none runs: aimaster resume " + job.spec.id.text(),
         master ? Colour::kNone : Colour::kRed);
  }
  line("directory", job.directory.path().string());
  return text + "\n" + InstanceTable(job.spec.id, snapshot, master.has_value(), terminal) +
         NodeNotes(snapshot, terminal);
}

int Run(const Arguments& arguments) {
  Result<OpenedJob> job = OpenJob(arguments.operands.front());
  if (!job) return Complain(job.error());
  const Result<JobSnapshot> snapshot = job->reader.ReadSnapshot();
  if (!snapshot) return Complain(snapshot.error());
  if (arguments.Has("--json")) return PrintJson(GetJson(job->directory, job->spec, *snapshot));
  return Print(Text(*job, *snapshot));
}

}  // namespace

const Command kGetCommand = {
    .name = "get",
    .operands = "JOB",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "a job's status and its instances",
    .details = "What the job's journal says at this moment, also while no master runs.",
    .examples = "aimaster get nightly\naimaster get --json dlc1a2b | jq .status",
    .options = kOptions,
    .run = &Run,
};

}  // namespace aimaster::cli
