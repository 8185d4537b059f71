// CoreDumpWatch notices ranks that are writing a core file. Such a rank failed first and is seen dead last: it can take
// half a minute to write a large one, while its peers fail for want of it. The moment when the dump was first seen is
// its true time.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/attempt_files.h"
#include "agent/timer.h"
#include "core/time.h"

namespace aimaster::agent {

// Of the text of /proc/<pid>/status.
bool IsDumpingCore(std::string_view status);

struct LiveRank {
  AttemptKey key;
  ClaimedRank rank;
  ProcessIdentity process;
};

class CoreDumpWatch {
 public:
  // `live_ranks` gives those whose end has not been reported.
  CoreDumpWatch(boost::asio::io_context& io, std::function<std::vector<LiveRank>()> live_ranks);

  // Something failed somewhere: looks now, and again and again for a while.
  void Alert();
  // Global numbers of the ranks that are dumping at this moment.
  std::vector<uint32_t> Look();
  int64_t DumpStartNs(AttemptKey key, uint32_t local) const;  // 0: none was seen
  void Forget(AttemptKey key);

 private:
  void Poll();

  std::function<std::vector<LiveRank>()> live_ranks_;
  std::map<std::pair<AttemptKey, uint32_t>, int64_t> first_seen_ns_;
  Monotonic until_;
  bool is_polling_ = false;
  Timer timer_;
};

}  // namespace aimaster::agent
