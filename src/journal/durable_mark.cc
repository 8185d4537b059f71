#include "journal/durable_mark.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "core/fnv1a.h"

namespace aimaster {
namespace {

constexpr char kDurableMagic[8] = {'A', 'I', 'M', 'D', 'U', 'R', 'A', 'B'};
constexpr uint64_t kPlausibleMax = uint64_t{1} << 62;  // so that the next epoch is still one

struct DurableMarkBytes {
  char magic[8];
  uint64_t epoch;
  uint64_t input;
  uint64_t checksum;
};
static_assert(sizeof(DurableMarkBytes) == 32 && std::endian::native == std::endian::little);

uint64_t ChecksumOf(const DurableMarkBytes& mark) {
  char bytes[offsetof(DurableMarkBytes, checksum)];
  std::memcpy(bytes, &mark, sizeof bytes);
  return Fnv1a(std::string_view(bytes, sizeof bytes), kFnv1aOfNothing);
}

}  // namespace

DurableMark::DurableMark(const std::filesystem::path& path)
    : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {}

DurableMark::~DurableMark() {
  if (fd_ >= 0) close(fd_);
}

Durable DurableMark::Read() const {
  DurableMarkBytes mark{};
  if (fd_ < 0 || pread(fd_, &mark, sizeof mark, 0) != sizeof mark) return {};
  if (std::memcmp(mark.magic, kDurableMagic, sizeof kDurableMagic) != 0 || mark.checksum != ChecksumOf(mark)) return {};
  if (mark.epoch > kPlausibleMax || mark.input > kPlausibleMax) return {};
  return {Epoch{mark.epoch}, static_cast<int64_t>(mark.input)};
}

void DurableMark::Write(const Durable& durable) {
  if (fd_ < 0) return;
  DurableMarkBytes mark{};
  std::memcpy(mark.magic, kDurableMagic, sizeof kDurableMagic);
  mark.epoch = Value(durable.epoch);
  mark.input = static_cast<uint64_t>(durable.input);
  mark.checksum = ChecksumOf(mark);
  [[maybe_unused]] const ssize_t written = pwrite(fd_, &mark, sizeof mark, 0);
}

}  // namespace aimaster
