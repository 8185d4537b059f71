// Reports of RAS for the tests, written as NCCL writes them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace aimaster::c4d {

using RasTestCounts = std::map<std::string, int>;

// A job of four processes on each host, one device each; communicator by communicator.
class RasMaker {
 public:
  explicit RasMaker(std::string time) : time_(std::move(time)) {}

  // Of each member how many AllReduces it has launched; less than zero: it is missing.
  RasMaker& Communicator(const std::vector<int>& members, const std::vector<int>& counts) {
    std::vector<RasTestCounts> of_kinds;
    of_kinds.reserve(counts.size());
    for (const int count : counts) of_kinds.push_back({{"AllReduce", count}});
    return Communicator(members, of_kinds);
  }

  RasMaker& Communicator(const std::vector<int>& members, const std::vector<RasTestCounts>& counts) {
    std::string seen, missing;
    for (size_t position = 0; position < members.size(); ++position) {
      RasTestCounts all = {{"Broadcast", 0}, {"Reduce", 0}, {"AllGather", 0}, {"ReduceScatter", 0}, {"AllReduce", 0}};
      for (const auto& [name, count] : counts[position]) all[name] = count;
      const bool is_missing = all["AllReduce"] < 0;
      std::string& list = is_missing ? missing : seen;
      list += (list.empty() ? "" : ",\n") + Member(static_cast<int>(position), members[position]);
      list += is_missing ? (has_commas_ ? ",\n" : "\n") + kMissing + "        }" : ",\n" + state_ + Counts(all);
    }
    text_ += (text_.empty() ? "" : ",\n") + std::string("    {\n      \"hash\": \"0x4e0104c2022fa2f") +
             std::to_string(number_++) + "\",\n      \"secondary_hash\": \"0x2989420b68927728:0xa3489b479e521019\",\n" +
             "      \"size\": " + std::to_string(members.size()) + ",\n      \"ranks\": [\n" + seen +
             "\n      ],\n      \"missing_ranks\": [\n" + missing + "\n      ]\n    }";
    return *this;
  }

  RasMaker& WithoutCommas() {
    has_commas_ = false;
    return *this;
  }
  // Of those that are told from here on.
  RasMaker& State(int init_state, int async_error) {
    state_ = StateOf(init_state, async_error);
    return *this;
  }

  std::string Text() const {
    return "{\n  \"nccl_version\": \"2.28.9\",\n  \"cuda_runtime_version\": 12090,\n  \"cuda_driver_version\": 13000,\n"
           "  \"timestamp\": \"" +
           time_ + "\",\n  \"communicators_count\": " + std::to_string(number_) + ",\n  \"communicators\": [\n" +
           text_ + "\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.001,\n    \"timeouts_count\": 0\n  }\n}\n";
  }

 private:
  static std::string StateOf(int init_state, int async_error) {
    return "          \"status\": {\n            \"init_state\": " + std::to_string(init_state) +
           ",\n            \"async_error\": " + std::to_string(async_error) +
           ",\n            \"finalize_called\": false,\n            \"destroy_flag\": false,\n"
           "            \"abort_flag\": false\n          },\n";
  }

  static std::string Member(int position, int rank) {
    return "        {\n          \"rank\": " + std::to_string(position) + ",\n          \"host\": \"10.0.0." +
           std::to_string(rank / 4) + "\",\n          \"pid\": " + std::to_string(1000 + rank) +
           ",\n          \"cuda_dev\": " + std::to_string(rank % 4) +
           ",\n          \"nvml_dev\": " + std::to_string(rank % 4);
  }

  static std::string Counts(const RasTestCounts& counts) {
    std::string text;
    for (const auto& [name, count] : counts) {
      text += (text.empty() ? "" : ",\n") + std::string("            \"") + name + "\": " + std::to_string(count);
    }
    return "          \"collective_counts\": {\n" + text + "\n          }\n        }";
  }

  const std::string kMissing =
      "          \"status\": {\n            \"unresponsive\": true,\n            \"considered_dead\": false\n"
      "          }\n";

  std::string time_;
  std::string text_;
  std::string state_ = StateOf(0, 0);
  int number_ = 0;
  bool has_commas_ = true;
};

}  // namespace aimaster::c4d
