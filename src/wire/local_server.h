// LocalServer: HTTP over a Unix socket, for this user's programs on this machine. There is no token: who is at the
// other end, the kernel says, and anybody else is hung up on before a byte of his is read.
//
// A connection is served as a master's are (http_connection.h), with the same bounds. Whoever comes when all places
// are taken gets that of the one who has been there longest: a client that only holds connections keeps nobody out.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "core/error.h"
#include "wire/server.h"

namespace aimaster {

// Lives on the io_context's thread and goes before it. Destroying it closes every connection and removes the socket.
class LocalServer {
 public:
  // Which process of this user, or of root, asks; 0: one of another pid namespace.
  using Answer = std::function<HttpResponse(const HttpRequest&, pid_t peer)>;

  // Replaces a socket that is there: a former server's, who is gone. `answer` answers at once.
  static Result<std::unique_ptr<LocalServer>> Listen(boost::asio::io_context& io, const std::string& path,
                                                     const ServerLimits& limits, Answer answer);
  virtual ~LocalServer() = default;
  // Answers what has been said and not come to its turn yet, within the call: before an end that it was said before.
  virtual void AnswerWaiting() = 0;
};

}  // namespace aimaster
