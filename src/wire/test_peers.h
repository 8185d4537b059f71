// What the tests of this folder share: a loop that is driven until something has happened, and a peer that speaks in
// bytes, so that it can say what no client of ours ever would.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/server.h"

namespace aimaster::testing {

inline constexpr char kToken[] = "0123456789abcdef";

// The same for a whole program.
inline std::shared_ptr<const TlsIdentity> AnIdentity() {
  static const std::shared_ptr<const TlsIdentity> identity = [] {
    const std::string pem = MakeSelfSignedPem().value();
    return TlsIdentity::FromPem(pem, pem).value();
  }();
  return identity;
}

// Drives the loop until `done` says so. The limit is for a broken build alone.
template <typename Done>
[[nodiscard]] bool RunUntil(boost::asio::io_context& io, Done done) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    if (io.stopped()) io.restart();
    io.run_one_for(std::chrono::milliseconds(2));
  }
  return true;
}

// Lets everything happen that can happen now.
inline void Settle(boost::asio::io_context& io) {
  for (int i = 0; i < 20; ++i) {
    if (io.stopped()) io.restart();
    io.run_for(std::chrono::milliseconds(1));
  }
}

class RawPeer {
 public:
  explicit RawPeer(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawPeer() { Close(); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }

  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  // What has come so far; `ended()` tells whether the other side has hung up.
  const std::string& Received() {
    char buffer[4096];
    for (;;) {
      const ssize_t size = ::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
      if (size > 0) {
        received_.append(buffer, static_cast<size_t>(size));
        continue;
      }
      if (size == 0 || (errno != EAGAIN && errno != EINTR)) ended_ = true;
      return received_;
    }
  }
  bool ended() {
    Received();
    return ended_;
  }

  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  // With a reset instead of a goodbye, as a machine that was switched off and on would.
  void Reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    Close();
  }

 private:
  int fd_;
  bool connected_ = false;
  bool ended_ = false;
  std::string received_;
};

inline std::string Request(std::string_view line, std::string_view token, std::string_view headers = {},
                           std::string_view body = {}) {
  std::string text = std::string(line) + " HTTP/1.1\r\nHost: x\r\n";
  if (!token.empty()) text += "Authorization: Bearer " + std::string(token) + "\r\n";
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + std::string(headers) + "\r\n" + std::string(body);
}

inline std::string UpgradeRequestText(std::string_view token) {
  return Request("GET /agent", token,
                 "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
}

// A client's frame of less than 126 bytes, masked with zeros.
inline std::string Frame(int opcode, std::string_view payload) {
  std::string frame{static_cast<char>(0x80 | opcode), static_cast<char>(0x80 | payload.size()), 0, 0, 0, 0};
  return frame.append(payload);
}

// A server that answers every request with its own words and keeps its agents' sockets.
struct TestServer {
  explicit TestServer(boost::asio::io_context& loop, ServerOptions options = {}) : io(loop) {
    options.token = kToken;
    auto listening = Server::Listen(
        io, std::move(options),
        [this](const HttpRequest& request) {
          ++requests;
          if (on_request) on_request();
          if (request.target == "/missing") return HttpResponse{.status = 404, .body = "no such thing"};
          return HttpResponse{.body = request.method + " " + request.target + " " + request.body};
        },
        [this](std::shared_ptr<ServerSocket> socket) {
          sockets.push_back(socket);
          socket->on_message = [this, raw = socket.get()](std::string_view message) {
            received.emplace_back(message);
            if (on_message) on_message(raw, message);
          };
          socket->on_close = [this](std::string reason) {
            closed.push_back(std::move(reason));
            if (on_close) on_close();
          };
        });
    EXPECT_TRUE(listening.has_value());
    server = std::move(*listening);
  }

  uint16_t port() const { return server->port(); }

  boost::asio::io_context& io;
  std::unique_ptr<Server> server;
  int requests = 0;
  std::vector<std::shared_ptr<ServerSocket>> sockets;
  std::vector<std::string> received;
  std::vector<std::string> closed;
  std::function<void()> on_request;
  std::function<void(ServerSocket*, std::string_view)> on_message;
  std::function<void()> on_close;
};

}  // namespace aimaster::testing
