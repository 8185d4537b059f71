#include "wire/websocket_client.h"

#include <utility>

#include "wire/limits.h"
#include "wire/message_socket.h"

namespace aimaster {
namespace {

constexpr MessageLimits kAgentLimits{
    .receive_max = kMessageToAgentMax,
    .send_max = kMessageToMasterMax,
    .queue_max = kQueueToMasterMax,
    .open_timeout = kHandshakeTimeout,
    .idle_timeout = kSocketIdleTimeout,
    .close_timeout = kCloseTimeout,
};

}  // namespace

WebSocketClient::WebSocketClient(boost::asio::io_context& io, WebSocketTarget target, Callbacks callbacks)
    : socket_(DialMessageSocket(
          io,
          {std::move(target.host), target.port, std::move(target.path), std::move(target.token),
           std::move(target.fingerprint)},
          kAgentLimits,
          {std::move(callbacks.on_open), std::move(callbacks.on_message), std::move(callbacks.on_close)})) {}

WebSocketClient::~WebSocketClient() { socket_->Abandon(); }

void WebSocketClient::Send(std::string message) { socket_->Send(std::move(message)); }

size_t WebSocketClient::queued_bytes() const { return socket_->queued_bytes(); }

void WebSocketClient::Close() { socket_->Close(); }

}  // namespace aimaster
