#include "wire/stream.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <cerrno>
#include <memory>
#include <utility>

#include "core/quote.h"
#include "wire/limits.h"

namespace aimaster {
namespace {

namespace asio = boost::asio;

ErrorCode LastError() { return ErrorCode(errno, boost::system::system_category()); }

std::string Text(const Tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(endpoint.port());
}

// A descriptor until somebody takes it over.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void Release() { fd_ = -1; }

 private:
  int fd_;
};

template <typename Socket>
ErrorCode Adopt(Socket& socket, const Tcp& protocol, Descriptor& descriptor) {
  if (descriptor.get() < 0) return LastError();
  ErrorCode ec;
  socket.assign(protocol, descriptor.get(), ec);
  if (!ec) descriptor.Release();
  return ec;
}

void SetNoDelay(Stream& stream) {
  ErrorCode ignored;  // without it messages are late, not lost
  stream.socket().set_option(Tcp::no_delay(true), ignored);
}

int OpenDescriptor(const Tcp& protocol) {
  return ::socket(protocol.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// One dialling, from the first endpoint to the last.
struct Dialling : std::enable_shared_from_this<Dialling> {
  Dialling(Stream& dialled, std::vector<Tcp::endpoint> where, std::function<void(std::string)> tell)
      : stream(dialled), endpoints(std::move(where)), done(std::move(tell)) {}

  void Next() {
    if (next == endpoints.size()) {
      asio::post(stream.get_executor(), [self = shared_from_this()] { self->done(self->error); });
      return;
    }
    const Tcp::endpoint endpoint = endpoints[next++];
    Descriptor descriptor(OpenDescriptor(endpoint.protocol()));
    if (ErrorCode ec = Adopt(stream.socket(), endpoint.protocol(), descriptor)) {
      error = "no socket for " + Text(endpoint) + ": " + ec.message();
      Next();
      return;
    }
    stream.async_connect(endpoint, [self = shared_from_this(), endpoint](ErrorCode ec) {
      if (!ec) {
        SetNoDelay(self->stream);
        self->done({});
        return;
      }
      self->error = "cannot connect to " + Text(endpoint) + ": " + ec.message();
      if (ec == asio::error::operation_aborted) {
        self->done(self->error);
        return;
      }
      self->stream.close();
      self->Next();
    });
  }

  Stream& stream;
  const std::vector<Tcp::endpoint> endpoints;
  const std::function<void(std::string)> done;
  size_t next = 0;
  std::string error = "no address to dial";
};

ErrorCode BindAndListen(Acceptor& acceptor, const Tcp::endpoint& endpoint) {
  Descriptor descriptor(OpenDescriptor(endpoint.protocol()));
  if (ErrorCode ec = Adopt(acceptor, endpoint.protocol(), descriptor)) return ec;
  ErrorCode ec;
  acceptor.set_option(Acceptor::reuse_address(true), ec);  // a port in TIME_WAIT is ours to take again
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(kListenBacklog, ec);
  if (ec) {
    ErrorCode ignored;
    acceptor.close(ignored);
  }
  return ec;
}

}  // namespace

Result<std::vector<Tcp::endpoint>> LoopbackEndpoints(const std::string& host, uint16_t port) {
  if (host == "localhost") {
    return std::vector<Tcp::endpoint>{{asio::ip::address_v4::loopback(), port},
                                      {asio::ip::address_v6::loopback(), port}};
  }
  ErrorCode ec;
  const auto address = asio::ip::make_address(host, ec);
  if (ec || !address.is_loopback()) {
    return Fail(ErrorKind::kUsage, Quoted(host) +
                                       " is not a loopback address: connections to other machines need TLS, which "
                                       "this version does not have; use 127.0.0.1");
  }
  return std::vector<Tcp::endpoint>{{address, port}};
}

void Dial(Stream& stream, std::vector<Tcp::endpoint> endpoints, std::function<void(std::string error)> done) {
  std::make_shared<Dialling>(stream, std::move(endpoints), std::move(done))->Next();
}

Result<Acceptor> ListenOn(Executor executor, const std::string& address, uint16_t preferred_port) {
  auto endpoints = LoopbackEndpoints(address, preferred_port);
  if (!endpoints) return std::unexpected(endpoints.error());
  Tcp::endpoint endpoint = endpoints->front();

  Acceptor acceptor(executor);
  ErrorCode ec = BindAndListen(acceptor, endpoint);
  if (ec && preferred_port != 0) {
    endpoint.port(0);
    ec = BindAndListen(acceptor, endpoint);
  }
  if (ec) {
    return Fail(ErrorKind::kEnvironment,
                "cannot listen on " + address + ": " + ec.message() + "; is the loopback interface up?");
  }
  return acceptor;
}

AcceptOutcome AcceptOne(Acceptor& acceptor, Stream& stream) {
  for (;;) {
    Descriptor descriptor(::accept4(acceptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (descriptor.get() < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return AcceptOutcome::kTryAgain;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) return AcceptOutcome::kExhausted;
      if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) return AcceptOutcome::kTryAgain;
      continue;  // that connection died while it waited, or a signal came
    }
    ErrorCode ignored;
    const Tcp::endpoint local = acceptor.local_endpoint(ignored);
    if (Adopt(stream.socket(), local.protocol(), descriptor)) return AcceptOutcome::kExhausted;
    SetNoDelay(stream);
    return AcceptOutcome::kAccepted;
  }
}

}  // namespace aimaster
