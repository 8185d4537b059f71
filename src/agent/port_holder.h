// PortHolder finds a port for a round and keeps it free for rank 0.
// Choosing a number and hoping is the usual way, and now and then somebody else gets it in between. Here the port stays
// bound, with SO_REUSEADDR and not listening, so that rank 0 (whose frameworks set SO_REUSEADDR too) can bind and
// listen on it and no other program is given it by chance. It lies below the ephemeral range: no outgoing connection
// takes it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "agent/timer.h"
#include "core/error.h"
#include "core/time.h"

namespace aimaster::agent {

// Ports that may be chosen: [first, last].
struct PortRange {
  uint16_t first = 0;
  uint16_t last = 0;
  bool operator==(const PortRange&) const = default;
};
// `local_port_range`: the text of /proc/sys/net/ipv4/ip_local_port_range.
PortRange ChoosablePorts(std::string_view local_port_range);

// Whether the text of /proc/net/tcp or tcp6 has a listener on the port.
bool HasListener(std::string_view table, uint16_t port);

class PortHolder {
 public:
  PortHolder(boost::asio::io_context& io, std::function<uint64_t()> random);
  ~PortHolder() { Release(); }
  PortHolder(const PortHolder&) = delete;
  PortHolder& operator=(const PortHolder&) = delete;

  // Gives up what it holds. With `hold` the port stays bound until somebody listens on it, or Release().
  Result<uint16_t> Reserve(bool hold);
  void Release();
  uint16_t held_port() const { return port_; }  // 0: none

 private:
  void Poll();

  std::function<uint64_t()> random_;
  int socket_ = -1;
  uint16_t port_ = 0;
  Duration delay_{};
  Timer timer_;
};

}  // namespace aimaster::agent
