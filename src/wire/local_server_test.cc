// The socket of a node: who may speak, and what the others do not notice.
#include "wire/local_server.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "wire/test_peers.h"

namespace aimaster {
namespace {

using testing::RunUntil;

class LocalPeer {
 public:
  explicit LocalPeer(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~LocalPeer() { ::close(fd_); }
  LocalPeer(const LocalPeer&) = delete;
  LocalPeer& operator=(const LocalPeer&) = delete;

  void Send(std::string_view bytes) {
    ASSERT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  const std::string& Received() {
    char bytes[4096];
    for (;;) {
      const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
      if (got > 0) received_.append(bytes, static_cast<size_t>(got));
      if (got <= 0) {
        ended_ = ended_ || got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
        return received_;
      }
    }
  }
  bool ended() {
    Received();
    return ended_;
  }
  bool connected() const { return connected_; }

 private:
  int fd_;
  bool connected_ = false, ended_ = false;
  std::string received_;
};

class LocalServerTest : public ::testing::Test {
 protected:
  LocalServerTest() {
    std::string pattern = "/tmp/aimaster-test-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    path_ = directory_ / "socket";
  }
  ~LocalServerTest() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<LocalServer> Serve(ServerLimits limits = {}) {
    auto server = LocalServer::Listen(io_, path_, limits, [this](const HttpRequest& request, pid_t peer) {
      peer_ = peer;
      return HttpResponse{200, request.method + " " + request.target + " " + request.body + ";"};
    });
    EXPECT_TRUE(server) << server.error().message;
    return std::move(*server);
  }
  bool Answers(LocalPeer& peer) {
    peer.Send("POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    return RunUntil(io_, [&] { return peer.Received().ends_with("POST /it hi;"); });
  }

  boost::asio::io_context io_{1};
  std::filesystem::path directory_, path_;
  pid_t peer_ = 0;
};

TEST_F(LocalServerTest, AProgramOfThisUserIsAnsweredWithoutAToken) {
  const auto server = Serve();
  LocalPeer peer(path_);
  EXPECT_TRUE(Answers(peer));
  EXPECT_EQ(peer_, ::getpid());
}

TEST_F(LocalServerTest, TheSocketIsThisUsersAloneAndGoneAfterwards) {
  auto server = Serve();
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(LocalServerTest, ASocketThatAKilledServerLeftIsReplaced) {
  {
    const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    ASSERT_EQ(::bind(left, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(left);
  }
  const auto server = Serve();
  LocalPeer peer(path_);
  EXPECT_TRUE(Answers(peer));
}

TEST_F(LocalServerTest, WhereAFileIsInTheWayItIsSaidAndLeft) {
  {
    std::ofstream(path_) << "mine";
  }
  const auto server = LocalServer::Listen(io_, path_, {}, [](const HttpRequest&, pid_t) { return HttpResponse{}; });
  ASSERT_FALSE(server);
  EXPECT_TRUE(server.error().message.contains(path_.string())) << server.error().message;
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(LocalServerTest, WhoHoldsAllConnectionsOpenKeepsNobodyOut) {
  const auto server = Serve({.connections_max = 4, .strangers_max = 4});
  std::vector<std::unique_ptr<LocalPeer>> silent;
  for (int i = 0; i < 8; ++i) {
    silent.push_back(std::make_unique<LocalPeer>(path_));
    if (i % 2 == 0) silent.back()->Send("POST /slow HTTP/1.1\r\nContent-Length: 100\r\n\r\n");
    testing::Settle(io_);
  }
  LocalPeer peer(path_);
  EXPECT_TRUE(Answers(peer));
  EXPECT_TRUE(silent.front()->ended()) << "the oldest has given way";
}

TEST_F(LocalServerTest, WhatIsNoRequestOrTooLargeIsRefusedAndTheOthersGoOn) {
  const auto server = Serve({.body_max = 100});
  LocalPeer good(path_);
  EXPECT_TRUE(Answers(good));
  LocalPeer large(path_), wrong(path_), upgrade(path_);
  large.Send("POST /it HTTP/1.1\r\nContent-Length: 101\r\n\r\n");
  wrong.Send("\x16\x03\x01 what?\r\n\r\n");
  upgrade.Send(
      "GET /agent HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  EXPECT_TRUE(RunUntil(io_, [&] { return large.Received().contains("413"); }));
  EXPECT_TRUE(RunUntil(io_, [&] { return wrong.Received().contains("400"); }));
  EXPECT_TRUE(RunUntil(io_, [&] { return upgrade.Received().contains("GET /agent ;"); })) << "no WebSockets here";
  EXPECT_TRUE(Answers(good));
}

}  // namespace
}  // namespace aimaster
