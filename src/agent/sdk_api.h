// SdkApi: what the ranks of a node may tell their agent, and ask it, over the socket that AIMASTER_SOCKET names:
//
//   POST /v1/retryable_errors  {"errors": ["connect timeout", …]}   texts that make a failure retryable, for the job's
//   life POST /v1/step              {"step": 120}                        how far the training is; "rank" where the
//   agent
//                                                                   can't tell who asks (another pid namespace)
//   GET  /v1/status            → {"job": …, "node": …, "connected": bool, "retryable_errors": […]}
//
// 200 with {} or what was asked for; 4xx with {"error": one line} otherwise. Only what is short and well formed is
// taken: a rank is a program of a person who makes mistakes, and its mistakes must not reach the master.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "wire/server.h"

namespace aimaster::agent {

class SdkApi {
 public:
  // The other side: the agent. On its thread.
  class Node {
   public:
    virtual ~Node() = default;
    virtual Status AddRetryableErrors(const std::vector<std::string>& texts) = 0;
    virtual Status SetStep(pid_t caller, std::optional<uint32_t> rank, uint64_t step) = 0;
    struct State {
      std::string job, node;
      bool connected = false;  // to the master
      std::vector<std::string> retryable_errors;
    };
    virtual State GetState() const = 0;
  };

  explicit SdkApi(Node& node) : node_(node) {}
  HttpResponse Answer(const HttpRequest& request, pid_t caller);

 private:
  HttpResponse AddRetryableErrors(const std::string& body);
  HttpResponse SetStep(const std::string& body, pid_t caller);
  HttpResponse DescribeState() const;

  Node& node_;
};

}  // namespace aimaster::agent
