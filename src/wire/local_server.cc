#include "wire/local_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "wire/http_connection.h"
#include "wire/stream.h"

namespace aimaster {
namespace {

namespace asio = boost::asio;
using Local = asio::local::stream_protocol;
using LocalAcceptor = asio::basic_socket_acceptor<Local, Executor>;

std::unexpected<Error> CannotServe(const std::string& path, int error) {
  return Fail(ErrorKind::kEnvironment, "cannot serve the socket " + path + ": " + std::strerror(error));
}

// Bound under a mask that leaves it to this user alone from its first moment.
Result<int> Bind(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return CannotServe(path, ENAMETOOLONG);
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return CannotServe(path, errno);
  struct stat old{};
  if (::lstat(path.c_str(), &old) == 0 && S_ISSOCK(old.st_mode)) ::unlink(path.c_str());
  const mode_t mask = ::umask(0177);
  const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int error = errno;
  ::umask(mask);
  if (bound && ::listen(fd, kListenBacklog) == 0) return fd;
  const auto failed = CannotServe(path, bound ? errno : error);
  ::close(fd);
  return failed;
}

class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(LocalAcceptor acceptor, const ServerLimits& limits, LocalServer::Answer answer)
      : acceptor_(std::move(acceptor)), pause_(acceptor_.get_executor()), answer_(std::move(answer)) {
    context_.limits = limits;
    context_.table = std::make_shared<ConnectionTable>(limits.connections_max, limits.strangers_max);
  }

  void Wait() {
    if (!acceptor_.is_open()) return;
    acceptor_.async_wait(LocalAcceptor::wait_read, [self = shared_from_this()](ErrorCode ec) {
      if (!ec && self->AcceptSome()) return self->Wait();
      if (!ec) self->Pause();
    });
  }

  // Those that wait are answered at once, where they have said all (http_connection.cc). False: they can't be accepted.
  bool AcceptSome() {
    for (int i = 0; i < kAcceptBatch; ++i) {
      const int fd = ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        Serve(fd);
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        return false;
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      }
    }
    return true;
  }

  void Stop() {
    ErrorCode ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    context_.table->EvictAll();
  }

 private:
  // Waiting for readiness again would come back at once and burn a core until somebody leaves.
  void Pause() {
    context_.table->EvictOldestStranger();
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([self = shared_from_this()](ErrorCode ec) {
      if (!ec) self->Wait();
    });
  }

  void Serve(int fd) {
    ucred peer{};
    socklen_t size = sizeof peer;
    Stream stream(acceptor_.get_executor());
    ErrorCode failed;
    // To a Stream a socket is a descriptor; which family it is of matters to nobody above.
    stream.socket().assign(Tcp::v4(), fd, failed);
    if (failed) {
      ::close(fd);
      return;
    }
    const bool known = ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    if (!known || (peer.uid != ::geteuid() && peer.uid != 0)) return;
    auto context = std::make_shared<ServerContext>(context_);
    context->on_http = [self = weak_from_this(), pid = peer.pid](const HttpRequest& request) -> HttpResponse {
      const auto listener = self.lock();
      return listener ? listener->answer_(request, pid) : HttpResponse{503, "{}"};
    };
    ServeHttp(std::move(stream), std::move(context));
  }

  LocalAcceptor acceptor_;
  SteadyTimer pause_;
  const LocalServer::Answer answer_;
  ServerContext context_;  // what all connections share
};

class ListeningLocalServer final : public LocalServer {
 public:
  ListeningLocalServer(std::shared_ptr<Listener> listener, std::string path)
      : listener_(std::move(listener)), path_(std::move(path)) {}
  ~ListeningLocalServer() override {
    listener_->Stop();
    ::unlink(path_.c_str());
  }
  void AnswerWaiting() override { listener_->AcceptSome(); }

 private:
  const std::shared_ptr<Listener> listener_;
  const std::string path_;
};

}  // namespace

Result<std::unique_ptr<LocalServer>> LocalServer::Listen(asio::io_context& io, const std::string& path,
                                                         const ServerLimits& limits, Answer answer) {
  const Result<int> fd = Bind(path);
  if (!fd) return std::unexpected(fd.error());
  LocalAcceptor acceptor(io.get_executor());
  ErrorCode failed;
  acceptor.assign(Local(), *fd, failed);
  if (failed) {
    ::close(*fd);
    return CannotServe(path, failed.value());
  }
  auto listener = std::make_shared<Listener>(std::move(acceptor), limits, std::move(answer));
  listener->Wait();
  return std::make_unique<ListeningLocalServer>(std::move(listener), path);
}

}  // namespace aimaster
