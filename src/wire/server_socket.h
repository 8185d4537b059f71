// AgentSocket: the ServerSocket that a master holds, from the upgrade request on. Joins three owners that must not know
// of each other: the message socket, the place in the connection table, and the master's callbacks.
#pragma once

#include <functional>
#include <memory>

#include "wire/connection_table.h"
#include "wire/message_socket.h"
#include "wire/server.h"

namespace aimaster {

// Answers the request; `on_socket` is called when the WebSocket is open, never when it could not be opened.
void AcceptAgentSocket(Stream stream, const UpgradeRequest& request, std::unique_ptr<Place> place,
                       const ServerLimits& limits,
                       std::shared_ptr<const std::function<void(std::shared_ptr<ServerSocket>)>> on_socket);

}  // namespace aimaster
