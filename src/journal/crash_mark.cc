#include "journal/crash_mark.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/fnv1a.h"
#include "journal/codec.h"

namespace aimaster {
namespace {

constexpr char kCrashMagic[8] = {'A', 'I', 'M', 'M', 'A', 'R', 'K', '1'};

struct CrashMarkBytes {
  char magic[8];
  uint32_t times;
  uint32_t under_way;
  uint64_t hash;
  int64_t first_ns;
  char kind[32];
};
static_assert(sizeof(CrashMarkBytes) == 64 && std::endian::native == std::endian::little);

}  // namespace

CrashMark::CrashMark(const std::filesystem::path& path) {
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  CrashMarkBytes mark{};
  if (fd_ < 0 || pread(fd_, &mark, sizeof mark, 0) != sizeof mark) return;
  if (std::memcmp(mark.magic, kCrashMagic, sizeof kCrashMagic) != 0 || mark.under_way != 1) return;
  const size_t length = strnlen(mark.kind, sizeof mark.kind);
  std::string kind(mark.kind, length);
  const bool known = std::ranges::all_of(kind, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
  if (!known || mark.times >= UINT32_MAX) return;
  crash_ = {std::move(kind), mark.hash, mark.times + 1, Wall{Duration{mark.first_ns}}};
}

CrashMark::~CrashMark() {
  if (fd_ >= 0) close(fd_);
}

CrashMark::CrashMark(CrashMark&& other) noexcept : fd_(std::exchange(other.fd_, -1)), crash_(std::move(other.crash_)) {}

std::string CrashMark::Explain(const Crash& crash) {
  return "the master has crashed " + std::to_string(crash.times) + " times in a row over the same input (" +
         crash.kind +
         "), which is a defect of this version of aimaster; training goes on, but nothing is decided: stop the job, or "
         "install another version and run `aimaster resume`";
}

void CrashMark::Enter(const Input& input) {
  if (fd_ < 0) return;
  // Agents send the same report again, at another time.
  const uint64_t hash = Fnv1a(EncodeInput({Moment{}, input.event}));
  const bool again = crash_ && crash_->input == hash && crash_->kind == EventKind(input.event);
  Write(again ? crash_->times : 0, 1, hash, again ? crash_->first : input.at.wall, EventKind(input.event));
}

void CrashMark::Leave() {
  if (fd_ >= 0) Write(0, 0, 0, {}, "");
}

void CrashMark::Write(uint32_t times, uint32_t under_way, uint64_t hash, Wall first, std::string_view kind) {
  CrashMarkBytes mark{};
  std::memcpy(mark.magic, kCrashMagic, sizeof kCrashMagic);
  mark.times = times;
  mark.under_way = under_way;
  mark.hash = hash;
  mark.first_ns = first.since_epoch.count();
  std::memcpy(mark.kind, kind.data(), std::min(kind.size(), sizeof mark.kind));
  [[maybe_unused]] const ssize_t written = pwrite(fd_, &mark, sizeof mark, 0);  // without it, nothing is remembered
}

}  // namespace aimaster
