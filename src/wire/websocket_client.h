// WebSocketClient: one connection of an agent to its master, from dialling to its end. Reconnecting is the caller's
// policy, not this class's: an agent waits differently at the start, after a crash of the master, and at the end.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace aimaster {

class MessageSocket;

struct WebSocketTarget {
  std::string host;  // an IP address or "localhost"; beyond loopback only with a fingerprint
  uint16_t port = 0;
  std::string path;              // "/agent"
  std::string token;             // sent as a bearer token, never logged
  std::string fingerprint = {};  // of the master's certificate, see tls.h; empty: in clear text
};

// Lives on the thread of its io_context; the callbacks are called there, never from inside a call of this class.
// After on_close, which comes exactly once, nothing more is called. Destroying it, also from inside a callback, closes
// without a callback and drops what is queued; who wants it sent calls Close() and waits for on_close.
class WebSocketClient {
 public:
  struct Callbacks {
    std::function<void()> on_open;
    std::function<void(std::string_view message)> on_message;  // one whole binary frame
    std::function<void(std::string reason)> on_close;          // also when the connection could not be made
  };

  WebSocketClient(boost::asio::io_context& io, WebSocketTarget target, Callbacks callbacks);
  ~WebSocketClient();
  WebSocketClient(const WebSocketClient&) = delete;
  WebSocketClient& operator=(const WebSocketClient&) = delete;

  // Queued, also before on_open; order kept; dropped after Close() and after the end. At most kMessageToMasterMax bytes
  // each; when more than kQueueToMasterMax wait, the connection ends.
  void Send(std::string message);
  size_t queued_bytes() const;  // not yet given to the kernel
  // Sends what is queued, says goodbye, ends within kCloseTimeout. No on_message after it, only on_close.
  void Close();

 private:
  std::shared_ptr<MessageSocket> socket_;
};

}  // namespace aimaster
