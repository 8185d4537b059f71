// PortHolder finds ports for a round and keeps them free for those who are to listen on them.
// Choosing a number and hoping is the usual way, and now and then somebody else gets it in between. Here a port stays
// bound, with SO_REUSEADDR and not listening, so that its rank (whose frameworks set SO_REUSEADDR too) can bind and
// listen on it and no other program is given it by chance. It lies below the ephemeral range: no outgoing connection
// takes it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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

// The ports with a listener in the text of /proc/net/tcp or tcp6.
std::set<uint16_t> ListeningPorts(std::string_view table);

class PortHolder {
 public:
  PortHolder(boost::asio::io_context& io, std::function<uint64_t()> random);
  ~PortHolder() { ReleaseAll(); }
  PortHolder(const PortHolder&) = delete;
  PortHolder& operator=(const PortHolder&) = delete;

  // So many different ports, for a new round: gives up what it holds. With `hold` each stays bound until somebody
  // listens on it, or it is released.
  Result<std::vector<uint16_t>> Reserve(uint32_t count, bool hold);
  // Once more for a port that was reserved before and that its next owner is about to listen on. Does nothing where
  // somebody listens already, or where it can't be had.
  void Hold(uint16_t port);
  void Release(uint16_t port);
  void ReleaseAll();
  std::vector<uint16_t> held_ports() const;

 private:
  void Keep(uint16_t port, int socket);
  void Poll();

  std::function<uint64_t()> random_;
  std::map<uint16_t, int> sockets_;
  Duration delay_{};
  Timer timer_;
};

}  // namespace aimaster::agent
