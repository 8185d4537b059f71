#include "agent/core_dump_watch.h"

#include "agent/limits.h"
#include "agent/small_file.h"
#include "core/clocks.h"

namespace aimaster::agent {

bool IsDumpingCore(std::string_view status) {
  constexpr std::string_view kField = "\nCoreDumping:";
  const size_t field = status.find(kField);
  if (field == std::string_view::npos) return false;
  const size_t value = status.find_first_not_of(" \t", field + kField.size());
  return value != std::string_view::npos && status[value] == '1';
}

CoreDumpWatch::CoreDumpWatch(boost::asio::io_context& io, std::function<std::vector<LiveRank>()> live_ranks)
    : live_ranks_(std::move(live_ranks)), timer_(io) {}

void CoreDumpWatch::Alert() {
  until_ = MonotonicNow() + kCoreDumpWatchFor;
  if (!std::exchange(is_polling_, true)) Poll();
}

void CoreDumpWatch::Poll() {
  Look();
  is_polling_ = MonotonicNow() < until_;
  if (is_polling_) timer_.After(kCoreDumpPoll, [this] { Poll(); });
}

std::vector<uint32_t> CoreDumpWatch::Look() {
  std::vector<uint32_t> dumping;
  for (const LiveRank& live : live_ranks_()) {
    const auto status = ReadSmallFile("/proc/" + std::to_string(live.process.pid) + "/status", kSmallFileMaxBytes);
    if (!status || !IsDumpingCore(*status) || !IsAlive(live.process)) continue;
    dumping.push_back(live.rank.rank);
    first_seen_ns_.try_emplace({live.key, live.rank.local}, WallNow().since_epoch.count());
  }
  return dumping;
}

int64_t CoreDumpWatch::DumpStartNs(AttemptKey key, uint32_t local) const {
  const auto found = first_seen_ns_.find({key, local});
  return found == first_seen_ns_.end() ? 0 : found->second;
}

void CoreDumpWatch::Forget(AttemptKey key) {
  std::erase_if(first_seen_ns_, [key](const auto& entry) { return entry.first.first == key; });
}

}  // namespace aimaster::agent
