#include "wire/peer_owner.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "wire/test_peers.h"
#include "wire/websocket_client.h"

namespace aimaster {
namespace {

using testing::kToken;
using testing::RawPeer;
using testing::RunUntil;

constexpr uid_t kStranger = 4242;

// Listens on loopback as another user would who has waited for the port; accepts or not.
class Squatter {
 public:
  explicit Squatter(bool accepts) {
    int said[2];
    EXPECT_EQ(pipe(said), 0);
    pid_ = fork();
    if (pid_ == 0) Squat(said[1], accepts);
    close(said[1]);
    EXPECT_EQ(read(said[0], &port_, sizeof port_), static_cast<ssize_t>(sizeof port_));
    close(said[0]);
  }
  ~Squatter() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  uint16_t port() const { return port_; }

 private:
  [[noreturn]] static void Squat(int tell, bool accepts) {
    if (setuid(kStranger) != 0) _exit(1);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 16) != 0) _exit(1);
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    const uint16_t port = ntohs(address.sin_port);
    if (write(tell, &port, sizeof port) != sizeof port) _exit(1);
    while (accepts) accept(fd, nullptr, nullptr);
    for (;;) pause();
  }

  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

TEST(PeerOwnerTest, OurOwnProgramsAreNoStrangers) {
  boost::asio::io_context io{1};
  testing::TestServer server(io);
  const RawPeer waiting(server.port());
  EXPECT_EQ(ForeignOwnerOfPeer(waiting.fd()), std::nullopt) << "not accepted yet";
  RawPeer served(server.port());
  served.Send("x");
  testing::Settle(io);
  EXPECT_EQ(ForeignOwnerOfPeer(served.fd()), std::nullopt);
}

TEST(PeerOwnerTest, WhatIsNoConnectionHasNoOwner) {
  EXPECT_EQ(ForeignOwnerOfPeer(-1), std::nullopt);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_EQ(ForeignOwnerOfPeer(ends[0]), std::nullopt);
  close(ends[0]), close(ends[1]);
}

TEST(PeerOwnerTest, WhoeverTookThePortOfADeadMasterIsNotShownTheToken) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  for (const bool accepts : {true, false}) {
    const Squatter squatter(accepts);
    const RawPeer raw(squatter.port());
    EXPECT_EQ(ForeignOwnerOfPeer(raw.fd()), kStranger) << accepts;
    boost::asio::io_context io{1};
    std::string why;
    const WebSocketClient client(
        io, {"127.0.0.1", squatter.port(), "/agent", kToken},
        {[] {}, [](std::string_view) {}, [&](std::string reason) { why = std::move(reason); }});
    ASSERT_TRUE(RunUntil(io, [&] { return !why.empty(); }));
    EXPECT_NE(why.find("user 4242"), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace aimaster
