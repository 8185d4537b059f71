#include "c4d/ras_report.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "c4d/flight_recorder.h"
#include "c4d/json_tree.h"
#include "c4d/limits.h"
#include "core/quote.h"

namespace aimaster::c4d {
namespace {

constexpr size_t kRasBeginningBytes = 1024;
constexpr std::string_view kRasDevice = R"("nvml_dev":)";
constexpr std::string_view kRasStatus = R"("status")";
constexpr std::string_view kBlank = " \t\r\n";

std::string RasText(std::string_view text) { return Printable(text.substr(0, kNameMaxBytes)); }

// The comma that some versions leave out. None is left out: an empty text.
std::string WithMissingCommas(std::string_view bytes) {
  std::string repaired;
  size_t copied = 0;
  for (size_t at = bytes.find(kRasDevice); at != std::string_view::npos; at = bytes.find(kRasDevice, at)) {
    at += kRasDevice.size();
    const size_t number = bytes.find_first_not_of(kBlank, at);
    const size_t end = bytes.find_first_not_of("-0123456789", number);
    const size_t next = bytes.find_first_not_of(kBlank, end);
    if (next == std::string_view::npos || !bytes.substr(next).starts_with(kRasStatus)) continue;
    repaired.append(bytes.substr(copied, end - copied)).append(",");
    copied = end;
  }
  if (copied != 0) repaired.append(bytes.substr(copied));
  return repaired;
}

// "2026-06-19 06:51:56", of one clock: only differences mean something.
std::optional<int64_t> SecondsOf(std::string_view written) {
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0;
  const std::string text(written.substr(0, 32));
  if (std::sscanf(text.c_str(), "%4d-%2u-%2u %2u:%2u:%2u", &year, &month, &day, &hour, &minute, &second) != 6) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count() * int64_t{86'400} + hour * 3600 + minute * 60 + second;
}

// Of NCCL's results; none: it is well, or at work.
std::string_view ErrorWords(int64_t result) {
  constexpr std::array<std::string_view, 7> kWords = {"",
                                                      "an error of CUDA",
                                                      "a system error",
                                                      "an internal error",
                                                      "an invalid argument",
                                                      "an invalid use",
                                                      "a failure of another process"};
  constexpr int64_t kInProgress = 7;
  if (result == 0 || result == kInProgress) return "";
  return result > 0 && result < static_cast<int64_t>(kWords.size()) ? kWords[static_cast<size_t>(result)]
                                                                    : "an error that is not known";
}

class RasReader {
 public:
  explicit RasReader(const DataTree& tree) : tree_(tree) {}

  std::optional<RasCommunicator> ReadCommunicator(const DataNode& node) const {
    const std::optional<int64_t> size = tree_.IntegerOf(tree_.Find(node, "size"));
    const std::string_view hash = tree_.TextOf(tree_.Find(node, "hash"));
    if (hash.empty() || !size || *size < 1 || *size > int64_t{kRanksMax}) return std::nullopt;
    RasCommunicator communicator{.hash = RasText(hash),
                                 .secondary_hash = RasText(tree_.TextOf(tree_.Find(node, "secondary_hash"))),
                                 .size = static_cast<uint32_t>(*size)};
    ReadMembers(tree_.Find(node, "ranks"), false, communicator);
    ReadMembers(tree_.Find(node, "missing_ranks"), true, communicator);
    std::ranges::sort(communicator.members, {}, &RasMember::position);
    const auto doubles = std::ranges::unique(communicator.members, {}, &RasMember::position);
    if (!doubles.empty()) communicator.is_whole = false;
    communicator.members.erase(doubles.begin(), doubles.end());
    return communicator;
  }

 private:
  void ReadMembers(const DataNode* list, bool is_missing, RasCommunicator& communicator) const {
    if (list == nullptr || list->kind != DataKind::kList) communicator.is_whole = false;
    for (const uint32_t item : tree_.ItemsOf(list)) {
      const DataNode& node = tree_.nodes[item];
      const std::optional<int64_t> position = tree_.IntegerOf(tree_.Find(node, "rank"));
      if (!position || *position < 0 || *position >= int64_t{communicator.size}) {
        communicator.is_whole = false;
        continue;
      }
      RasMember& member = communicator.members.emplace_back();
      member.position = static_cast<uint32_t>(*position);
      member.process = ProcessOf(node);
      member.is_missing = is_missing;
      const DataNode* status = tree_.Find(node, "status");
      const bool is_told =
          status != nullptr && status->kind == DataKind::kDict &&
          (is_missing ? ReadWhyMissing(*status, member)
                      : ReadState(*status, member) && ReadCounts(tree_.Find(node, "collective_counts"), member.counts));
      if (!is_told) communicator.is_whole = false;
    }
  }

  std::string ProcessOf(const DataNode& node) const {
    const std::optional<int64_t> pid = tree_.IntegerOf(tree_.Find(node, "pid"));
    const std::optional<int64_t> device = tree_.IntegerOf(tree_.Find(node, "cuda_dev"));
    const std::string_view host = tree_.TextOf(tree_.Find(node, "host"));
    if (!pid || *pid < 0 || !device || host.empty()) return "";
    return "process " + std::to_string(*pid) + " on " + RasText(host) + ", device " + std::to_string(*device);
  }

  bool Is(const DataNode& status, std::string_view key) const {
    return tree_.BoolOf(tree_.Find(status, key)).value_or(false);
  }

  bool ReadWhyMissing(const DataNode& status, RasMember& member) const {
    member.trouble = Is(status, "considered_dead") ? "RAS considers it dead"
                     : Is(status, "unresponsive")  ? "it does not answer RAS"
                                                   : "it answers RAS, and does not know this communicator";
    return true;
  }

  bool ReadState(const DataNode& status, RasMember& member) const {
    const std::optional<int64_t> start = tree_.IntegerOf(tree_.Find(status, "init_state"));
    const std::optional<int64_t> error = tree_.IntegerOf(tree_.Find(status, "async_error"));
    member.is_starting = start.value_or(0) != 0;
    if (const std::string_view words = ErrorWords(error.value_or(0)); !words.empty()) {
      member.trouble = "NCCL reports " + std::string(words);
    } else if (const std::string_view why = ErrorWords(start.value_or(0)); !why.empty()) {
      member.trouble = "NCCL reports " + std::string(why) + " of its start";
    } else if (Is(status, "abort_flag")) {
      member.trouble = "it has given up the communicator";
    }
    return start.has_value() && error.has_value();
  }

  bool ReadCounts(const DataNode* counts, RasCounts& into) const {
    if (counts == nullptr || counts->kind != DataKind::kDict) return false;
    for (size_t i = 0; i + 1 < counts->items.size(); i += 2) {
      const std::string_view name = tree_.TextOf(&tree_.nodes[counts->items[i]]);
      const std::optional<int64_t> count = tree_.IntegerOf(&tree_.nodes[counts->items[i + 1]]);
      constexpr int64_t kSumMax = INT64_MAX / 64;  // of all kinds they are added up
      if (!count || *count < 0 || *count > kSumMax) return false;
      uint64_t& sum = into[static_cast<size_t>(FunctionOf(name))];
      sum = std::min(sum + static_cast<uint64_t>(*count), static_cast<uint64_t>(kSumMax));
    }
    return true;
  }

  const DataTree& tree_;
};

}  // namespace

bool LooksLikeRasReport(std::string_view bytes) {
  return LooksLikeJson(bytes) && bytes.substr(0, kRasBeginningBytes).contains("\"communicators");
}

Result<RasReport> ReadRasReport(std::string_view bytes) {
  if (bytes.size() > kDumpMaxBytes) {
    return Fail(ErrorKind::kEnvironment, "is larger than " + std::to_string(kDumpMaxBytes >> 20) + " MiB");
  }
  const std::string repaired = WithMissingCommas(bytes);
  const Result<DataTree> tree = ReadJsonTree(repaired.empty() ? bytes : repaired);
  if (!tree) return std::unexpected(tree.error());
  const DataNode* list = tree->nodes.empty() ? nullptr : tree->Find(tree->Root(), "communicators");
  if (list == nullptr || list->kind != DataKind::kList || !list->is_whole) {
    const std::string why = tree->trouble.empty() ? "lists no communicators" : tree->trouble.substr(3);
    return Fail(ErrorKind::kEnvironment,
                why + ", and a report of RAS counts only whole: what is missing may be where a rank waits");
  }
  RasReport report{.version = RasText(tree->TextOf(tree->Find(tree->Root(), "nccl_version"))),
                   .taken_seconds = SecondsOf(tree->TextOf(tree->Find(tree->Root(), "timestamp")))};
  for (const uint32_t item : list->items) {
    std::optional<RasCommunicator> communicator = RasReader(*tree).ReadCommunicator(tree->nodes[item]);
    if (!communicator) {
      return Fail(ErrorKind::kEnvironment, "holds a communicator without a hash or a size, and counts only whole");
    }
    report.communicators.push_back(std::move(*communicator));
  }
  return report;
}

}  // namespace aimaster::c4d
