// Server: the one port of a master: HTTP requests and the agents' WebSockets. Every request needs the job's token.
//
//   stranger ── header ──▶ token? ──no──▶ 401, hang up
//                            │ yes
//                            ├── /agent, upgrade ──▶ WebSocket ──▶ on_socket
//                            └── else ── body ─────▶ on_http ────▶ answer, next request
//
// Nothing beyond a bounded header is read from who has not shown the token. A peer that is slow, malformed or too large
// loses its own connection and nobody else's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"
#include "wire/limits.h"
#include "wire/tls.h"

namespace aimaster {

struct HttpRequest {
  std::string method;  // "GET"
  std::string target;  // "/api/v1/stop?now=1"
  std::string body;
};

struct HttpResponse {
  unsigned status = 200;
  std::string body;
  std::string content_type = "application/json";
};

// The server's end of a WebSocket. Lives on the io_context's thread; callbacks are called there, never from inside a
// call of this class. They are set inside on_socket and not changed from inside one another. After on_close, which
// comes exactly once unless the server goes first, nothing more is called. Letting the pointer go closes nothing.
class ServerSocket {
 public:
  virtual ~ServerSocket() = default;
  // Queued; order kept; dropped after Close() and after the end. At most kMessageToAgentMax bytes each; when more than
  // kQueueToAgentMax wait for a stalled peer, the connection ends.
  virtual void Send(std::string message) = 0;
  virtual size_t queued_bytes() const = 0;
  // Sends what is queued, says goodbye, ends within kCloseTimeout. No on_message after it, only on_close.
  virtual void Close() = 0;

  std::function<void(std::string_view message)> on_message;
  std::function<void(std::string reason)> on_close;
};

// Other values than these are for tests.
struct ServerLimits {
  size_t connections_max = kConnectionsMax;
  size_t strangers_max = kStrangersMax;
  size_t body_max = kRequestBodyMax;
  size_t message_max = kMessageToMasterMax;
  size_t queue_max = kQueueToAgentMax;
  std::chrono::milliseconds header_timeout = kHandshakeTimeout;
  std::chrono::milliseconds body_timeout = kRequestBodyTimeout;
  std::chrono::milliseconds response_timeout = kResponseTimeout;
  std::chrono::milliseconds keep_alive_timeout = kKeepAliveTimeout;
  std::chrono::milliseconds idle_timeout = kSocketIdleTimeout;
  std::chrono::milliseconds close_timeout = kCloseTimeout;
  std::chrono::milliseconds linger_timeout = kLingerTimeout;
};

struct ServerOptions {
  std::string address = "127.0.0.1";  // beyond loopback only with an identity
  uint16_t preferred_port = 0;        // tried first; when it is taken, or 0, any free port
  std::string token;
  std::shared_ptr<const TlsIdentity> identity = {};  // null: in clear text
  ServerLimits limits;
};

// Lives on the io_context's thread and goes before it. Destroying it, also from inside a callback, closes the port and
// every connection without a callback.
class Server {
 public:
  // `on_http` answers at once. `on_socket` gets each authenticated WebSocket at /agent and sets its callbacks.
  static Result<std::unique_ptr<Server>> Listen(boost::asio::io_context& io, ServerOptions options,
                                                std::function<HttpResponse(const HttpRequest&)> on_http,
                                                std::function<void(std::shared_ptr<ServerSocket>)> on_socket);
  virtual ~Server() = default;
  virtual uint16_t port() const = 0;
};

}  // namespace aimaster
