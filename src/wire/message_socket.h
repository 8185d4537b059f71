// MessageSocket: whole binary messages over one WebSocket, the same at both ends.
//
// Think of two people who pass sealed letters through a slot: one letter at a time in each direction, letters that wait
// lie in a pile of bounded height, and whoever hears nothing for too long walks away. What the letters say is not known
// here. Separate classes for the two ends were rejected: after the handshake they differ in nothing, and the life cycle
// is the part that is easy to get wrong.
//
//                    opened              Close()               queue empty
//   kConnecting ─────────────▶ kOpen ─────────────▶ kDraining ─────────────▶ kClosing
//        │                       │                      │                       │ goodbye answered, or too late
//        └───────────────────────┴──────────────────────┴───────────────────────┴──▶ kEnded: on_close, once
//            any error, any timeout, Close() before it was open
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "wire/stream.h"

namespace aimaster {

struct MessageLimits {
  size_t receive_max;
  size_t send_max;
  size_t queue_max;
  std::chrono::milliseconds open_timeout;   // until the WebSocket is up
  std::chrono::milliseconds idle_timeout;   // without any sign of the peer; pings are sent at half of it
  std::chrono::milliseconds close_timeout;  // from Close() to on_close
};

// Lives on the thread of its io_context. Callbacks are called there, never from inside a call of this class.
class MessageSocket {
 public:
  struct Callbacks {
    std::function<void()> on_open;
    std::function<void(std::string_view message)> on_message;
    std::function<void(std::string reason)> on_close;
  };

  virtual ~MessageSocket() = default;

  // Queued, also before the socket is open; order kept; dropped after Close() and after the end. A message larger than
  // send_max is a bug of the caller. When more than queue_max waits, the connection ends.
  virtual void Send(std::string message) = 0;
  virtual size_t queued_bytes() const = 0;

  // Sends what is queued, says goodbye, and ends within close_timeout. No on_message after it, only on_close.
  virtual void Close() = 0;

  // Ends at once; no callback any more. May be called from inside a callback.
  virtual void Abandon() = 0;
};

using UpgradeRequest = boost::beast::http::request<boost::beast::http::string_body>;

struct DialTarget {
  std::string host;
  uint16_t port = 0;
  std::string path;
  std::string token;
  std::string fingerprint = {};  // of the master's certificate; empty: in clear text
};

// The caller's end: dials, shows the token, opens.
std::shared_ptr<MessageSocket> DialMessageSocket(boost::asio::io_context& io, DialTarget target, MessageLimits limits,
                                                 MessageSocket::Callbacks callbacks);

// The server's end: answers an upgrade request that has been read and authenticated.
std::shared_ptr<MessageSocket> AcceptMessageSocket(Stream stream, const UpgradeRequest& request, MessageLimits limits,
                                                   MessageSocket::Callbacks callbacks);

}  // namespace aimaster
