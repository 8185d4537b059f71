#include "wire/http_connection.h"

#include <sys/socket.h>

#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <optional>
#include <utility>

#include "core/check.h"
#include "wire/limits.h"
#include "wire/server_socket.h"
#include "wire/token.h"

namespace aimaster {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::string_view kAgentPath = "/agent";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

std::string ErrorBody(std::string_view text) { return "{\"error\":\"" + std::string(text) + "\"}\n"; }

class HttpConnection final : public Guest, public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(Stream stream, std::shared_ptr<const ServerContext> context)
      : stream_(std::move(stream)), context_(std::move(context)), place_(context_->table->Admit(this)) {}

  void Start() {
    if (!place_) return;
    if (context_->token.empty()) TakeWhatIsThere();
    ReadHeader(limits().header_timeout);
  }

  void Evict() override {
    place_.reset();
    stream_.close();
  }

 private:
  const ServerLimits& limits() const { return context_->limits; }
  const http::request<http::string_body>& request() const { return parser_->get(); }

  // A program of this machine has said all before it is served. It may be the last words of a rank, whose end is the
  // next that we hear of: they are heard before it, and not some turns of the loop later.
  void TakeWhatIsThere() {
    const asio::mutable_buffer space = buffer_.prepare(kRequestHeaderMax);
    const ssize_t size = ::recv(stream_.socket().native_handle(), space.data(), space.size(), MSG_DONTWAIT);
    if (size > 0) buffer_.commit(static_cast<size_t>(size));
  }

  // What has come already is served in this turn of the loop. What is missing of it is no error.
  ErrorCode ParseBuffer() {
    ErrorCode failed;
    if (buffer_.size() > 0 && !parser_->is_done()) buffer_.consume(parser_->put(buffer_.data(), failed));
    return failed == http::error::need_more ? ErrorCode{} : failed;
  }

  void ReadHeader(std::chrono::milliseconds timeout) {
    parser_.emplace();
    parser_->header_limit(kRequestHeaderMax);
    parser_->body_limit(boost::none);  // looked at after the token
    if (const ErrorCode failed = ParseBuffer()) return RefuseMalformed(failed);
    if (parser_->is_header_done()) return CheckToken();
    stream_.expires_after(timeout);
    http::async_read_header(stream_, buffer_, *parser_, [self = shared_from_this()](ErrorCode ec, size_t) {
      if (!self->place_) return;
      if (ec) return self->RefuseMalformed(ec);
      self->CheckToken();
    });
  }

  void RefuseMalformed(ErrorCode ec) {
    static const auto& kHttpErrors = make_error_code(http::error::end_of_stream).category();
    if (ec.category() != kHttpErrors || ec == http::error::end_of_stream || ec == http::error::partial_message) return;
    if (ec == http::error::body_limit) return RefuseLarge();
    if (ec == http::error::header_limit || ec == http::error::buffer_overflow) {
      return Refuse(431, "the request's header is larger than " + std::to_string(kRequestHeaderMax) + " bytes");
    }
    Refuse(400, "not a valid HTTP request");
  }

  void RefuseLarge() {
    Refuse(413, "the request's body is larger than " + std::to_string(limits().body_max) + " bytes");
  }

  void CheckToken() {
    if (context_->token.empty()) return ReadBody();
    const auto token = request().count(http::field::authorization) == 1
                           ? BearerToken(View(request()[http::field::authorization]))
                           : std::nullopt;
    if (!token || !SameToken(*token, context_->token)) {
      return Refuse(401, "wrong or missing token: send 'Authorization: Bearer TOKEN' with the job's token");
    }
    place_->MarkTrusted();
    const bool upgrade = beast::websocket::is_upgrade(request());
    const bool agent_path = View(request().target()) == kAgentPath;
    if (upgrade && agent_path) return Upgrade();
    if (upgrade) return Refuse(404, "WebSockets are served at /agent alone");
    if (agent_path) return Refuse(426, "/agent speaks WebSocket");
    ReadBody();
  }

