// Logs of the Inspector for the tests, written as NCCL's plugin writes them.
#pragma once

#include <cstdint>
#include <string>

namespace aimaster::c4d {

// What one process wrote.
class InspectorLogMaker {
 public:
  explicit InspectorLogMaker(int rank, bool has_markers = false) : rank_(rank), has_markers_(has_markers) {}

  // In a communicator of this id and size, at that place, when so much time had gone by.
  InspectorLogMaker& Collective(const std::string& id, int size, int place, uint64_t sequence, int64_t took_us,
                                int64_t written_us, const std::string& source = "kernel_gpu") {
    const std::string context = R"("header":{"id":")" + id + R"(","comm_name":"unknown","rank":)" +
                                std::to_string(place) + R"(,"n_ranks":)" + std::to_string(size) +
                                R"(,"nnodes":1},"metadata":{"inspector_output_format_version":")" +
                                (has_markers_ ? "v4.4" : "v4.0") +
                                R"(","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":)" +
                                std::to_string(kBegin + written_us) + R"(,"hostname":"host-)" +
                                std::to_string(rank_ / 4) + R"(","pid":)" + std::to_string(1000 + rank_) + "}";
    const std::string operation = R"("coll_perf":{"coll":"AllReduce","coll_algo":"RING","coll_proto":"LL","coll_sn":)" +
                                  std::to_string(sequence) + R"(,"coll_msg_size_bytes":1048576,"coll_exec_time_us":)" +
                                  std::to_string(took_us) + R"(,"coll_timing_source":")" + source +
                                  R"(","coll_algobw_gbs":277.210914,"coll_busbw_gbs":485.119099})";
    if (has_markers_) {
      text_ += "{" + context + R"(,"dump_stats":{"coll_records":1,"coll_dropped_total":0,"p2p_records":0}})" + "\n{" +
               operation + "}\n";
    } else {
      text_ += "{" + context + "," + operation + "}\n";
    }
    return *this;
  }

  const std::string& Text() const { return text_; }

  static constexpr int64_t kBegin = 1'748'030'377'000'000;

 private:
  int rank_;
  bool has_markers_;
  std::string text_;
};

}  // namespace aimaster::c4d
