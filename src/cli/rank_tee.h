// RankTee: shows what ranks print, by reading the files that they print into. Think of somebody who reads over a
// writer's shoulder: however slowly they read, the pen does not stop. A pipe from the rank to here was rejected for
// that reason.
//
// Attempts of a rank come one after the other, each to its very end, also those that were over before we looked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/attempt_logs.h"
#include "cli/line_prefixer.h"
#include "cli/log_file.h"
#include "cli/screen.h"

namespace aimaster::cli {

// Which output, and in what form.
struct TeeSelection {
  bool none = false;
  std::string instance;  // its name; empty: all
  std::optional<uint32_t> rank;
  uint32_t first_round = 0, last_round = UINT32_MAX;
  bool with_prefixes = false;  // "[rank3] " before every line; otherwise bytes as they are
  bool all_to_stdout = false;  // otherwise each to the stream that it was written to
};

class RankTee {
 public:
  RankTee(std::filesystem::path job_directory, TeeSelection selection);

  // Looks for new attempts. To be called when the job has changed.
  void Discover();
  // A file that is shown besides, as it is.
  void Add(const std::filesystem::path& file);
  // Leaves out all but the last lines of what is there already: who comes late wants to see what happens from now on.
  void SkipToLastLines(uint64_t lines);
  // Gives the screen what there is, as long as it takes it. True when something was given. When nothing was, either all
  // is read or the screen is full: false with an empty screen is the end for now.
  bool Pump(Screen& screen);
  // The end of everything: what stands in a line without an end is given too.
  void Finish(Screen& screen);

  size_t sources() const { return sources_.size(); }
  // Bytes that --log-max-bytes had freed before they could be shown.
  uint64_t skipped_bytes() const;

 private:
  enum class Stream { kOut, kErr };
  // One output of one rank, over all its attempts.
  struct Source {
    Stream stream = Stream::kOut;
    std::vector<std::filesystem::path> files;  // of its attempts, in order
    size_t current = 0;
    std::optional<LogFile> open;
    std::optional<LinePrefixer> prefixer;
    uint64_t skipped_bytes = 0;  // of attempts that are done with
  };

  bool PumpSource(Source& source, Screen& screen);
  void Give(const Source& source, std::string_view bytes, Screen& screen);
  void Advance(Source& source, Screen& screen);

  const std::filesystem::path job_directory_;
  const TeeSelection selection_;
  std::map<std::pair<uint32_t, Stream>, Source> sources_;
  std::set<std::filesystem::path> known_attempts_;
  std::string buffer_, lines_;
};

}  // namespace aimaster::cli
