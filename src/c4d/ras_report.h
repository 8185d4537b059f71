// A report of NCCL's RAS, as `ncclras -f json` prints it: one look at a running job, from outside of it.
//
//   communicators   each with a hash and the number of its ranks
//     ranks         who answered: host, process, device, state, and how many collectives of each kind it has launched
//     missing_ranks who did not, or does not know the communicator
//
// It counts what a rank has launched. What of that has ended it does not tell, nor what was sent from rank to rank, nor
// at which operation a rank stands. A rank's number is its place in the communicator; only a communicator of all
// processes says which rank of the job that is (job_ranks.h).
//
// NCCL 2.28.9 leaves out a comma before the state of each missing rank; the report is read as it was meant.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "c4d/observation.h"
#include "core/error.h"

namespace aimaster::c4d {

using RasCounts = std::array<uint64_t, static_cast<size_t>(Function::kOtherCollective) + 1>;  // by Function

struct RasMember {
  uint32_t position = 0;  // in the communicator
  std::string process;    // "process 10017 on 10.0.0.4, device 1"; empty: not told
  std::string trouble;    // what its state says, "NCCL reports a CUDA error"; of one that is missing: why
  RasCounts counts{};
  bool is_missing = false;
  bool is_starting = false;  // it has not become a member yet
};

struct RasCommunicator {
  std::string hash;            // "0x4e0104c2022fa2f9"
  std::string secondary_hash;  // tells those of one hash apart
  uint32_t size = 0;
  std::vector<RasMember> members;  // by position, each once
  bool is_whole = true;            // nothing that was said of it is in doubt
};

struct RasReport {
  std::string version;                   // of NCCL
  std::optional<int64_t> taken_seconds;  // by the clock of the process that answered, from any beginning
  std::vector<RasCommunicator> communicators;
};

// By its first bytes, so that one which is damaged is named as what it is.
bool LooksLikeRasReport(std::string_view bytes);

// An error's message begins with what is wrong, to follow the file's name. One that is cut short is no report: what is
// missing may be the very communicator in which a rank waits.
Result<RasReport> ReadRasReport(std::string_view bytes);

}  // namespace aimaster::c4d
