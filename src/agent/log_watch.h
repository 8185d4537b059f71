// LogWatch looks at the output files of all live ranks: how much they print, when they first did, what of it a rule
// knows, and that none takes more room than it may, and all together no more than there is. It looks often while an
// attempt is young (people wait for `ready`), while a file grows fast (its bound must hold) and while there is much to
// read, and once per second otherwise.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/attempt_files.h"
#include "agent/conversation.h"
#include "agent/disk_guard.h"
#include "agent/log_file.h"
#include "agent/log_scan.h"
#include "agent/rank_report.h"
#include "agent/timer.h"
#include "core/time.h"

namespace aimaster::agent {

class LogWatch {
 public:
  // `on_ready`: each rank of the attempt has printed or told something, or ended well. Once per attempt.
  LogWatch(boost::asio::io_context& io, PatternMatcher& matcher, std::string reserve_path,
           std::function<void(AttemptKey)> on_ready);

  void SetMaxBytes(uint64_t max_bytes) { max_bytes_ = max_bytes; }  // of each file of attempts added from now on
  void Add(const Claim& claim, bool is_ready);
  void RankEnded(AttemptKey key, uint32_t local, bool well);
  // It has told us something, which is as good a sign of life as the first output.
  void RankSpoke(AttemptKey key, uint32_t local);
  // What a rank that has ended said, also of an attempt that is not watched (any more).
  RankWords WordsOf(const Claim& claim, uint32_t local);
  // Looks a last time and lets go.
  void Remove(AttemptKey key);

  // Nothing runs here any more.
  void Close() { disk_.Close(); }

  void LookNow() {
    if (!watched_.empty()) Look();
  }
  // As of the last look.
  LogActivity ActivityAt(Monotonic now) const;

 private:
  struct Output {
    LogFile file;
    LogScan scan;
    std::optional<Monotonic> looked_at = {};
  };
  struct RankLog {
    uint32_t rank = 0;
    uint32_t local = 0;
    bool counts_as_ready = false;
    bool has_ended = false;
    Output out, err;
    Monotonic printed;  // last, or its start; by the time that we have watched
  };
  struct Watched {
    std::string directory;
    std::vector<RankLog> ranks;
    Monotonic since;
    bool is_ready = false;
    bool is_ending = false;  // let go once its files are within their bounds
  };

  RankLog Open(const Claim& claim, uint32_t rank, uint32_t local);
  void Look();
  void LookAtDisk(uint64_t bytes_per_second);
  // True when there is more room to give back.
  bool LookAt(AttemptKey key, Watched& watched);
  bool LookAt(RankLog& rank, Output& output);
  Monotonic WatchedUntil(Monotonic now) const { return {now.since_origin - away_}; }
  LogActivity::Quiet QuietOf(Monotonic now) const;
  Duration NextDelay(Monotonic now) const;
  void Schedule();

  PatternMatcher& matcher_;
  bool told_matcher_error_ = false;
  bool gave_pages_back_ = false;
  std::function<void(AttemptKey)> on_ready_;
  DiskGuard disk_;
  DiskState disk_state_ = DiskState::kRoomy;
  uint64_t max_bytes_ = 0;
  std::map<AttemptKey, Watched> watched_;
  LogActivity activity_;
  // Time in which we were stopped, or starved, and have seen nothing. Ranks may have been stopped as well: it is not
  // counted as silence.
  Duration away_{};
  Monotonic last_look_;
  bool is_growing_fast_ = false;
  bool has_more_to_free_ = false;
  bool has_more_to_read_ = false;
  uint64_t may_read_ = 0;        // in this look
  double bytes_per_second_ = 0;  // lately
  uint64_t bytes_then_ = 0;
  Monotonic rate_since_;
  Timer timer_;
};

}  // namespace aimaster::agent
