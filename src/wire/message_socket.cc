#include "wire/message_socket.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/error.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <deque>
#include <utility>

#include "core/check.h"
#include "wire/limits.h"
#include "wire/peer_text.h"
#include "wire/token.h"

namespace aimaster {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;

class WebSocket final : public MessageSocket, public std::enable_shared_from_this<WebSocket> {
 public:
  WebSocket(Stream stream, MessageLimits limits, Callbacks callbacks)
      : socket_(std::move(stream)),
        deadline_(socket_.get_executor()),
        limits_(limits),
        callbacks_(std::move(callbacks)) {
    socket_.binary(true);
    socket_.auto_fragment(false);  // one message is one frame
    socket_.read_message_max(limits_.receive_max);
    websocket::stream_base::timeout timeouts{};
    timeouts.handshake_timeout = websocket::stream_base::none();  // deadline_ covers connecting and closing as wholes
    timeouts.idle_timeout = limits_.idle_timeout;
    timeouts.keep_alive_pings = true;
    socket_.set_option(timeouts);
  }

  void Connect(DialTarget target) {
    auto endpoints = Endpoints(target.host, target.port, !target.fingerprint.empty());
    if (!endpoints) return End(endpoints.error().message);
    if (!IsToken(target.token)) return End("the job's token is empty or holds characters that no token has");
    peer_ = target.host + ":" + std::to_string(target.port);
    SetDeadline(limits_.open_timeout, State::kConnecting, "no answer from " + peer_);
    std::string fingerprint = target.fingerprint;  // the next line moves its owner
    Dial(stream(), std::move(*endpoints), std::move(fingerprint),
         [self = shared_from_this(), target = std::move(target)](const std::string& error) {
           if (self->state_ == State::kEnded) return;
           if (!error.empty()) return self->End(error);
           self->Handshake(target);
         });
  }

  void Accept(const UpgradeRequest& request) {
    SetDeadline(limits_.open_timeout, State::kConnecting, "the peer did not take the answer to its handshake");
    socket_.async_accept(request, [self = shared_from_this()](ErrorCode ec) { self->Opened(ec); });
  }

  void Send(std::string message) override {
    CHECK(message.size() <= limits_.send_max);
    if (state_ != State::kConnecting && state_ != State::kOpen) return;
    queued_bytes_ += message.size();
    queue_.push_back(std::move(message));
    if (queued_bytes_ > limits_.queue_max) {
      return End("the peer takes too little: " + std::to_string(queued_bytes_) + " bytes wait for it, at most " +
                 std::to_string(limits_.queue_max) + " may");
    }
    if (state_ == State::kOpen) WriteNext();
  }

  size_t queued_bytes() const override { return queued_bytes_; }

  void Close() override {
    switch (state_) {
      case State::kConnecting:
        return End("closed here before it was open");
      case State::kOpen:
        return Drain(websocket::close_code::normal, "closed here");
      case State::kDraining:
      case State::kClosing:
      case State::kEnded:
        return;
    }
  }

  void Abandon() override {
    abandoned_ = true;
    End({});
    if (!telling_) callbacks_ = {};  // a function that is running must not be destroyed
  }

 private:
  enum class State { kConnecting, kOpen, kDraining, kClosing, kEnded };

  Stream& stream() { return socket_.next_layer(); }

  void Handshake(const DialTarget& target) {
    stream().expires_never();
    socket_.set_option(websocket::stream_base::decorator([token = target.token](websocket::request_type& request) {
      request.set(http::field::authorization, "Bearer " + token);
    }));
    socket_.async_handshake(response_, peer_, target.path,
                            [self = shared_from_this()](ErrorCode ec) { self->Opened(ec); });
  }

  void Opened(ErrorCode ec) {
    if (state_ == State::kEnded) return;
    if (ec == websocket::error::upgrade_declined) {
      return End("refused by " + peer_ + ": HTTP " + std::to_string(response_.result_int()) + " " +
                 PeerText(std::string_view(response_.reason().data(), response_.reason().size())));
    }
    if (ec) return End("handshake with " + peer_ + " failed: " + stream().Explain(ec));
    response_ = {};
    state_ = State::kOpen;
    deadline_.cancel();
    Tell([this] {
      if (callbacks_.on_open) callbacks_.on_open();
    });
    WriteNext();
    Read();
  }

  // While closing, the goodbye itself reads on and throws away what comes.
  void Read() {
    if (state_ != State::kOpen && state_ != State::kDraining) return;
    socket_.async_read(buffer_, [self = shared_from_this()](ErrorCode ec, size_t) { self->Received(ec); });
  }

  void Received(ErrorCode ec) {
    if (state_ == State::kEnded) return;
    if (ec) return End(Describe(ec));
    if (state_ == State::kOpen && !socket_.got_binary()) {
      queue_.clear();
      queued_bytes_ = writing_.size();
      Drain(websocket::close_code::unknown_data, "the peer sent text where only binary messages are spoken");
    }
    if (state_ == State::kOpen) {
      const auto bytes = buffer_.cdata();
      Tell([this, message = std::string_view(static_cast<const char*>(bytes.data()), bytes.size())] {
        if (callbacks_.on_message) callbacks_.on_message(message);
      });
    }
    buffer_.consume(buffer_.size());
    if (buffer_.capacity() > kIdleBufferMax) buffer_.shrink_to_fit();
    Read();
  }

