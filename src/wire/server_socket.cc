#include "wire/server_socket.h"

#include <string>
#include <utility>

namespace aimaster {
namespace {

class AgentSocket final : public ServerSocket, public Guest, public std::enable_shared_from_this<AgentSocket> {
 public:
  explicit AgentSocket(std::unique_ptr<Place> place) : place_(std::move(place)) { place_->HandTo(this); }

  void Start(Stream stream, const UpgradeRequest& request, const ServerLimits& limits,
             std::shared_ptr<const std::function<void(std::shared_ptr<ServerSocket>)>> on_socket) {
    const MessageLimits message_limits{
        .receive_max = limits.message_max,
        .send_max = kMessageToAgentMax,
        .queue_max = limits.queue_max,
        .open_timeout = limits.header_timeout,
        .idle_timeout = limits.idle_timeout,
        .close_timeout = limits.close_timeout,
    };
    // The callbacks hold this object and this object holds the socket: a circle on purpose, it keeps the connection
    // alive whatever the master does with its pointer. The socket breaks it at its end, Evict before that.
    const auto self = shared_from_this();
    socket_ = AcceptMessageSocket(
        std::move(stream), request, message_limits,
        {.on_open = [self, on_socket = std::move(on_socket)] { self->Tell([&] { (*on_socket)(self); }); },
         .on_message =
             [self](std::string_view message) {
               self->Tell([&] {
                 if (self->on_message) self->on_message(message);
               });
             },
         .on_close = [self](std::string reason) { self->Closed(std::move(reason)); }});
  }

  void Send(std::string message) override { socket_->Send(std::move(message)); }
  size_t queued_bytes() const override { return socket_->queued_bytes(); }
  void Close() override { socket_->Close(); }

  void Evict() override {
    const auto self = shared_from_this();
    place_.reset();
    socket_->Abandon();
    if (!telling_) Forget();  // a function that is running must not be destroyed
  }

 private:
  template <typename Function>
  void Tell(Function tell) {
    telling_ = true;
    tell();
    telling_ = false;
    if (!place_) Forget();
  }

  void Closed(std::string reason) {
    place_.reset();
    const auto last = std::exchange(on_close, {});
    on_message = {};
    if (last) last(std::move(reason));
  }

  void Forget() {
    on_message = {};
    on_close = {};
  }

  std::shared_ptr<MessageSocket> socket_;
  std::unique_ptr<Place> place_;
  bool telling_ = false;
};

}  // namespace

void AcceptAgentSocket(Stream stream, const UpgradeRequest& request, std::unique_ptr<Place> place,
                       const ServerLimits& limits,
                       std::shared_ptr<const std::function<void(std::shared_ptr<ServerSocket>)>> on_socket) {
  std::make_shared<AgentSocket>(std::move(place))->Start(std::move(stream), request, limits, std::move(on_socket));
}

}  // namespace aimaster
