#include "wire/server.h"

#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <utility>

#include "core/job_spec.h"
#include "wire/http_connection.h"
#include "wire/stream.h"
#include "wire/token.h"

namespace aimaster {
namespace {

namespace asio = boost::asio;

static_assert(kNodeLostTimeoutDefault == Timing{}.node_lost_timeout);

// Accepts for as long as the server lives.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(Acceptor acceptor, std::shared_ptr<const TlsIdentity> identity, std::shared_ptr<const ServerContext> context)
      : acceptor_(std::move(acceptor)),
        pause_(acceptor_.get_executor()),
        identity_(std::move(identity)),
        context_(std::move(context)) {}

  uint16_t port() const {
    ErrorCode ignored;
    return acceptor_.local_endpoint(ignored).port();
  }

  void Wait() {
    if (!acceptor_.is_open()) return;
    acceptor_.async_wait(Acceptor::wait_read, [self = shared_from_this()](ErrorCode ec) {
      if (!ec) self->AcceptSome();
    });
  }

  void Stop() {
    ErrorCode ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    context_->table->EvictAll();
  }

 private:
  void AcceptSome() {
    for (int i = 0; i < kAcceptBatch; ++i) {
      Stream stream(acceptor_.get_executor());
      switch (AcceptOne(acceptor_, stream)) {
        case AcceptOutcome::kAccepted:
          if (identity_ == nullptr || stream.EncryptAsServer(*identity_)) ServeHttp(std::move(stream), context_);
          break;
        case AcceptOutcome::kTryAgain:
          return Wait();
        case AcceptOutcome::kExhausted:
          return Pause();
      }
    }
    Wait();
  }

  // Waiting for readiness again would come back at once and burn a core until somebody leaves.
  void Pause() {
    context_->table->EvictOldestStranger();
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([self = shared_from_this()](ErrorCode ec) {
      if (!ec) self->Wait();
    });
  }

  Acceptor acceptor_;
  SteadyTimer pause_;
  const std::shared_ptr<const TlsIdentity> identity_;
  const std::shared_ptr<const ServerContext> context_;
};

class ListeningServer final : public Server {
 public:
  explicit ListeningServer(std::shared_ptr<Listener> listener) : listener_(std::move(listener)) {}
  ~ListeningServer() override { listener_->Stop(); }
  uint16_t port() const override { return listener_->port(); }

 private:
  const std::shared_ptr<Listener> listener_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::Listen(asio::io_context& io, ServerOptions options,
                                               std::function<HttpResponse(const HttpRequest&)> on_http,
                                               std::function<void(std::shared_ptr<ServerSocket>)> on_socket) {
  if (!IsToken(options.token)) {
    return Fail(ErrorKind::kUsage, "cannot serve: the job's token is empty or holds characters that no token has");
  }
  auto acceptor = ListenOn(io.get_executor(), options.address, options.preferred_port, options.identity != nullptr);
  if (!acceptor) return std::unexpected(acceptor.error());

  auto context = std::make_shared<ServerContext>();
  context->token = std::move(options.token);
  context->limits = options.limits;
  context->on_http = std::move(on_http);
  context->on_socket = std::move(on_socket);
  context->table = std::make_shared<ConnectionTable>(options.limits.connections_max, options.limits.strangers_max);
  auto listener = std::make_shared<Listener>(std::move(*acceptor), std::move(options.identity), std::move(context));
  listener->Wait();
  return std::make_unique<ListeningServer>(std::move(listener));
}

}  // namespace aimaster