  void Upgrade() {
    // Frames before the answer to the handshake: nobody who speaks the protocol sends them.
    if (buffer_.size() != 0 || parser_->content_length().value_or(0) != 0 || parser_->chunked()) {
      return Refuse(400, "data before the WebSocket was open");
    }
    stream_.expires_never();
    const auto upgrade = parser_->release();
    AcceptAgentSocket(std::move(stream_), upgrade, std::move(place_), limits(), {context_, &context_->on_socket});
  }

  void ReadBody() {
    if (parser_->content_length().value_or(0) > limits().body_max) return RefuseLarge();
    parser_->body_limit(limits().body_max);
    stream_.expires_after(limits().body_timeout);
    if (request().version() >= 11 && beast::iequals(request()[http::field::expect], "100-continue")) {
      asio::async_write(stream_, asio::buffer(kContinue), [self = shared_from_this()](ErrorCode ec, size_t) {
        if (self->place_ && !ec) self->ReadRest();
      });
      return;
    }
    ReadRest();
  }

  void ReadRest() {
    if (const ErrorCode failed = ParseBuffer()) return RefuseMalformed(failed);
    if (parser_->is_done()) return Answer();
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](ErrorCode ec, size_t) {
      if (!self->place_) return;
      if (ec) return self->RefuseMalformed(ec);
      self->Answer();
    });
  }

  void Answer() {
    const bool keep_alive = request().keep_alive();
    http::request<http::string_body> received = parser_->release();
    HttpRequest request{.method = std::string(View(received.method_string())),
                        .target = std::string(View(received.target())),
                        .body = std::move(received.body())};
    HttpResponse response = context_->on_http(request);
    if (!place_) return;  // the server went during the call
    Respond(std::move(response), keep_alive, request.method == "HEAD");
  }

  void Refuse(unsigned status, std::string_view text) { Respond({status, ErrorBody(text)}, false, false); }

  void Respond(HttpResponse response, bool keep_alive, bool header_only) {
    CHECK(response.status >= 200 && response.status < 600);
    response_ = {};
    response_.version(11);
    response_.result(response.status);
    response_.set(http::field::content_type, response.content_type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("X-Content-Type-Options", "nosniff");
    if (response.status == 401) response_.set(http::field::www_authenticate, "Bearer");
    if (response.status == 426) response_.set(http::field::upgrade, "websocket");
    response_.content_length(response.body.size());
    response_.keep_alive(keep_alive);
    if (!header_only) response_.body() = std::move(response.body);
    stream_.expires_after(limits().response_timeout);
    http::async_write(stream_, response_, [self = shared_from_this(), keep_alive](ErrorCode ec, size_t) {
      if (!self->place_ || ec) return;
      if (keep_alive) return self->ReadHeader(self->limits().keep_alive_timeout);
      self->Linger();
    });
  }

  // Closing while unread bytes wait would reset the connection, and the peer might never see the answer.
  void Linger() {
    stream_.SayEnd();
    stream_.expires_after(limits().linger_timeout);
    scratch_.resize(4 * kKibibyte);
    ReadAway();
  }

  void ReadAway() {
    stream_.async_read_some(asio::buffer(scratch_), [self = shared_from_this()](ErrorCode ec, size_t size) {
      self->read_away_ += size;
      if (self->place_ && !ec && self->read_away_ < kLingerBytesMax) self->ReadAway();
    });
  }

  Stream stream_;
  const std::shared_ptr<const ServerContext> context_;
  std::unique_ptr<Place> place_;  // null: evicted, refused or handed over; nothing happens any more
  beast::flat_buffer buffer_{4 * kRequestHeaderMax};
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  std::string scratch_;
  size_t read_away_ = 0;
};

}  // namespace

void ServeHttp(Stream stream, std::shared_ptr<const ServerContext> context) {
  std::make_shared<HttpConnection>(std::move(stream), std::move(context))->Start();
}

}  // namespace aimaster
