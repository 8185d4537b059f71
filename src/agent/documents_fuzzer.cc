// Whatever stands in a file or comes in a frame: no crash, and what is taken is within its bounds.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agent/agent_file.h"
#include "agent/attempt_files.h"
#include "agent/core_dump_watch.h"
#include "agent/error_file.h"
#include "agent/frame_check.h"
#include "agent/launch_file.h"
#include "agent/limits.h"
#include "agent/oom_kills.h"
#include "agent/port_holder.h"
#include "agent/sweep.h"
#include "core/failure.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aimaster;
  using namespace aimaster::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto error = ParseErrorFile(text)) {
    if (error->message.size() > kErrorTextMaxBytes || error->time_ns < 0) std::abort();
    if (SafeText(error->message) != error->message) std::abort();
  }
  if (const auto frame = ParseFrame(text)) {
    if (frame->has_command() && frame->command().has_start_instance() &&
        !IsSafeName(frame->command().start_instance().instance_name())) {
      std::abort();
    }
  }
  if (const auto claim = ParseClaim(text)) {
    if (ParseClaim(FormatClaim(*claim)) != claim) std::abort();
  }
  if (const auto claim = ParseLaunchClaim(text)) {
    if (claim->ranks.size() > kRanksPerInstanceMax) std::abort();
  }
  ParseTombstone(text);
  ParseStarted(text);
  ParseRankExit(text);
  ParseKeptExits(text);
  ParseEnded(text);
  ParseDescendants(text);
  ParseAgentFile(text);
  ParseStat(text);
  IsPending(text, 3);
  ParseOomKills(text);
  IsDumpingCore(text);
  ListeningPorts(text);
  ChoosablePorts(text);
  HasMarker(text, SweepTarget{});
  MarkedAttempt(text, "j", "n");
  return 0;
}
