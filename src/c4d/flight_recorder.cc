#include "c4d/flight_recorder.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "c4d/data_tree.h"
#include "c4d/json_tree.h"
#include "c4d/limits.h"
#include "c4d/pickle_reader.h"
#include "core/quote.h"

namespace aimaster::c4d {
namespace {

std::string BoundedName(std::string_view text) {
  if (text.size() <= kNameMaxBytes && IsPrintable(text)) return std::string(text);
  return Printable(text.substr(0, kNameMaxBytes));
}

std::optional<uint64_t> Counter(std::optional<int64_t> number) {
  return number && *number >= 0 ? std::optional<uint64_t>(*number) : std::nullopt;
}

bool HoldsUnfinished(const DataTree& tree, const DataNode& node) {
  return std::ranges::any_of(node.items, [&](uint32_t item) { return !tree.nodes[item].is_whole; });
}

// "[0, 1, 2]" as a text, or a list of numbers.
std::vector<Rank> ReadMembers(const DataTree& tree, const DataNode* node) {
  std::vector<Rank> members;
  const auto add = [&](std::optional<int64_t> number) {
    if (number && *number >= 0 && *number < int64_t{kRanksMax} && members.size() < kRanksMax) {
      members.push_back(Rank{static_cast<uint32_t>(*number)});
    }
  };
  for (const uint32_t item : tree.ItemsOf(node)) add(tree.IntegerOf(&tree.nodes[item]));
  std::string_view text = tree.TextOf(node);
  constexpr std::string_view kDigits = "0123456789";
  while (true) {
    const size_t begin = text.find_first_of(kDigits);
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const size_t end = std::min(text.find_first_not_of(kDigits), text.size());
    add(ParseInteger(text.substr(0, end)));
    text.remove_prefix(end);
  }
  std::ranges::sort(members);
  const auto [first, last] = std::ranges::unique(members);
  members.erase(first, last);
  return members;
}

void ReadGroups(const DataTree& tree, const DataNode* config, FlightRecorderDump& dump) {
  if (config == nullptr || config->kind != DataKind::kDict) return;
  dump.has_groups = config->is_whole && !HoldsUnfinished(tree, *config);
  for (size_t i = 0; i + 1 < config->items.size() && dump.groups.size() < kGroupsPerDumpMax; i += 2) {
    const DataNode& group = tree.nodes[config->items[i + 1]];
    if (group.kind != DataKind::kDict || !group.is_whole) continue;
    std::string_view name = tree.TextOf(tree.Find(group, "name"));
    if (name.empty()) name = tree.TextOf(&tree.nodes[config->items[i]]);
    if (name.empty()) continue;
    dump.groups.push_back({.name = BoundedName(name),
                           .description = BoundedName(tree.TextOf(tree.Find(group, "desc"))),
                           .members = ReadMembers(tree, tree.Find(group, "ranks"))});
  }
}

void ReadStatuses(const DataTree& tree, const DataNode* statuses, FlightRecorderDump& dump) {
  if (statuses == nullptr || statuses->kind != DataKind::kDict) return;
  dump.has_statuses = statuses->is_whole && !HoldsUnfinished(tree, *statuses);
  for (size_t i = 0; i + 1 < statuses->items.size() && dump.statuses.size() < kGroupsPerDumpMax; i += 2) {
    const std::optional<int64_t> id = tree.IntegerOf(&tree.nodes[statuses->items[i]]);
    const DataNode& status = tree.nodes[statuses->items[i + 1]];
    if (!id || status.kind != DataKind::kDict || !status.is_whole) continue;
    const auto number = [&](std::string_view key) { return Counter(tree.IntegerOf(tree.Find(status, key))); };
    dump.statuses.push_back({.group_id = *id,
                             .enqueued = number("last_enqueued_collective"),
                             .started = number("last_started_collective"),
                             .completed = number("last_completed_collective")});
  }
  std::ranges::sort(dump.statuses, {}, &DumpStatus::group_id);
}

// The elements in all tensors together.
uint64_t CountElements(const DataTree& tree, const DataNode* sizes) {
  uint64_t total = 0;
  const std::vector<uint32_t>& tensors = tree.ItemsOf(sizes);
  for (const uint32_t tensor : tensors) {
    uint64_t elements = 1;
    const std::vector<uint32_t>& dimensions = tree.ItemsOf(&tree.nodes[tensor]);
    if (dimensions.size() > kDimensionsMax) return kUnknown;
    for (const uint32_t item : dimensions) {
      const std::optional<uint64_t> dimension = Counter(tree.IntegerOf(&tree.nodes[item]));
      if (!dimension || __builtin_mul_overflow(elements, *dimension, &elements)) return kUnknown;
    }
    if (__builtin_add_overflow(total, elements, &total)) return kUnknown;
  }
  return tensors.empty() ? kUnknown : total;
}

// Whether all members give the same number of elements, or else the program is wrong.
bool MembersGiveAlike(Function function) {
  switch (function) {
    case Function::kAllReduce:
    case Function::kAllGather:
    case Function::kReduceScatter:
    case Function::kBroadcast:
    case Function::kReduce:
      return true;
    case Function::kAllToAll:
    case Function::kGather:
    case Function::kScatter:
    case Function::kScan:
    case Function::kBarrier:
    case Function::kSend:
    case Function::kReceive:
    case Function::kOtherCollective:
      return false;
  }
  return false;
}

// "nccl:send 0->3", "nccl:recv 0<-3": the position of the rank itself, and of the other.
void ReadPositions(std::string_view route, DumpEntry& entry) {
  for (const std::string_view arrow : {"->", "<-"}) {
    const size_t at = route.find(arrow);
    if (at == std::string_view::npos) continue;
    const std::optional<int64_t> own = ParseInteger(route.substr(0, at));
    const std::optional<int64_t> peer = ParseInteger(route.substr(at + arrow.size()));
    if (!own || !peer || *own < 0 || *peer < 0 || *own >= kRanksMax || *peer >= kRanksMax) continue;
    entry.own_position = static_cast<uint32_t>(*own);
    entry.peer_position = static_cast<uint32_t>(*peer);
  }
}

void ReadName(std::string_view written, DumpEntry& entry) {
  const size_t blank = std::min(written.find(' '), written.size());
  entry.name = BoundedName(written.substr(0, blank));
  entry.function = FunctionOf(written);
  entry.is_batch = entry.name.ends_with("coalesced") && entry.function == Function::kOtherCollective;
  if (IsPointToPoint(entry.function)) {
    ReadPositions(written.substr(std::min(blank + 1, written.size())), entry);
  }
}

void ReadTimes(const DataTree& tree, const DataNode& node, DumpEntry& entry) {
  entry.created_ns = std::max<int64_t>(tree.IntegerOf(tree.Find(node, "time_created_ns")).value_or(0), 0);
  const std::optional<int64_t> started = tree.IntegerOf(tree.Find(node, "time_discovered_started_ns"));
  const std::optional<int64_t> completed = tree.IntegerOf(tree.Find(node, "time_discovered_completed_ns"));
  entry.changed_ns = std::max({entry.created_ns, started.value_or(0), completed.value_or(0)});
  const std::string_view state = tree.TextOf(tree.Find(node, "state"));
  entry.is_done =
      state == "completed" || completed.value_or(0) > 0 || tree.BoolOf(tree.Find(node, "retired")).value_or(false);
  entry.tells_start = state == "started" || started.value_or(0) > 0;
  entry.is_started = entry.is_done || entry.tells_start;
}

DumpEntry ReadEntry(const DataTree& tree, const DataNode& node) {
  DumpEntry entry;
  entry.record = Counter(tree.IntegerOf(tree.Find(node, "record_id"))).value_or(0);
  entry.group_id = tree.IntegerOf(tree.Find(node, "pg_id"));
  if (const auto& group = tree.ItemsOf(tree.Find(node, "process_group")); !group.empty()) {
    entry.group = BoundedName(tree.TextOf(&tree.nodes[group[0]]));
    if (group.size() > 1) entry.description = BoundedName(tree.TextOf(&tree.nodes[group[1]]));
  }
  ReadName(tree.TextOf(tree.Find(node, "profiling_name")), entry);
  const DataNode* sequence = tree.Find(node, "collective_seq_id");
  if (sequence == nullptr) sequence = tree.Find(node, "seq_id");
  entry.collective_sequence = Counter(tree.IntegerOf(sequence)).value_or(0);
  entry.point_to_point_sequence = Counter(tree.IntegerOf(tree.Find(node, "p2p_seq_id"))).value_or(0);
  entry.is_point_to_point = tree.BoolOf(tree.Find(node, "is_p2p")).value_or(IsPointToPoint(entry.function));
  if (MembersGiveAlike(entry.function)) entry.count = CountElements(tree, tree.Find(node, "input_sizes"));
  if (const auto& types = tree.ItemsOf(tree.Find(node, "input_dtypes")); !types.empty()) {
    entry.type = BoundedName(tree.TextOf(&tree.nodes[types[0]]));
  }
  ReadTimes(tree, node, entry);
  return entry;
}

// A batch says how far those are that it stands for; where they are in the dump, it is not needed itself.
void CloseBatches(std::vector<DumpEntry>& entries) {
  using Key = std::tuple<std::string_view, uint64_t, uint64_t>;
  const auto key = [](const DumpEntry& entry) {
    return Key(entry.group, entry.collective_sequence, entry.point_to_point_sequence);
  };
  std::map<Key, const DumpEntry*> batches;
  for (const DumpEntry& entry : entries) {
    if (entry.is_batch) batches[key(entry)] = &entry;
  }
  if (batches.empty()) return;
  std::vector<bool> is_told(entries.size(), false);
  for (DumpEntry& entry : entries) {
    const auto batch = batches.find(key(entry));
    if (entry.is_batch || batch == batches.end() || batch->second->record < entry.record) continue;
    entry.is_started = entry.is_started || batch->second->is_started;
    entry.is_done = entry.is_done || batch->second->is_done;
    is_told[static_cast<size_t>(batch->second - entries.data())] = true;
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (is_told[i]) entries[i].is_done = true;
  }
}

void ReadEntries(const DataTree& tree, const DataNode* list, FlightRecorderDump& dump) {
  if (list == nullptr || (list->kind != DataKind::kList && list->kind != DataKind::kTuple)) return;
  dump.has_entries = list->is_whole && list->items.size() <= kEntriesPerDumpMax;
  for (const uint32_t item : list->items) {
    const DataNode& node = tree.nodes[item];
    if (node.kind != DataKind::kDict || !node.is_whole || dump.entries.size() == kEntriesPerDumpMax) {
      dump.has_entries = false;
      continue;
    }
    dump.entries.push_back(ReadEntry(tree, node));
  }
  std::ranges::sort(dump.entries, {}, [](const DumpEntry& entry) {
    return std::tuple(entry.record, entry.created_ns, entry.collective_sequence, entry.point_to_point_sequence);
  });
  CloseBatches(dump.entries);
}

bool TellsStarts(const FlightRecorderDump& dump) {
  return std::ranges::any_of(dump.statuses, [](const DumpStatus& status) { return status.started.has_value(); }) ||
         std::ranges::any_of(dump.entries, &DumpEntry::tells_start);
}

Result<DataTree> ReadTree(std::string_view bytes) {
  if (bytes.empty()) return Fail(ErrorKind::kEnvironment, "is empty");
  if (bytes.size() > kDumpMaxBytes) {
    return Fail(ErrorKind::kEnvironment, "is larger than " + std::to_string(kDumpMaxBytes >> 20) + " MiB");
  }
  if (LooksLikePickle(bytes)) return ReadPickle(bytes);
  if (LooksLikeJson(bytes)) return ReadJsonTree(bytes);
  return Fail(ErrorKind::kEnvironment, "is neither a pickle nor JSON");
}

// Names in the order in which the groups were made; none where they do not tell it.
std::optional<std::vector<std::pair<int64_t, std::string>>> NamesInOrder(const FlightRecorderDump& dump) {
  std::vector<std::pair<int64_t, std::string>> names;
  for (const DumpGroup& group : dump.groups) {
    const std::optional<int64_t> number = ParseInteger(group.name);
    if (!number) return std::nullopt;
    names.emplace_back(*number, group.name);
  }
  std::ranges::sort(names);
  const auto [first, last] = std::ranges::unique(names);
  names.erase(first, last);
  return names;
}

}  // namespace

Function FunctionOf(std::string_view profiling_name) {
  std::string name;
  const size_t colon = profiling_name.find(':');
  for (const char letter : profiling_name.substr(colon == std::string_view::npos ? 0 : colon + 1)) {
    if (letter == ' ') break;
    if (letter != '_') name += static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
  }
  // The first that is found: a longer name stands before those that it holds.
  constexpr std::array<std::pair<std::string_view, Function>, 13> kWords = {{
      {"barrier", Function::kBarrier},
      {"send", Function::kSend},
      {"recv", Function::kReceive},
      {"reducescatter", Function::kReduceScatter},
      {"allreduce", Function::kAllReduce},
      {"allgather", Function::kAllGather},
      {"alltoall", Function::kAllToAll},
      {"broadcast", Function::kBroadcast},
      {"reduce", Function::kReduce},
      {"gather", Function::kGather},
      {"scatter", Function::kScatter},
      {"scan", Function::kScan},
      {"receive", Function::kReceive},
  }};
  for (const auto& [word, function] : kWords) {
    if (name.contains(word)) return function;
  }
  return Function::kOtherCollective;
}

Result<FlightRecorderDump> ReadFlightRecorderDump(std::string_view bytes) {
  const Result<DataTree> tree = ReadTree(bytes);
  if (!tree) return std::unexpected(tree.error());
  if (tree->nodes.empty() || tree->Root().kind != DataKind::kDict) {
    return Fail(ErrorKind::kEnvironment, tree->trouble.empty() ? "is no Flight Recorder dump"
                                                               : "holds nothing that can be used: " + tree->trouble);
  }
  const DataNode& root = tree->Root();
  const DataNode* config = tree->Find(root, "pg_config");
  const DataNode* statuses = tree->Find(root, "pg_status");
  const DataNode* entries = tree->Find(root, "entries");
  if (config == nullptr && statuses == nullptr && entries == nullptr) {
    return Fail(ErrorKind::kEnvironment, tree->trouble.empty() ? "is no Flight Recorder dump"
                                                               : "holds nothing that can be used: " + tree->trouble);
  }
  FlightRecorderDump dump;
  dump.version = BoundedName(tree->TextOf(tree->Find(root, "version")));
  if (!dump.version.empty() && !dump.version.starts_with("2.")) {
    return Fail(ErrorKind::kVersion, "is a dump of version " + Quoted(dump.version) + "; 2.x can be read");
  }
  dump.is_whole = tree->trouble.empty();
  dump.trouble = tree->trouble;
  ReadGroups(*tree, config, dump);
  ReadStatuses(*tree, statuses, dump);
  ReadEntries(*tree, entries, dump);
  dump.tells_starts = TellsStarts(dump);
  return dump;
}

std::map<int64_t, std::string> JoinGroups(const FlightRecorderDump& dump) {
  std::map<int64_t, std::string> joined;
  for (const DumpEntry& entry : dump.entries) {
    if (entry.group_id && !entry.group.empty()) joined[*entry.group_id] = entry.group;
  }
  if (!dump.has_groups || !dump.has_statuses) return joined;
  const auto names = NamesInOrder(dump);
  if (!names) return joined;
  // The numbers between two that are known, and the names between the two of those.
  std::map<int64_t, std::string> known = joined;
  auto status = dump.statuses.begin();
  auto name = names->begin();
  const auto join_until = [&](auto status_end, auto name_end) {
    if (status_end - status == name_end - name) {
      for (; status != status_end; ++status, ++name) joined.emplace(status->group_id, name->second);
    }
    status = status_end;
    name = name_end;
  };
  for (const auto& [id, group] : known) {
    const auto fixed_status = std::ranges::find(dump.statuses, id, &DumpStatus::group_id);
    const auto fixed_name = std::ranges::find(*names, group, &std::pair<int64_t, std::string>::second);
    if (fixed_status == dump.statuses.end() || fixed_name == names->end()) continue;
    if (fixed_name < name) return known;  // names do not follow the order
    join_until(fixed_status, fixed_name);
    ++status;
    ++name;
  }
  join_until(dump.statuses.end(), names->end());
  return joined;
}

}  // namespace aimaster::c4d
