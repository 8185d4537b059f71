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
  std::string RequestStacks(const std::string& who) override {
    by = who;
    return why_not;
  }
  bool at_once = false;
  std::string by;
  int signal = 0;
  std::string why_not;
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

TEST(ControlApiTest, StacksAreOrderedOrTheReasonIsTold) {
  FakeJob job;
  EXPECT_EQ(Post(job, "/api/v1/stacks", R"({"by":"aimaster stacks"})"), 200u);
  EXPECT_EQ(job.by, "aimaster stacks");
  EXPECT_EQ(Post(job, "/api/v1/stacks", R"({"by":7})"), 400u);
  job.why_not = "the job has ended";
  const HttpResponse refused = ControlApi(job).Answer({"POST", "/api/v1/stacks", "{}"});
  EXPECT_EQ(refused.status, 409u);
  EXPECT_NE(refused.body.find("the job has ended"), std::string::npos);
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
