#include "c4d/inspector_log.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "c4d/flight_recorder.h"
#include "c4d/json_tree.h"
#include "c4d/limits.h"
#include "c4d/pickle_reader.h"
#include "core/quote.h"

namespace aimaster::c4d {
namespace {

constexpr size_t kLogBeginningBytes = 4096;
constexpr size_t kLineMaxBytes = 1 << 20;               // with the events of each channel
constexpr int64_t kMicrosecondsMax = int64_t{1} << 52;  // in 2112

class LogReader {
 public:
  explicit LogReader(size_t records_max) : records_max_(records_max) {}

  Result<InspectorLog> Read(std::string_view bytes) && {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const std::string_view line = bytes.substr(0, end);
      bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      if (line.size() > kLineMaxBytes || !ReadLine(line)) ++log_.lines_left_out;
      if (!refusal_.empty()) return Fail(ErrorKind::kEnvironment, refusal_);
    }
    return std::move(log_);
  }

 private:
  bool ReadLine(std::string_view line) {
    const Result<DataTree> tree = ReadJsonTree(line);
    if (!tree || !tree->trouble.empty() || tree->nodes.empty()) return false;
    const DataNode& root = tree->Root();
    const DataNode* header = tree->Find(root, "header");
    const bool is_marker = tree->Find(root, "dump_stats") != nullptr;
    if (is_marker || header != nullptr) {
      context_ = ReadContext(*tree, header, tree->Find(root, "metadata"));
      is_of_many_ = is_marker;
      if (is_marker) return context_.has_value();
    }
    // A line without a header belongs to the marker before it, and to nothing else.
    if (!context_ || (header == nullptr && !is_of_many_)) return false;
    if (const DataNode* collective = tree->Find(root, "coll_perf")) return ReadOperation(*tree, *collective, "coll");
    if (const DataNode* transfer = tree->Find(root, "p2p_perf")) return ReadOperation(*tree, *transfer, "p2p");
    return tree->Find(root, "proxy_trace") != nullptr;  // known, and of no use
  }

  struct Context {
    uint32_t group = 0;
    Duration written{};
  };

  std::optional<Context> ReadContext(const DataTree& tree, const DataNode* header, const DataNode* metadata) {
    if (header == nullptr || metadata == nullptr) return std::nullopt;
    const std::string_view id = tree.TextOf(tree.Find(*header, "id"));
    const std::optional<int64_t> position = tree.IntegerOf(tree.Find(*header, "rank"));
    const std::optional<int64_t> size = tree.IntegerOf(tree.Find(*header, "n_ranks"));
    const std::optional<int64_t> written = tree.IntegerOf(tree.Find(*metadata, "dump_timestamp_us"));
    const std::optional<int64_t> pid = tree.IntegerOf(tree.Find(*metadata, "pid"));
    const std::string_view host = tree.TextOf(tree.Find(*metadata, "hostname"));
    if (id.empty() || !position || !size || !written || !pid || host.empty()) return std::nullopt;
    if (*size < 1 || *size > int64_t{kRanksMax} || *position < 0 || *position >= *size) return std::nullopt;
    if (*written < 0 || *written > kMicrosecondsMax) return std::nullopt;
    const std::string process = "process " + std::to_string(*pid) + " on " + Printable(host.substr(0, kNameMaxBytes));
    if (log_.process.empty()) log_.process = process;
    if (log_.process != process) {
      refusal_ = "tells of several processes: give it as they wrote it, a file for each";
      return std::nullopt;
    }
    const std::optional<uint32_t> group =
        GroupOf(Printable(id.substr(0, kNameMaxBytes)), static_cast<uint32_t>(*size), static_cast<uint32_t>(*position));
    if (!group) return std::nullopt;
    return Context{.group = *group, .written = std::chrono::microseconds(*written)};
  }

  std::optional<uint32_t> GroupOf(const std::string& id, uint32_t size, uint32_t position) {
    const auto [found, is_new] = numbers_.try_emplace({id, size}, static_cast<uint32_t>(log_.groups.size()));
    if (is_new) {
      if (log_.groups.size() == kGroupsPerDumpMax) {
        numbers_.erase(found);
        return std::nullopt;
      }
      log_.groups.push_back({.id = id, .size = size, .position = position});
    }
    if (log_.groups[found->second].position != position) {
      refusal_ = "is of one process for several devices, which can't be told apart";
    }
    return found->second;
  }

  bool ReadOperation(const DataTree& tree, const DataNode& operation, const std::string& kind) {
    const std::string_view name = tree.TextOf(tree.Find(operation, kind));
    const std::optional<int64_t> sequence = tree.IntegerOf(tree.Find(operation, kind + "_sn"));
    const std::optional<int64_t> bytes = tree.IntegerOf(tree.Find(operation, kind + "_msg_size_bytes"));
    const std::optional<double> took = NumberOf(tree.Find(operation, kind + "_exec_time_us"));
    const std::string_view source = tree.TextOf(tree.Find(operation, kind + "_timing_source"));
    constexpr int64_t kSequenceMax = INT64_MAX / 64;  // it is numbered among all kinds
    if (name.empty() || !sequence || *sequence < 0 || *sequence > kSequenceMax || !bytes || *bytes < 0 || !took) {
      return false;
    }
    if (!source.empty() && source != "kernel_gpu") {
      ++log_.lines_without_device;
      return true;
    }
    const Function function = FunctionOf(name);
    if (IsPointToPoint(function) != (kind == "p2p")) return false;
    if (log_.records.size() == records_max_) {
      refusal_ = "is one too many: " + std::to_string(records_max_) + " operations more could be taken in";
      return false;
    }
    log_.records.push_back({.group = context_->group,
                            .function = function,
                            .sequence = static_cast<uint64_t>(*sequence),
                            .bytes = static_cast<uint64_t>(*bytes),
                            .duration = Duration(static_cast<int64_t>(*took * 1000)),
                            .written = context_->written});
    return true;
  }

  // Microseconds, whole or not; none: not such a number.
  static std::optional<double> NumberOf(const DataNode* node) {
    constexpr double kHour = 3.6e9;
    if (node == nullptr) return std::nullopt;
    const double number = node->kind == DataKind::kInteger ? static_cast<double>(node->integer) : node->real;
    const bool is_number = node->kind == DataKind::kInteger || node->kind == DataKind::kReal;
    return is_number && number >= 0 && number <= kHour ? std::optional(number) : std::nullopt;
  }

  size_t records_max_;
  InspectorLog log_;
  std::map<std::pair<std::string, uint32_t>, uint32_t> numbers_;
  std::optional<Context> context_;
  bool is_of_many_ = false;
  std::string refusal_;
};

}  // namespace

bool LooksLikeInspectorLog(std::string_view bytes) {
  if (LooksLikePickle(bytes)) return false;
  const std::string_view beginning = bytes.substr(0, kLogBeginningBytes);
  return beginning.contains("\"inspector_output_format_version\"") || beginning.contains("\"coll_perf\"") ||
         beginning.contains("\"p2p_perf\"");
}

Result<InspectorLog> ReadInspectorLog(std::string_view bytes, size_t records_max) {
  Result<InspectorLog> log = LogReader(records_max).Read(bytes);
  if (log && log->groups.empty()) {
    return Fail(ErrorKind::kEnvironment, "is a log of the Inspector without a line that is whole");
  }
  return log;
}

}  // namespace aimaster::c4d
