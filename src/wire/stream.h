// Stream: the one place that says what bytes travel over: TCP, in clear text on the loopback interface, under TLS
// wherever it is asked for, and nowhere beyond loopback without it: the token would cross the network for all to read.
// What stands above reads and writes the same way over both.
//
//   HTTP, WebSocket ──▶ Stream ──┬── recv, send ────────▶ socket
//                                └── TlsSession ────────▶ socket
//
// A type per kind of stream was rejected: everything above would be compiled twice for a choice that is made at run
// time.
//
// Sockets are made here with system calls and then handed to Asio, since Asio opens and accepts without close-on-exec:
// an agent starts shims at any time, and a rank that inherited a connection would keep it alive after the agent's
// death.
#pragma once

#include <array>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/websocket/teardown.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "wire/tls.h"

namespace aimaster {

using Executor = boost::asio::io_context::executor_type;
using Tcp = boost::asio::ip::tcp;
using TcpSocket = boost::asio::basic_stream_socket<Tcp, Executor>;
using Acceptor = boost::asio::basic_socket_acceptor<Tcp, Executor>;
using SteadyTimer = boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                                      boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;
using ErrorCode = boost::beast::error_code;

// Lives on the thread of its executor. One read and one write at a time; destroying it closes it, and what is under way
// ends with an error. Beast takes it for a stream of its own.
class Stream {
 public:
  using executor_type = Executor;

  explicit Stream(Executor executor) : link_(std::make_shared<Link>(executor)) {}
  ~Stream() {
    if (link_) link_->Close();
  }
  Stream(Stream&&) = default;
  Stream& operator=(Stream&&) = delete;

  executor_type get_executor() { return link_->socket.get_executor(); }
  TcpSocket& socket() { return link_->socket; }

  // From here on all is encrypted. Call it on a connected socket, before the first byte.
  Status EncryptAsServer(const TlsIdentity& identity);
  Status EncryptAsClient(const std::string& fingerprint);

  // What is under way then, or begins later, ends with error::timeout, and the stream is closed.
  void expires_after(std::chrono::milliseconds timeout) { link_->ExpireAfter(timeout); }
  void expires_never() { link_->deadline.cancel(); }
  void close() { link_->Close(); }
  // Nothing more comes from here; reading goes on.
  void SayEnd() {
    SayEndOfTls();
    ErrorCode ignored;
    link_->socket.shutdown(TcpSocket::shutdown_send, ignored);
  }
  void SayEndOfTls() {
    if (link_->tls) link_->tls->SayEnd();
  }
  // What an error of this stream means, for people.
  std::string Explain(ErrorCode ec) const;

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    boost::asio::mutable_buffer first;
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto it = boost::asio::buffer_sequence_begin(buffers); it != end && first.size() == 0; ++it) first = *it;
    return boost::asio::async_compose<Token, void(ErrorCode, size_t)>(
        Operation{link_, [first](Link& link) { return link.Read(first); }}, token, link_->socket);
  }

  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    Pieces pieces{};
    size_t count = 0;
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto it = boost::asio::buffer_sequence_begin(buffers); it != end && count < pieces.size(); ++it) {
      const boost::asio::const_buffer piece = *it;
      if (piece.size() != 0) pieces[count++] = piece;
    }
    return boost::asio::async_compose<Token, void(ErrorCode, size_t)>(
        Operation{link_, [pieces, count](Link& link) { return link.Write(std::span(pieces).first(count)); }}, token,
        link_->socket);
  }

 private:
  using Pieces = std::array<boost::asio::const_buffer, 16>;  // more go with the next write

  // What is moved around and outlives the stream while an operation is under way.
  struct Link : std::enable_shared_from_this<Link> {
    explicit Link(Executor executor) : socket(executor), deadline(executor) {}
    IoStep Read(boost::asio::mutable_buffer to);
    IoStep Write(std::span<const boost::asio::const_buffer> pieces);
    Status Encrypt(Result<std::unique_ptr<TlsSession>> session);
    void ExpireAfter(std::chrono::milliseconds timeout);
    void Close();
    ErrorCode WhyAborted(ErrorCode ec) const;

    TcpSocket socket;
    std::unique_ptr<TlsSession> tls;
    std::string failure;  // of TLS, after its end
    SteadyTimer deadline;
    bool expired = false;
  };

  // Tries, waits for the socket, tries again. Never calls back from inside the call that began it.
  template <typename Try>
  struct Operation {
    template <typename Self>
    void operator()(Self& self, ErrorCode ec = {}) {
      if (state == kDone) return self.complete(step.error, step.size);
      if (state == kWaiting && (ec || !link->socket.is_open())) return self.complete(link->WhyAborted(ec), 0);
      step = attempt(*link);
      if (step.wait == IoStep::Wait::kNothing) {
        if (state == kWaiting) return self.complete(step.error, step.size);
        state = kDone;
        boost::asio::post(link->socket.get_executor(), std::move(self));
        return;
      }
      state = kWaiting;
      TcpSocket& socket = link->socket;  // what is moved away takes `link` along
      const auto what = step.wait == IoStep::Wait::kReadable ? TcpSocket::wait_read : TcpSocket::wait_write;
      socket.async_wait(what, std::move(self));
    }

    std::shared_ptr<Link> link;
    Try attempt;
    enum { kBegun, kWaiting, kDone } state = kBegun;
    IoStep step = {};
  };
  template <typename Try>
  Operation(std::shared_ptr<Link>, Try) -> Operation<Try>;

  std::shared_ptr<Link> link_;
};

// How Beast's WebSocket ends a stream.
inline void beast_close_socket(Stream& stream) { stream.close(); }

template <typename Handler>
void async_teardown(boost::beast::role_type role, Stream& stream, Handler&& handler) {
  stream.SayEndOfTls();
  boost::beast::websocket::async_teardown(role, stream.socket(), std::forward<Handler>(handler));
}

bool IsLoopback(const std::string& host);

// The addresses of `host`, an IP address or "localhost". Beyond loopback only where the connection is encrypted.
Result<std::vector<Tcp::endpoint>> Endpoints(const std::string& host, uint16_t port, bool encrypted);

// Tries one endpoint after the other, then encrypts when a fingerprint is given. `done` gets an empty string, or why
// the last one failed; it is never called from inside Dial. The caller keeps the stream until then, and closes it to
// give up.
void Dial(Stream& stream, std::vector<Tcp::endpoint> endpoints, std::string fingerprint,
          std::function<void(std::string error)> done);

// Binds the preferred port, or any free one when it is taken or 0, and listens.
Result<Acceptor> ListenOn(Executor executor, const std::string& address, uint16_t preferred_port, bool encrypted);

// The next connection that waits; nothing is awaited. kTryAgain: none waits now. kExhausted: out of descriptors or
// memory.
enum class AcceptOutcome { kAccepted, kTryAgain, kExhausted };
AcceptOutcome AcceptOne(Acceptor& acceptor, Stream& stream);

}  // namespace aimaster
