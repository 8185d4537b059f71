#include "agent/port_holder.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "agent/limits.h"
#include "agent/small_file.h"

namespace aimaster::agent {
namespace {

constexpr size_t kTableMaxBytes = 64 << 20;  // 150 bytes per connection of the machine
constexpr uint16_t kPortsWorthChoosingFrom = 1000;

// The socket, or −1 with errno. A new port is bound as an exclusive one and shared only afterwards: two holders that
// both say SO_REUSEADDR from the start would both be given the same port.
int Bind(uint16_t port, bool exclusive) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  const auto share = [&] { return ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0; };
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  const bool bound =
      (exclusive || share()) && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (bound && share()) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

std::set<uint16_t> AllListeningPorts() {
  std::set<uint16_t> ports;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    if (const auto table = ReadSmallFile(path, kTableMaxBytes)) ports.merge(ListeningPorts(*table));
  }
  return ports;
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

std::set<uint16_t> ListeningPorts(std::string_view table) {
  // "  0: 00000000:1F90 00000000:0000 0A …": number, local address with the port in hexadecimal, peer, state.
  std::set<uint16_t> ports;
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    std::string_view fields[4];
    size_t at = 0;
    for (std::string_view& field : fields) {
      at = std::min(line.find_first_not_of(' ', at), line.size());
      field = line.substr(at, line.find(' ', at) - at);
      at += field.size();
    }
    const size_t colon = fields[1].rfind(':');
    if (fields[3] != "0A" || colon == std::string_view::npos) continue;
    const std::string_view number = fields[1].substr(colon + 1);
    uint16_t port = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), port, 16);
    if (error == std::errc{} && end == number.data() + number.size()) ports.insert(port);
  }
  return ports;
}

PortHolder::PortHolder(boost::asio::io_context& io, std::function<uint64_t()> random)
    : random_(std::move(random)), timer_(io) {}

Result<std::vector<uint16_t>> PortHolder::Reserve(uint32_t count, bool hold) {
  ReleaseAll();
  const PortRange range = ChoosablePorts(ReadSmallFile("/proc/sys/net/ipv4/ip_local_port_range", 256).value_or(""));
  std::vector<uint16_t> ports;
  int error = 0;
  for (int tries = 0; ports.size() < count && tries < kPortTriesMax; ++tries) {
    const auto port = static_cast<uint16_t>(range.first + random_() % (range.last - range.first + 1u));
    const int bound = Bind(port, true);
    if (bound < 0) {
      error = errno;
      continue;
    }
    Keep(port, bound);
    ports.push_back(port);
    tries = -1;
  }
  if (ports.size() < count || !hold) ReleaseAll();
  if (ports.size() == count) return ports;
  return Fail(ErrorKind::kEnvironment, "no free port between " + std::to_string(range.first) + " and " +
                                           std::to_string(range.last) + " after " + std::to_string(kPortTriesMax) +
                                           " tries: " + std::strerror(error));
}

void PortHolder::Hold(uint16_t port) {
  if (sockets_.contains(port) || AllListeningPorts().contains(port)) return;
  if (const int bound = Bind(port, false); bound >= 0) Keep(port, bound);
}

void PortHolder::Keep(uint16_t port, int socket) {
  sockets_.emplace(port, socket);
  delay_ = kPortPollFirst;
  timer_.After(delay_, [this] { Poll(); });
}

void PortHolder::Release(uint16_t port) {
  if (const auto held = sockets_.extract(port)) ::close(held.mapped());
  if (sockets_.empty()) timer_.Cancel();
}

void PortHolder::ReleaseAll() {
  for (const uint16_t port : held_ports()) Release(port);
}

std::vector<uint16_t> PortHolder::held_ports() const {
  std::vector<uint16_t> ports;
  for (const auto& [port, socket] : sockets_) ports.push_back(port);
  return ports;
}

void PortHolder::Poll() {
  const std::set<uint16_t> listening = AllListeningPorts();
  for (const uint16_t port : held_ports()) {
    if (listening.contains(port)) Release(port);
  }
  if (sockets_.empty()) return;
  delay_ = std::min<Duration>(delay_ * 2, kPortPollMax);
  timer_.After(delay_, [this] { Poll(); });
}

}  // namespace aimaster::agent