  void WriteNext() {
    if (state_ == State::kEnded || writing_now_ || queue_.empty()) return;
    writing_now_ = true;
    writing_ = std::move(queue_.front());
    queue_.pop_front();
    socket_.async_write(asio::buffer(writing_),
                        [self = shared_from_this()](ErrorCode ec, size_t) { self->Written(ec); });
  }

  void Written(ErrorCode ec) {
    writing_now_ = false;
    if (state_ == State::kEnded) return;
    queued_bytes_ -= writing_.size();
    writing_ = {};
    if (ec) return End(Describe(ec));
    if (!queue_.empty()) return WriteNext();
    if (state_ == State::kDraining) Goodbye();
  }

  void Drain(websocket::close_code code, std::string reason) {
    state_ = State::kDraining;
    goodbye_code_ = code;
    closing_reason_ = std::move(reason);
    SetDeadline(limits_.close_timeout, State::kDraining, closing_reason_ + "; the peer did not answer the goodbye");
    WriteNext();
    if (!writing_now_) Goodbye();
  }

  void Goodbye() {
    state_ = State::kClosing;
    socket_.async_close(goodbye_code_, [self = shared_from_this()](ErrorCode) {
      if (self->state_ != State::kEnded) self->End(self->closing_reason_);
    });
  }

  std::string Describe(ErrorCode ec) const {
    if (state_ == State::kDraining || state_ == State::kClosing) return closing_reason_;
    const auto& goodbye = socket_.reason();
    if (goodbye.code != websocket::close_code::none) {
      const std::string_view said(goodbye.reason.data(), goodbye.reason.size());
      return said.empty() ? "closed by the peer" : "closed by the peer: " + PeerText(said);
    }
    if (ec == beast::error::timeout) {
      return "no sign of the peer for " + std::to_string(limits_.idle_timeout.count()) + " ms";
    }
    if (ec == websocket::error::message_too_big) {
      return "the peer sent a message of more than " + std::to_string(limits_.receive_max) + " bytes";
    }
    return "connection lost: " + socket_.next_layer().Explain(ec);
  }

  // The states only ever advance, so a deadline that fires late can tell that it no longer matters.
  void SetDeadline(std::chrono::milliseconds timeout, State phase, std::string reason) {
    deadline_.expires_after(timeout);
    deadline_.async_wait([self = shared_from_this(), phase, reason = std::move(reason), timeout](ErrorCode ec) {
      const bool waiting = phase == State::kConnecting
                               ? self->state_ == State::kConnecting
                               : self->state_ == State::kDraining || self->state_ == State::kClosing;
      if (!ec && waiting) self->End(reason + " within " + std::to_string(timeout.count()) + " ms");
    });
  }

  template <typename Function>
  void Tell(Function tell) {
    telling_ = true;
    tell();
    telling_ = false;
    if (abandoned_) callbacks_ = {};
  }

  // The only way into kEnded. The callback is posted: End may run inside a call of the owner's.
  void End(std::string reason) {
    if (state_ == State::kEnded) return;
    state_ = State::kEnded;
    queue_.clear();
    queued_bytes_ = 0;
    deadline_.cancel();
    stream().close();
    if (abandoned_) return;
    asio::post(socket_.get_executor(), [self = shared_from_this(), reason = std::move(reason)] {
      Callbacks last = std::exchange(self->callbacks_, {});
      if (!self->abandoned_ && last.on_close) last.on_close(reason);
    });
  }

  websocket::stream<Stream, false> socket_;  // false: no compression, so that no small message can grow large
  SteadyTimer deadline_;
  const MessageLimits limits_;
  Callbacks callbacks_;
  State state_ = State::kConnecting;
  bool abandoned_ = false;
  bool telling_ = false;  // one of callbacks_ is running

  beast::flat_buffer buffer_;
  std::deque<std::string> queue_;
  std::string writing_;  // what the write in progress reads from, so it stays until that has ended
  bool writing_now_ = false;
  size_t queued_bytes_ = 0;  // queue_ and writing_

  websocket::close_code goodbye_code_ = websocket::close_code::normal;
  std::string closing_reason_;  // set when the closing began here
  std::string peer_;
  websocket::response_type response_;
};

}  // namespace

std::shared_ptr<MessageSocket> DialMessageSocket(asio::io_context& io, DialTarget target, MessageLimits limits,
                                                 MessageSocket::Callbacks callbacks) {
  auto socket = std::make_shared<WebSocket>(Stream(io.get_executor()), limits, std::move(callbacks));
  socket->Connect(std::move(target));
  return socket;
}

std::shared_ptr<MessageSocket> AcceptMessageSocket(Stream stream, const UpgradeRequest& request, MessageLimits limits,
                                                   MessageSocket::Callbacks callbacks) {
  auto socket = std::make_shared<WebSocket>(std::move(stream), limits, std::move(callbacks));
  socket->Accept(request);
  return socket;
}

}  // namespace aimaster
