#include "wire/http_client.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <exception>
#include <optional>
#include <utility>

#include "core/quote.h"
#include "wire/limits.h"
#include "wire/peer_text.h"
#include "wire/stream.h"
#include "wire/token.h"

namespace aimaster {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

bool IsRequestTarget(std::string_view target) {
  return target.starts_with('/') && std::ranges::all_of(target, [](char c) { return c > ' ' && c < 0x7f; });
}

// One exchange: dial, write, read. Each step starts the next; the first that fails ends it.
class Exchange {
 public:
  Exchange(std::string peer, http::request<http::string_body> request)
      : stream_(io_.get_executor()), peer_(std::move(peer)), request_(std::move(request)) {
    parser_.body_limit(kResponseBodyMax);
  }

  Result<std::string> Run(std::vector<Tcp::endpoint> endpoints, const std::string& fingerprint,
                          std::chrono::milliseconds timeout) {
    Dial(stream_, std::move(endpoints), fingerprint, [this](const std::string& error) {
      if (!error.empty()) return FailWith(error);
      Write();
    });
    io_.run_for(timeout);
    if (!result_) FailWith("no answer from " + peer_ + " within " + std::to_string(timeout.count()) + " ms");
    return std::move(*result_);
  }

 private:
  void Write() {
    http::async_write(stream_, request_, [this](ErrorCode ec, size_t) {
      // A server that refuses early stops reading; what it has to say about it is still to be read.
      if (ec && ec != boost::asio::error::broken_pipe && ec != boost::asio::error::connection_reset) {
        return FailWith("cannot send to " + peer_ + ": " + stream_.Explain(ec));
      }
      Read();
    });
  }

  void Read() {
    if (request_.method() == http::verb::head) parser_.skip(true);
    http::async_read(stream_, buffer_, parser_, [this](ErrorCode ec, size_t) {
      if (ec) return FailWith("no answer from " + peer_ + ": " + stream_.Explain(ec));
      auto response = parser_.release();
      if (response.result_int() / 100 == 2) {
        result_ = std::move(response.body());
        return;
      }
      const auto method = request_.method_string();
      const auto target = request_.target();
      std::string text = std::string(method.data(), method.size()) + " ";
      text.append(target.data(), target.size());
      text += ": HTTP " + std::to_string(response.result_int()) + " from " + peer_;
      if (!response.body().empty()) text += ": " + PeerText(response.body());
      result_ = Fail(response.result() == http::status::not_found ? ErrorKind::kNotFound : ErrorKind::kEnvironment,
                     std::move(text));
    });
  }

  void FailWith(std::string message) { result_ = Fail(ErrorKind::kEnvironment, std::move(message)); }

  boost::asio::io_context io_{1};
  Stream stream_;
  const std::string peer_;
  const http::request<http::string_body> request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
  std::optional<Result<std::string>> result_;
};

Result<std::string> CallOrThrow(const HttpCallOptions& options, const std::string& method, const std::string& target,
                                const std::string& body) {
  auto endpoints = Endpoints(options.host, options.port, !options.fingerprint.empty());
  if (!endpoints) return std::unexpected(endpoints.error());
  if (!IsToken(options.token)) {
    return Fail(ErrorKind::kEnvironment, "the job's token is empty or holds characters that no token has");
  }
  const http::verb verb = http::string_to_verb(method);
  if (verb == http::verb::unknown || !IsRequestTarget(target)) {
    return Fail(ErrorKind::kUsage, "not a request that can be sent: " + Quoted(method + " " + target));
  }
  const std::string peer = options.host + ":" + std::to_string(options.port);
  http::request<http::string_body> request(verb, target, 11);
  request.set(http::field::host, peer);
  request.set(http::field::authorization, "Bearer " + options.token);
  request.keep_alive(false);
  if (!body.empty()) request.set(http::field::content_type, "application/json");
  request.body() = body;
  request.prepare_payload();
  return Exchange(peer, std::move(request)).Run(std::move(*endpoints), options.fingerprint, options.timeout);
}

}  // namespace

Result<std::string> HttpCall(const HttpCallOptions& options, const std::string& method, const std::string& target,
                             const std::string& body) {
  try {
    return CallOrThrow(options, method, target, body);
  } catch (const std::exception& e) {  // Asio's loop cannot be made without descriptors, and says so by throwing
    return Fail(ErrorKind::kEnvironment,
                "cannot call " + options.host + ":" + std::to_string(options.port) + ": " + e.what());
  }
}

}  // namespace aimaster
