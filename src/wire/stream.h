// Stream: the one place that says what bytes travel over. Today that is TCP on the loopback interface; when other
// machines come, TLS is put in here and everything above stays as it is. Until then nothing in this folder listens on,
// or dials, an address beyond loopback: the token would cross the network in clear text.
//
// Sockets are made here with system calls and then handed to Asio, since Asio opens and accepts without close-on-exec:
// an agent starts shims at any time, and a rank that inherited a connection would keep it alive after the agent's
// death.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/rate_policy.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"

namespace aimaster {

using Executor = boost::asio::io_context::executor_type;
using Tcp = boost::asio::ip::tcp;
using Stream = boost::beast::basic_stream<Tcp, Executor, boost::beast::unlimited_rate_policy>;
using Acceptor = boost::asio::basic_socket_acceptor<Tcp, Executor>;
using ErrorCode = boost::beast::error_code;

// Where `host` may be found: a loopback address or "localhost".
Result<std::vector<Tcp::endpoint>> LoopbackEndpoints(const std::string& host, uint16_t port);

// Tries one endpoint after the other. `done` gets an empty string, or why the last one failed; it is never called from
// inside Dial. The caller keeps the stream until then, and closes it to give up.
void Dial(Stream& stream, std::vector<Tcp::endpoint> endpoints, std::function<void(std::string error)> done);

// Binds the preferred port, or any free one when it is taken or 0, and listens.
Result<Acceptor> ListenOn(Executor executor, const std::string& address, uint16_t preferred_port);

// The next connection that waits; nothing is awaited. kTryAgain: none waits now. kExhausted: out of descriptors or
// memory.
enum class AcceptOutcome { kAccepted, kTryAgain, kExhausted };
AcceptOutcome AcceptOne(Acceptor& acceptor, Stream& stream);

}  // namespace aimaster
