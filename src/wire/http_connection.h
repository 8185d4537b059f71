// HttpConnection: one accepted connection, from its first byte until it ends or becomes a WebSocket. A straight line
// that is walked again for every request of a kept-alive connection: header, token, body, answer.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "wire/connection_table.h"
#include "wire/server.h"
#include "wire/stream.h"

namespace aimaster {

// What all connections of a server share; outlives the server until the last of them has gone.
struct ServerContext {
  std::string token;  // empty: none is asked for, who may connect is known already; then there are no WebSockets
  ServerLimits limits;
  std::function<HttpResponse(const HttpRequest&)> on_http;
  std::function<void(std::shared_ptr<ServerSocket>)> on_socket;
  std::shared_ptr<ConnectionTable> table;
};

// Serves the connection when the table has a place for it, closes it otherwise.
void ServeHttp(Stream stream, std::shared_ptr<const ServerContext> context);

}  // namespace aimaster
