// HttpCall: one blocking request to a master, for the command line. A loop of its own per call: a command makes one or
// two calls in its life, and blocking is what it wants.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/error.h"

namespace aimaster {

struct HttpCallOptions {
  std::string host = "127.0.0.1";  // an IP address or "localhost"; beyond loopback only with a fingerprint
  uint16_t port = 0;
  std::string token;
  std::string fingerprint = {};  // of the master's certificate, see tls.h; empty: in clear text
  std::chrono::milliseconds timeout{5000};
};

// The response's body when its status is 2xx; otherwise an error that quotes it: kNotFound for 404, kEnvironment for
// everything else. Blocks for at most `timeout`. Throws nothing; safe on any thread.
Result<std::string> HttpCall(const HttpCallOptions& options, const std::string& method, const std::string& target,
                             const std::string& body);

}  // namespace aimaster
