// SdkApi: what the ranks of a node may tell their agent, and ask it, over the socket that AIMASTER_SOCKET names:
//
//   POST /v1/message           {"content": "loss is NaN"}             for people: an event of the job, at once
//   POST /v1/retryable_errors  {"errors": ["connect timeout", …]}     texts that make a failure retryable, for the
//                                                                     job's life
//   POST /v1/step              {"step": 120, "loss": 0.5}             how far the training is; loss may be left out, or
//                                                                     "nan", "inf", "-inf"
//   POST /v1/checkpoint        {"step": 120}                          it has saved what it had learnt by then
//   POST /v1/hang_interval     {"seconds": 180}                       how long all may be silent; -1: no detection for
//                                                                     now; null: the job's own again
//   GET  /v1/hang_interval     → {"seconds": 180.0, "round": 2}       what a rank of this node has set last
//   GET  /v1/status            → {"job": …, "node": …, "connected": bool, "retryable_errors": […]}
//
// Whoever posts may add who it is, for where the agent can't find out: "rank"; or "instance", "attempt" and "round", as
// AIMASTER_INSTANCE and so on say, with "at_ns", when it was said by the monotonic clock of this machine.
//
// 200 with {} or what was asked for; 4xx with {"error": one line} otherwise, 429 where the same may be taken later.
// Only what is short and well formed is taken: a rank is a program of a person who makes mistakes, and its mistakes
// must not reach the master.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/tidings.h"
#include "core/error.h"
#include "wire/server.h"

namespace aimaster::agent {

// Who speaks: by the kernel's word, and by its own.
struct SdkCaller {
  pid_t pid = 0;
  std::optional<uint32_t> rank;
  std::string instance;
  std::optional<uint32_t> attempt;
  std::optional<uint32_t> round;
  std::optional<uint64_t> at_ns;
};

class SdkApi {
 public:
  // The other side: the agent. On its thread. What fails for a reason that may pass is ErrorKind::kEnvironment.
  class Node {
   public:
    virtual ~Node() = default;
    virtual Status AddRetryableErrors(const std::vector<std::string>& texts) = 0;
    virtual Status SetStep(const SdkCaller& caller, uint64_t step, std::optional<double> loss) = 0;
    virtual Status SetCheckpoint(const SdkCaller& caller, uint64_t step) = 0;
    virtual Status SendMessage(const SdkCaller& caller, const std::string& content) = 0;
    virtual Status SetHangInterval(const SdkCaller& caller, int64_t interval_ms) = 0;  // as HangSetting
    struct State {
      std::string job, node;
      bool connected = false;  // to the master
      std::vector<std::string> retryable_errors;
      std::optional<HangSetting> hang;
    };
    virtual State GetState() const = 0;
  };

  explicit SdkApi(Node& node) : node_(node) {}
  HttpResponse Answer(const HttpRequest& request, pid_t caller);

 private:
  HttpResponse AddRetryableErrors(const std::string& body);
  HttpResponse SetStep(const std::string& body, pid_t pid);
  HttpResponse SetCheckpoint(const std::string& body, pid_t pid);
  HttpResponse SendMessage(const std::string& body, pid_t pid);
  HttpResponse SetHangInterval(const std::string& body, pid_t pid);
  HttpResponse DescribeHangInterval() const;
  HttpResponse DescribeState() const;

  Node& node_;
};

}  // namespace aimaster::agent
