#include "c4d/rank_dump.h"

#include <algorithm>
#include <iterator>

#include "c4d/data_tree.h"
#include "c4d/limits.h"

namespace aimaster::c4d {
namespace {

// "_dump_12", "trace_rank_12.json" → 12.
std::optional<uint32_t> NumberAtEnd(std::string_view file) {
  if (const size_t slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  constexpr std::string_view kDigits = "0123456789";
  const size_t dot = file.rfind('.');
  if (dot != std::string_view::npos && file.find_first_not_of(kDigits, dot + 1) != std::string_view::npos) {
    file = file.substr(0, dot);
  }
  const size_t last = file.find_last_not_of(kDigits);
  const std::optional<int64_t> number = ParseInteger(file.substr(last == std::string_view::npos ? 0 : last + 1));
  if (!number || *number < 0 || *number >= int64_t{kRanksMax}) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

// Who is in all of the dump's groups; none: no group tells its members.
std::optional<std::vector<Rank>> InAllGroups(const FlightRecorderDump& dump) {
  std::optional<std::vector<Rank>> common;
  for (const DumpGroup& group : dump.groups) {
    if (group.members.empty()) continue;
    if (!common) {
      common = group.members;
      continue;
    }
    std::vector<Rank> both;
    std::ranges::set_intersection(*common, group.members, std::back_inserter(both));
    common = std::move(both);
  }
  return common;
}

// A send says at which position of its group the rank is.
std::optional<Rank> RankBySends(const FlightRecorderDump& dump) {
  for (const DumpEntry& entry : dump.entries) {
    if (!entry.own_position) continue;
    const auto group = std::ranges::find(dump.groups, entry.group, &DumpGroup::name);
    if (group != dump.groups.end() && *entry.own_position < group->members.size()) {
      return group->members[*entry.own_position];
    }
  }
  return std::nullopt;
}

bool TellsOpenOperations(const FlightRecorderDump& dump) {
  const auto is_there = [&](bool has, bool is_absent) { return has || (dump.is_whole && is_absent); };
  if (!dump.has_entries || !is_there(dump.has_groups, dump.groups.empty())) return false;
  return is_there(dump.has_statuses, dump.statuses.empty() && !dump.entries.empty());
}

void AddEntry(const DumpEntry& entry, GroupPart& part) {
  part.has_entries = true;
  part.carries_point_to_point |= entry.is_point_to_point;
  part.changed_ns = std::max(part.changed_ns, entry.changed_ns);
  // Of a point-to-point operation it is the number of collectives before it.
  part.last_issued = std::max(part.last_issued, entry.collective_sequence);
  if (!entry.is_done) part.open.push_back(entry);
  if (entry.is_point_to_point) return;
  if (entry.is_started) part.last_started = std::max(part.last_started, entry.collective_sequence);
  if (entry.is_done) part.last_done = std::max(part.last_done, entry.collective_sequence);
}

}  // namespace

const size_t GroupTable::kMembersMaxOfTable = kMembersMax;

uint32_t GroupTable::Add(const std::string& name, const std::string& description, const std::vector<Rank>& members) {
  const auto [begin, end] = by_name_.equal_range(name);
  for (auto known = begin; known != end; ++known) {
    Group& group = groups_[known->second];
    if (group.members != members) continue;
    if (group.description.empty()) group.description = description;
    return known->second;
  }
  const auto index = static_cast<uint32_t>(groups_.size());
  groups_.push_back({.name = name, .description = description, .members = members});
  by_name_.emplace(name, index);
  member_count_ += members.size();
  return index;
}

Result<Rank> RankOf(std::string_view file, const FlightRecorderDump& dump) {
  const std::optional<uint32_t> number = NumberAtEnd(file);
  const std::optional<std::vector<Rank>> common = InAllGroups(dump);
  if (number && (!common || std::ranges::binary_search(*common, Rank{*number}))) return Rank{*number};
  if (common && common->size() == 1) return common->front();
  if (const std::optional<Rank> rank = RankBySends(dump)) return *rank;
  return Fail(ErrorKind::kEnvironment, number ? "is not of rank " + std::to_string(*number) +
                                                    ", as its name says: that rank is not in its groups"
                                              : "does not tell of which rank it is; let its name end in the rank");
}

RankDump MakeRankDump(std::string file, Rank rank, const FlightRecorderDump& dump, GroupTable& groups) {
  RankDump made{.file = std::move(file),
                .rank = rank,
                .is_whole = TellsOpenOperations(dump),
                .tells_starts = dump.tells_starts,
                .trouble = dump.trouble};
  const auto described = [](const std::string& text) { return text == "undefined" ? std::string() : text; };
  std::map<std::string_view, size_t> parts;  // by the group's name
  const auto part_of = [&](const std::string& name, const std::string& description,
                           const std::vector<Rank>& members) -> GroupPart& {
    const auto [found, is_new] = parts.try_emplace(name, made.parts.size());
    if (is_new) made.parts.push_back({.group = groups.Add(name, described(description), members)});
    return made.parts[found->second];
  };
  for (const DumpGroup& group : dump.groups) {
    const GroupPart& part = part_of(group.name, group.description, group.members);
    if (group.name == "0") made.world_group = part.group;
  }
  for (const DumpEntry& entry : dump.entries) {
    made.newest_ns = std::max(made.newest_ns, entry.changed_ns);
    if (!entry.group.empty()) AddEntry(entry, part_of(entry.group, entry.description, {}));
  }
  const std::map<int64_t, std::string> joined = JoinGroups(dump);
  made.tells_all_groups = made.is_whole && dump.has_groups && dump.has_statuses;
  for (const DumpStatus& status : dump.statuses) {
    const auto name = joined.find(status.group_id);
    if (name == joined.end()) {
      made.tells_all_groups = false;
    } else {
      part_of(name->second, {}, {}).status = status;
    }
  }
  return made;
}

}  // namespace aimaster::c4d
