#include "wire/stream.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "core/quote.h"
#include "wire/limits.h"
#include "wire/peer_owner.h"

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

// A record holds 16 KiB at most, and small pieces, a frame's header and its payload, share one.
IoStep WriteEncrypted(TlsSession& tls, std::span<const asio::const_buffer> pieces) {
  constexpr size_t kGatherMax = 16 * kKibibyte;
  const asio::const_buffer first = pieces.front();
  if (pieces.size() == 1 || first.size() >= kGatherMax) return tls.Write(first.data(), first.size());
  unsigned char gathered[kGatherMax];
  size_t size = 0;
  for (const asio::const_buffer& piece : pieces) {
    const size_t part = std::min(piece.size(), kGatherMax - size);
    std::memcpy(gathered + size, piece.data(), part);
    size += part;
  }
  return tls.Write(gathered, size);
}

int OpenDescriptor(const Tcp& protocol) {
  return ::socket(protocol.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// One dialling, from the first endpoint to the last.
struct Dialling : std::enable_shared_from_this<Dialling> {
  Dialling(Stream& dialled, std::vector<Tcp::endpoint> where, std::string certificate,
           std::function<void(std::string)> tell)
      : stream(dialled), endpoints(std::move(where)), fingerprint(std::move(certificate)), done(std::move(tell)) {}

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
    stream.socket().async_connect(endpoint, [self = shared_from_this(), endpoint](ErrorCode ec) {
      if (!ec) return self->Connected();
      self->error = "cannot connect to " + Text(endpoint) + ": " + ec.message();
      if (ec == asio::error::operation_aborted) {
        self->done(self->error);
        return;
      }
      self->stream.close();
      self->Next();
    });
  }

  void Connected() {
    SetNoDelay(stream);
    if (!fingerprint.empty()) {
      const Status encrypted = stream.EncryptAsClient(fingerprint);
      return done(encrypted ? std::string() : encrypted.error().message);
    }
    const std::optional<uid_t> stranger = ForeignOwnerOfPeer(stream.socket().native_handle());
    if (!stranger) return done({});
    stream.close();
    done(Text(endpoints[next - 1]) + " is answered by a program of user " + std::to_string(*stranger) +
         ", who is not you: it is told nothing");
  }

  Stream& stream;
  const std::vector<Tcp::endpoint> endpoints;
  const std::string fingerprint;
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

Status Stream::EncryptAsServer(const TlsIdentity& identity) {
  return link_->Encrypt(TlsSession::Server(identity, link_->socket.native_handle()));
}

Status Stream::EncryptAsClient(const std::string& fingerprint) {
  return link_->Encrypt(TlsSession::Client(fingerprint, link_->socket.native_handle()));
}

std::string Stream::Explain(ErrorCode ec) const {
  const std::string& failure = link_->tls ? link_->tls->failure() : link_->failure;
  return failure.empty() ? ec.message() : failure;
}

IoStep Stream::Link::Read(asio::mutable_buffer to) {
  if (!socket.is_open()) return {.error = WhyAborted({})};
  if (to.size() == 0) return {};
  if (tls) return tls->Read(to.data(), to.size());
  const ssize_t got = ::recv(socket.native_handle(), to.data(), to.size(), 0);
  if (got > 0) return {.size = static_cast<size_t>(got)};
  if (got == 0) return {.error = asio::error::eof};
  if (IsForLater(errno)) return {.wait = IoStep::Wait::kReadable};
  return {.error = LastError()};
}

IoStep Stream::Link::Write(std::span<const asio::const_buffer> pieces) {
  if (!socket.is_open()) return {.error = WhyAborted({})};
  if (pieces.empty()) return {};
  if (tls) return WriteEncrypted(*tls, pieces);
  iovec parts[std::tuple_size_v<Pieces>];
  for (size_t i = 0; i < pieces.size(); ++i) parts[i] = {const_cast<void*>(pieces[i].data()), pieces[i].size()};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = pieces.size();
  const ssize_t put = ::sendmsg(socket.native_handle(), &message, MSG_NOSIGNAL);
  if (put >= 0) return {.size = static_cast<size_t>(put)};
  if (IsForLater(errno)) return {.wait = IoStep::Wait::kWritable};
  return {.error = LastError()};
}

Status Stream::Link::Encrypt(Result<std::unique_ptr<TlsSession>> session) {
  if (!session) return std::unexpected(session.error());
  tls = std::move(*session);
  return {};
}

void Stream::Link::ExpireAfter(std::chrono::milliseconds timeout) {
  deadline.expires_after(timeout);
  deadline.async_wait([weak = weak_from_this()](ErrorCode ec) {
    const std::shared_ptr<Link> self = weak.lock();
    // One that had fired when it was put off has not expired.
    if (ec || !self || self->deadline.expiry() > std::chrono::steady_clock::now()) return;
    self->expired = true;
    self->Close();
  });
}

void Stream::Link::Close() {
  deadline.cancel();
  if (tls) {
    failure = tls->failure();
    tls->SayEnd();
    tls.reset();
  }
  ErrorCode ignored;
  socket.close(ignored);
}

ErrorCode Stream::Link::WhyAborted(ErrorCode ec) const {
  if (expired) return boost::beast::error::timeout;
  return ec ? ec : ErrorCode(asio::error::operation_aborted);
}

bool IsLoopback(const std::string& host) {
  ErrorCode ec;
  const auto address = asio::ip::make_address(host, ec);
  return host == "localhost" || (!ec && address.is_loopback());
}

Result<std::vector<Tcp::endpoint>> Endpoints(const std::string& host, uint16_t port, bool encrypted) {
  if (host == "localhost") {
    return std::vector<Tcp::endpoint>{{asio::ip::address_v4::loopback(), port},
                                      {asio::ip::address_v6::loopback(), port}};
  }
  ErrorCode ec;
  const auto address = asio::ip::make_address(host, ec);
  if (ec) return Fail(ErrorKind::kUsage, Quoted(host) + " is not an IP address");
  if (!address.is_loopback() && !encrypted) {
    return Fail(ErrorKind::kUsage, Quoted(host) + " is not a loopback address: connections to it need TLS");
  }
  return std::vector<Tcp::endpoint>{{address, port}};
}

void Dial(Stream& stream, std::vector<Tcp::endpoint> endpoints, std::string fingerprint,
          std::function<void(std::string error)> done) {
  std::make_shared<Dialling>(stream, std::move(endpoints), std::move(fingerprint), std::move(done))->Next();
}

Result<Acceptor> ListenOn(Executor executor, const std::string& address, uint16_t preferred_port, bool encrypted) {
  auto endpoints = Endpoints(address, preferred_port, encrypted);
  if (!endpoints) return std::unexpected(endpoints.error());
  Tcp::endpoint endpoint = endpoints->front();

  Acceptor acceptor(executor);
  ErrorCode ec = BindAndListen(acceptor, endpoint);
  if (ec && preferred_port != 0) {
    endpoint.port(0);
    ec = BindAndListen(acceptor, endpoint);
  }
  if (ec) {
    return Fail(ErrorKind::kEnvironment, "cannot listen on " + address + ": " + ec.message() +
                                             "; is it an address of this machine, and its interface up?");
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
