// Dumps for the tests: those of real incidents, and small ones of jobs made up, as JSON.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace aimaster::c4d {

// File names without the suffix that the repository gives them, and their bytes.
std::map<std::string, std::string> ReadIncident(const std::string& name);

// A rank's dump, group by group.
class DumpMaker {
 public:
  // The number in pg_status counts what was made before, and may have gaps: `id`.
  DumpMaker& Group(int id, const std::string& name, const std::vector<int>& members, int64_t enqueued,
                   int64_t completed, int64_t started = -1) {
    std::string ranks;
    for (const int member : members) ranks += (ranks.empty() ? "[" : ", ") + std::to_string(member);
    dump_["pg_config"][name] = {{"name", name}, {"desc", "group " + name}, {"ranks", ranks + "]"}};
    dump_["pg_status"][std::to_string(id)] = {{"last_enqueued_collective", enqueued},
                                              {"last_started_collective", started},
                                              {"last_completed_collective", completed}};
    return *this;
  }

  DumpMaker& Entry(int id, const std::string& group, int64_t sequence, const std::string& name,
                   const nlohmann::json& more = nlohmann::json::object()) {
    const auto record = static_cast<int64_t>(dump_["entries"].size());
    nlohmann::json entry = {{"record_id", record},
                            {"pg_id", id},
                            {"process_group", {group, "group " + group}},
                            {"collective_seq_id", sequence},
                            {"p2p_seq_id", 0},
                            {"op_id", sequence},
                            {"profiling_name", name},
                            {"time_created_ns", kBegin + record * 1'000'000},
                            {"time_discovered_started_ns", nullptr},
                            {"time_discovered_completed_ns", nullptr},
                            {"input_sizes", {{4, 8}}},
                            {"input_dtypes", {"Float"}},
                            {"output_sizes", {{4, 8}}},
                            {"output_dtypes", {"Float"}},
                            {"state", "scheduled"},
                            {"timeout_ms", 600000},
                            {"is_p2p", false},
                            {"retired", false}};
    entry.update(more);
    dump_["entries"].push_back(std::move(entry));
    return *this;
  }

  nlohmann::json& json() { return dump_; }
  std::string Text() const { return dump_.dump(); }

  static constexpr int64_t kBegin = 1'758'610'505'000'000'000;

 private:
  nlohmann::json dump_ = {{"version", "2.10"},
                          {"pg_config", nlohmann::json::object()},
                          {"pg_status", nlohmann::json::object()},
                          {"entries", nlohmann::json::array()}};
};

}  // namespace aimaster::c4d
