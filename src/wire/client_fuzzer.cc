// Whatever a master's port answers, be it somebody else's port by now, a client of ours ends with a result. The first
// byte chooses what the bytes are: an answer to the command line's request, to an agent's handshake, or frames for an
// agent whose handshake was answered as it should be.
#include <netinet/in.h>
#include <openssl/evp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "core/check.h"
#include "core/quote.h"
#include "wire/http_client.h"
#include "wire/limits.h"
#include "wire/websocket_client.h"

namespace {

using namespace std::chrono_literals;

// Listens once for the whole run, on a port of the kernel's choice.
struct Port {
  Port() : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    CHECK(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(fd, 64) == 0);
    CHECK(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    number = ntohs(address.sin_port);
  }
  int fd;
  uint16_t number;
};

std::string ReadRequest(int fd) {
  std::string request;
  char buffer[1024];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got <= 0) break;
    request.append(buffer, static_cast<size_t>(got));
  }
  return request;
}

std::string HandshakeAnswer(std::string_view request) {
  constexpr std::string_view kHeader = "Sec-WebSocket-Key: ";
  const size_t at = request.find(kHeader);
  if (at == std::string_view::npos) return {};
  const size_t begin = at + kHeader.size();
  const std::string key =
      std::string(request.substr(begin, request.find('\r', begin) - begin)) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  unsigned char digest[EVP_MAX_MD_SIZE], text[64];
  unsigned size = 0;
  CHECK(EVP_Digest(key.data(), key.size(), digest, &size, EVP_sha1(), nullptr) == 1);
  EVP_EncodeBlock(text, digest, static_cast<int>(size));
  return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
         std::string(reinterpret_cast<char*>(text)) + "\r\n\r\n";
}

void Answer(int port, bool shakes_hands, std::string_view bytes) {
  const int fd = ::accept4(port, nullptr, nullptr, SOCK_CLOEXEC);
  CHECK(fd >= 0);
  const std::string request = ReadRequest(fd);
  const std::string all = (shakes_hands ? HandshakeAnswer(request) : "") + std::string(bytes);
  const ssize_t ignored = ::send(fd, all.data(), all.size(), MSG_NOSIGNAL);
  static_cast<void>(ignored);
  ::shutdown(fd, SHUT_WR);
  char rest[4096];
  while (::recv(fd, rest, sizeof rest, 0) > 0) {
  }
  ::close(fd);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > aimaster::kMebibyte / 16) return 0;
  static const Port port;
  const int stage = data[0] % 3;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::thread master([&] { Answer(port.fd, stage == 2, bytes); });
  if (stage == 0) {
    const auto result = aimaster::HttpCall({.port = port.number, .token = "token"}, "GET", "/", "");
    if (result) CHECK(result->size() <= aimaster::kResponseBodyMax);
    if (!result) CHECK(aimaster::IsPrintable(result.error().message));
  } else {
    boost::asio::io_context io{1};
    bool ended = false;
    aimaster::WebSocketClient client(io, {"127.0.0.1", port.number, "/agent", "token"},
                                     {[] {},
                                      [&](std::string_view message) {
                                        CHECK(!ended && message.size() <= aimaster::kMessageToAgentMax);
                                        client.Send(std::string(message.substr(0, 100)));
                                      },
                                      [&](const std::string& reason) {
                                        CHECK(!ended && aimaster::IsPrintable(reason));
                                        ended = true;
                                        io.stop();
                                      }});
    io.run_for(10s);
    CHECK(ended);
  }
  master.join();
  return 0;
}
