// What may be asked of a running master, and what is refused.
#include "master/control_api.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace aimaster {
namespace {

struct FakeJob : ControlApi::Job {
  std::string DescribeJob() const override { return "a job"; }
  std::string Trouble() const override { return ""; }
  void Stop(bool now, const std::string& who) override {
    at_once = now;
    by = who;
  }
  void Signal(int number) override { signal = number; }
  bool at_once = false;
  std::string by;
  int signal = 0;
};

unsigned Post(FakeJob& job, const std::string& target, const std::string& body) {
  return ControlApi(job).Answer({"POST", target, body}).status;
}

TEST(ControlApiTest, StopAndSignal) {
  FakeJob job;
  EXPECT_EQ(Post(job, "/api/v1/stop", R"({"at_once":true,"by":"Ctrl-C"})"), 200u);
  EXPECT_TRUE(job.at_once);
  EXPECT_EQ(job.by, "Ctrl-C");
  EXPECT_EQ(Post(job, "/api/v1/signal", R"({"signal":"SIGUSR2"})"), 200u);
  EXPECT_EQ(job.signal, SIGUSR2);
}

TEST(ControlApiTest, NonsenseIsRefusedAndChangesNothing) {
  FakeJob job;
  EXPECT_EQ(Post(job, "/api/v1/stop", "not json"), 400u);
  EXPECT_EQ(Post(job, "/api/v1/stop", R"({"at_once":"yes"})"), 400u);
  EXPECT_EQ(Post(job, "/api/v1/signal", R"({"signal":"SIGKILL"})"), 400u);
  EXPECT_EQ(Post(job, "/api/v1/explode", "{}"), 404u);
  EXPECT_EQ(ControlApi(job).Answer({"GET", "/", ""}).status, 404u);
  EXPECT_EQ(job.by, "");
  EXPECT_EQ(job.signal, 0);
}

}  // namespace
}  // namespace aimaster
