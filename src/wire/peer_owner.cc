#include "wire/peer_owner.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace aimaster {
namespace {

constexpr timeval kAnswerMax{.tv_sec = 1, .tv_usec = 0};  // the kernel answers within the call that asks

// The two ends of a connection, seen from the peer.
struct Ends {
  sockaddr_storage peer{}, own{};

  explicit Ends(int descriptor) {
    socklen_t peer_size = sizeof peer, own_size = sizeof own;
    good = getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 &&
           getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
           (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
  }
  bool good = false;
};

// An address and its port, as the question wants them.
void Fill(const sockaddr_storage& from, uint32_t (&address)[4], uint16_t& port) {
  if (from.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
    std::memcpy(address, &v4.sin_addr, sizeof v4.sin_addr);
    port = v4.sin_port;
  } else {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
    std::memcpy(address, &v6.sin6_addr, sizeof v6.sin6_addr);
    port = v6.sin6_port;
  }
}

class Kernel {
 public:
  Kernel() : fd_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {
    if (fd_ >= 0) setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &kAnswerMax, sizeof kAnswerMax);
  }
  ~Kernel() {
    if (fd_ >= 0) close(fd_);
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // The owner of the peer's socket of the connection, or of the socket that listens there.
  std::optional<uid_t> Owner(const Ends& ends, bool of_listener) {
    struct {
      nlmsghdr header;
      inet_diag_req_v2 question;
    } request{};
    request.header = {.nlmsg_len = sizeof request,
                      .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                      .nlmsg_flags = NLM_F_REQUEST,
                      .nlmsg_seq = 1,
                      .nlmsg_pid = 0};
    request.question.sdiag_family = static_cast<uint8_t>(ends.peer.ss_family);
    request.question.sdiag_protocol = IPPROTO_TCP;
    request.question.idiag_states = ~0u;
    Fill(ends.peer, request.question.id.idiag_src, request.question.id.idiag_sport);
    Fill(ends.own, request.question.id.idiag_dst, request.question.id.idiag_dport);
    if (of_listener) request.question.id.idiag_dport = 0;  // no connection is found, so the listener is
    request.question.id.idiag_cookie[0] = request.question.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (fd_ < 0 || send(fd_, &request, sizeof request, 0) != static_cast<ssize_t>(sizeof request)) return std::nullopt;

    alignas(nlmsghdr) char answer[4096];
    const ssize_t size = recv(fd_, answer, sizeof answer, 0);
    nlmsghdr header{};
    inet_diag_msg found{};
    if (size < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof found)) return std::nullopt;
    std::memcpy(&header, answer, sizeof header);
    if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
    std::memcpy(&found, answer + NLMSG_HDRLEN, sizeof found);
    return found.idiag_uid;
  }

 private:
  const int fd_;
};

}  // namespace

std::optional<uid_t> ForeignOwnerOfPeer(int descriptor) {
  const Ends ends(descriptor);
  if (!ends.good) return std::nullopt;
  const auto is_foreign = [](uid_t user) { return user != geteuid() && user != 0; };
  Kernel kernel;
  // The listener first. A connection that nobody has accepted yet counts as root's; when the listener is ours, one that
  // a former listener left behind has been accepted, and tells its owner, since others ended with it.
  const std::optional<uid_t> listener = kernel.Owner(ends, /*of_listener=*/true);
  if (listener && is_foreign(*listener)) return listener;
  const std::optional<uid_t> connection = kernel.Owner(ends, /*of_listener=*/false);
  if (connection && is_foreign(*connection)) return connection;
  return std::nullopt;
}

}  // namespace aimaster
