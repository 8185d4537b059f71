// ControlApi: what people and the command line may ask a running master, over HTTP with the job's token.
//
//   GET  /api/v1/status                                → {"job":"dlc… Running","trouble":""}   why decisions wait
//   POST /api/v1/stop    {"at_once":bool,"by":string}  → {}
//   POST /api/v1/signal  {"signal":"SIGUSR1"}          → {}    SIGUSR1 and SIGUSR2 only
//   POST /api/v1/stacks  {"by":string}                 → {}    the capture appears in the job's directory;
//                                                              409: it can't
//
// Everything else that can be known of a job is read from its journal, also while no master runs.
#pragma once

#include <string>

#include "wire/server.h"

namespace aimaster {

class ControlApi {
 public:
  // The other side: the master. On its thread.
  class Job {
   public:
    virtual ~Job() = default;
    virtual std::string DescribeJob() const = 0;
    virtual std::string Trouble() const = 0;  // what keeps the master from deciding; empty: nothing
    virtual void Stop(bool at_once, const std::string& by) = 0;
    virtual void Signal(int signal) = 0;
    virtual std::string RequestStacks(const std::string& by) = 0;  // why not; empty: they are being taken
  };

  explicit ControlApi(Job& job) : job_(job) {}
  HttpResponse Answer(const HttpRequest& request);

 private:
  Job& job_;
};

}  // namespace aimaster
