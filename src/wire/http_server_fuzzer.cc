// Whatever bytes arrive at a master's port, it stays up and bounded. The first byte chooses how far the peer has come:
// a stranger, one who has shown the token, an agent with an open WebSocket, or a stranger where TLS is spoken.
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/check.h"
#include "wire/http_connection.h"

namespace {

constexpr std::string_view kToken = "token";
constexpr std::string_view kAuthorized = "POST /x HTTP/1.1\r\nAuthorization: Bearer token\r\n";
constexpr std::string_view kUpgrade =
    "GET /agent HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer token\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

const aimaster::TlsIdentity& Identity() {
  static const auto identity = [] {
    const std::string pem = aimaster::MakeSelfSignedPem().value();
    return aimaster::TlsIdentity::FromPem(pem, pem).value();
  }();
  return *identity;
}

void Run(boost::asio::io_context& io) {
  if (io.stopped()) io.restart();
  io.poll();
}

void Send(int fd, std::string_view bytes) {
  const ssize_t ignored = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  static_cast<void>(ignored);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const int stage = data[0] >= 0x80 ? 3 : data[0] % 3;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);

  boost::asio::io_context io{1};
  std::shared_ptr<aimaster::ServerSocket> agent;
  auto context = std::make_shared<aimaster::ServerContext>();
  context->token = kToken;
  context->on_http = [&](const aimaster::HttpRequest& request) {
    CHECK(stage < 2 && request.body.size() <= aimaster::kRequestBodyMax);
    return aimaster::HttpResponse{.body = request.body};
  };
  context->on_socket = [&](std::shared_ptr<aimaster::ServerSocket> socket) {
    agent = std::move(socket);
    agent->on_message = [&](std::string_view message) {
      CHECK(message.size() <= aimaster::kMessageToMasterMax);
      agent->Send(std::string(message));
    };
  };
  context->table = std::make_shared<aimaster::ConnectionTable>(4, 4);

  int ends[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  {
    aimaster::Stream stream(io.get_executor());
    stream.socket().assign(aimaster::Tcp::v4(), ends[0]);
    if (stage == 3) CHECK(stream.EncryptAsServer(Identity()));
    aimaster::ServeHttp(std::move(stream), context);
  }
  if (stage == 1) Send(ends[1], kAuthorized);
  if (stage == 2) Send(ends[1], kUpgrade);
  Run(io);
  CHECK((stage == 2) == (agent != nullptr));
  // In two pieces, so that no parser may rely on getting it all at once.
  Send(ends[1], bytes.substr(0, bytes.size() / 2));
  Run(io);
  Send(ends[1], bytes.substr(bytes.size() / 2));
  Run(io);
  ::close(ends[1]);
  Run(io);
  context->table->EvictAll();
  Run(io);
  return 0;
}
