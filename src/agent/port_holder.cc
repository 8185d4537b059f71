#include "agent/port_holder.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

#include "agent/limits.h"
#include "agent/small_file.h"

namespace aimaster::agent {
namespace {

constexpr size_t kTableMaxBytes = 64 << 20;  // 150 bytes per connection of the machine
constexpr uint16_t kPortsWorthChoosingFrom = 1000;

// The socket, or −1 with errno. It is bound as an exclusive one and shared only afterwards: two holders that both say
// SO_REUSEADDR from the start would both be given the same port.
int Bind(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0) {
    return fd;
  }
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

bool IsListenedOn(uint16_t port) {
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const auto table = ReadSmallFile(path, kTableMaxBytes);
    if (table && HasListener(*table, port)) return true;
  }
  return false;
}

}  // namespace

PortRange ChoosablePorts(std::string_view local_port_range) {
  unsigned low = 0;
  const size_t start = std::min(local_port_range.find_first_not_of(" \t"), local_port_range.size());
  std::from_chars(local_port_range.data() + start, local_port_range.data() + local_port_range.size(), low);
  if (low >= kPortLowest + kPortsWorthChoosingFrom && low <= 65535) {
    return {kPortLowest, static_cast<uint16_t>(low - 1)};
  }
  // The machine gives out low ports to connections: any port can meet one, binding will tell.
  return {kPortLowest, 32767};
}

bool HasListener(std::string_view table, uint16_t port) {
  // "  0: 00000000:1F90 00000000:0000 0A …": the local port in hexadecimal, then the peer, then the state.
  char wanted[8];
  std::snprintf(wanted, sizeof wanted, ":%04X ", static_cast<unsigned>(port));
  for (size_t found = table.find(wanted); found != std::string_view::npos; found = table.find(wanted, found + 1)) {
    const std::string_view line = table.substr(found, std::min(table.find('\n', found), table.size()) - found);
    const size_t peer_end = line.find(' ', std::strlen(wanted));
    if (peer_end != std::string_view::npos && line.substr(peer_end).starts_with(" 0A ")) return true;
  }
  return false;
}

PortHolder::PortHolder(boost::asio::io_context& io, std::function<uint64_t()> random)
    : random_(std::move(random)), timer_(io) {}

Result<uint16_t> PortHolder::Reserve(bool hold) {
  Release();
  const PortRange range = ChoosablePorts(ReadSmallFile("/proc/sys/net/ipv4/ip_local_port_range", 256).value_or(""));
  int error = 0;
  for (int i = 0; i < kPortTriesMax; ++i) {
    const auto port = static_cast<uint16_t>(range.first + random_() % (range.last - range.first + 1u));
    const int bound = Bind(port);
    if (bound < 0) {
      error = errno;
      continue;
    }
    if (!hold) {
      ::close(bound);
      return port;
    }
    socket_ = bound;
    port_ = port;
    delay_ = kPortPollFirst;
    timer_.After(delay_, [this] { Poll(); });
    return port;
  }
  return Fail(ErrorKind::kEnvironment, "no free port between " + std::to_string(range.first) + " and " +
                                           std::to_string(range.last) + " after " + std::to_string(kPortTriesMax) +
                                           " tries: " + std::strerror(error));
}

void PortHolder::Release() {
  timer_.Cancel();
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  port_ = 0;
}

void PortHolder::Poll() {
  if (IsListenedOn(port_)) {
    Release();
    return;
  }
  delay_ = std::min<Duration>(delay_ * 2, kPortPollMax);
  timer_.After(delay_, [this] { Poll(); });
}

}  // namespace aimaster::agent
