// Whose words a line of a log is. Launchers and collectors mix the output of many ranks into one file and say in front
// of each line who speaks, each in its own way; libraries do the same in theirs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace aimaster {

struct Speaker {
  enum class Kind {
    kNobody,  // the line does not say
    kRank,    // a number of the whole job: "[rank3]:", "[1,3]<stderr>:", "[Rank 3]" of ProcessGroupNCCL
    kLocal,   // a number on one host: "node-2:915:917 [3] NCCL WARN", "[default3]:"
    kMember,  // one of many of a kind: "worker-2:", `stem` is "worker"
    kNamed,   // anything else: "node01:", "(RayTrainWorker pid=12)"
  };
  Kind kind = Kind::kNobody;
  uint32_t number = 0;  // of kRank, kLocal and kMember
  std::string host;     // of kLocal; may be empty
  std::string stem;     // of kMember
  std::string name;     // for people, and the same for all its lines: "rank 3", "node-2:915 [3]", "worker-2"
};

// Only the beginning of the line is looked at.
Speaker SpeakerOf(std::string_view line);

Speaker RankSpeaker(uint32_t number);

// The rank that a line of torchelastic's table of failures, or of mpirun's, is about; `before` is that of the line
// before. None where the line is no part of such a table.
//
//   rank      : 6 (local_rank: 6)
//   exitcode  : -9 (pid: 20511)
//
//   Process name: [prterun-h-1@1,3]
std::optional<uint32_t> RankOfTable(std::string_view line, std::optional<uint32_t> before);

// The rank that a line speaks of, where whoever wrote it says one: "failed (exitcode: -9) local_rank: 1 (pid: 812)",
// "AssertionError: Rank 3: …". None where it says none, or several.
std::optional<uint32_t> RankNamedIn(std::string_view line);

// A file that belongs to one rank by its name: "rank3.err", "rank-a.out", and ".../attempt_0/3/stderr.log" of torchrun.
struct RankFile {
  std::optional<uint32_t> number;  // where the name of the rank is one
  std::string name;                // "rank 3", "-a"
};
std::optional<RankFile> RankFileOf(std::string_view path);

}  // namespace aimaster
