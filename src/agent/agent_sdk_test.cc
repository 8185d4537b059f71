// What ranks say through the agent's socket, and what reaches the master of it: with a real agent, whatever dies.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "agent/agent_file.h"
#include "agent/agent_test_support.h"
#include "agent/limits.h"
#include "agent/small_file.h"

namespace aimaster::agent {
namespace {

using enum v1::Report::BodyCase;

constexpr const char* kStay = "echo up; while [ ! -e $JOB/go ]; do sleep 0.02; done";

class AgentSdkTest : public AgentTest {
 protected:
  void Run(uint32_t ranks = 1) {
    Script(kStay);
    StartBoth();
    ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
    OrderStart(0, ranks);
    ASSERT_TRUE(Await(kAttemptReady));
  }

  // As the SDK does: hands the request over. What the agent answers, where that is asked for.
  std::string Post(const std::string& target, const std::string& body, bool wants_answer = true) {
    const auto text = ReadSmallFile(job_directory + "/nodes/node-0/agent.json", kSmallFileMaxBytes);
    const std::string path = ParseAgentFile(text.value_or(""))->socket;
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << path;
    const std::string request = "POST " + target +
                                " HTTP/1.1\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
                                "\r\n\r\n" + body;
    EXPECT_EQ(::send(fd, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    std::string answer;
    char buffer[4096];
    for (ssize_t got = 1; wants_answer && got > 0;) {
      got = ::recv(fd, buffer, sizeof buffer, 0);
      if (got > 0) answer.append(buffer, static_cast<size_t>(got));
    }
    ::close(fd);
    return answer.substr(0, answer.find("\r\n"));
  }
  bool HearsInterval(int64_t interval_ms, uint32_t round = 0) {
    return master->Until([&] {
      const v1::HangSetting& setting = master->last_heartbeat.hang_setting();
      return master->last_heartbeat.has_hang_setting() && setting.interval_ms() == interval_ms &&
             setting.round() == round;
    });
  }
  std::vector<std::string> Messages() const {
    std::vector<std::string> contents;
    for (const v1::Report& report : master->reports) {
      if (report.has_custom_message()) contents.push_back(report.custom_message().content());
    }
    return contents;
  }
  std::string Who() const { return "\"instance\": \"" + kJobId + "-worker-0\", \"attempt\": 0"; }
};

constexpr const char* kTaken = "HTTP/1.1 200 OK";
constexpr const char* kRefused = "HTTP/1.1 400 Bad Request";

TEST_F(AgentSdkTest, AnIntervalReachesTheMasterAndOutlivesTheAgentButNotTheRound) {
  Run();
  EXPECT_FALSE(master->last_heartbeat.has_hang_setting());
  EXPECT_EQ(Post("/v1/hang_interval", R"({"seconds": -1, "round": 0})"), kTaken);
  ASSERT_TRUE(HearsInterval(kHangIntervalOffMs));
  const v1::Heartbeat& heartbeat = master->last_heartbeat;
  EXPECT_LE(heartbeat.hang_setting().set_at_ns(), static_cast<uint64_t>(heartbeat.monotonic_ns()));

  KillAgent(SIGKILL);
  StartAgent();
  ASSERT_TRUE(master->Until([&] { return master->hellos.size() == 2; }));
  master->last_heartbeat.Clear();  // the dead one's last may have come late
  ASSERT_TRUE(HearsInterval(kHangIntervalOffMs)) << "nobody will say it again";

  EXPECT_EQ(Post("/v1/hang_interval", R"({"seconds": 5, "round": 1})"), kRefused) << "that one is not running";
  OrderStop();
  ASSERT_TRUE(Await(kAttemptEnded));
  OrderStart(1, 1, 1);
  ASSERT_TRUE(master->Until([&] { return Has(kAttemptReady, 1); }));
  ASSERT_TRUE(master->Until([&] { return !master->last_heartbeat.has_hang_setting(); }));
  EXPECT_EQ(Post("/v1/hang_interval", R"({"seconds": 5, "round": 0})"), kRefused) << "its round is over";
  EXPECT_EQ(Post("/v1/hang_interval", R"({"seconds": 5, "round": 1})"), kTaken);
  EXPECT_TRUE(HearsInterval(5'000, 1));
}

TEST_F(AgentSdkTest, OfIntervalsThatAreSetInQuickSuccessionTheLastArrives) {
  Run();
  for (int i = 1; i <= 100; ++i) {
    const std::string body = "{\"seconds\": " + std::to_string(i) + ", \"round\": 0}";
    ASSERT_EQ(Post("/v1/hang_interval", body), kTaken);
  }
  EXPECT_TRUE(HearsInterval(100'000));
  EXPECT_EQ(Post("/v1/hang_interval", R"({"seconds": 7, "round": 0, "at_ns": 9000000000000000000})"), kTaken)
      << "a clock that can't be ours is not believed";
  EXPECT_TRUE(HearsInterval(7'000));
}

TEST_F(AgentSdkTest, AMessageIsToldUntilItIsAcknowledgedAndOnce) {
  Run();
  master->acknowledges = false;
  EXPECT_EQ(Post("/v1/message", R"({"content": "loss is NaN", "rank": 0})"), kTaken);
  ASSERT_TRUE(master->Until([&] { return !Messages().empty(); }));
  master->acknowledges = true;
  master->HangUp();
  ASSERT_TRUE(master->Until([&] { return master->hellos.size() == 2; }));
  EXPECT_EQ(Post("/v1/message", "{\"content\": \"and again\", " + Who() + "}"), kTaken);
  ASSERT_TRUE(master->Until([&] { return Messages().size() == 2; }));
  EXPECT_EQ(Messages(), (std::vector<std::string>{"loss is NaN", "and again"}));
  EXPECT_EQ(Find(kCustomMessage).custom_message().rank(), 0u);
}

TEST_F(AgentSdkTest, WhoLeavesWithoutWaitingForTheAnswerIsHeard) {
  Run();
  for (int i = 0; i < 8; ++i) {
    Post("/v1/message", "{\"content\": \"" + std::to_string(i) + "\", \"rank\": 0}", /*wants_answer=*/false);
  }
  ASSERT_TRUE(master->Until([&] { return Messages().size() == 8; })) << Messages().size();
}

TEST_F(AgentSdkTest, AStoppedAgentHearsWhatWasSaidMeanwhile) {
  Run();
  ::kill(agent, SIGSTOP);
  Post("/v1/message", R"({"content": "while you slept", "rank": 0})", /*wants_answer=*/false);
  ::kill(agent, SIGCONT);
  EXPECT_TRUE(master->Until([&] { return !Messages().empty(); }));
}

TEST_F(AgentSdkTest, ARankThatSaysTooMuchIsToldSo) {
  Run(2);
  std::string last;
  for (uint32_t i = 0; i <= kMessagesAtOnce && last.empty(); ++i) {
    const std::string answer = Post("/v1/message", R"({"content": "again", "rank": 1})");
    if (answer != kTaken) last = answer;
  }
  EXPECT_EQ(last, "HTTP/1.1 429 Too Many Requests");
  EXPECT_EQ(Post("/v1/message", R"({"content": "another", "rank": 0})"), kTaken);
}

TEST_F(AgentSdkTest, StepAndCheckpointGoAlongWithTheDeath) {
  Script(std::string(kStay) + "; exit 3");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  EXPECT_EQ(Post("/v1/step", R"({"step": 90, "loss": 0.5, "rank": 0})"), kTaken);
  EXPECT_EQ(Post("/v1/checkpoint", R"({"step": 80, "rank": 0})"), kTaken);
  EXPECT_EQ(Post("/v1/step", R"({"step": 91})"), kRefused) << "we are none of its ranks";
  ASSERT_TRUE(master->Until([&] { return master->last_heartbeat.progress().checkpoint_step() == 80; }));
  EXPECT_EQ(master->last_heartbeat.progress().step(), 90u);
  ASSERT_TRUE(WriteSmallFile(job_directory + "/go", ""));
  ASSERT_TRUE(Await(kRankExited));
  EXPECT_EQ(Exit().step(), 90u);
  EXPECT_EQ(Find(kCheckpoint).checkpoint().step(), 80u);
  ASSERT_TRUE(Await(kAttemptEnded));
}

TEST_F(AgentSdkTest, OfManyCheckpointsTheFirstAndTheLastAreToldBeforeTheDeath) {
  Script(std::string(kStay) + "; exit 3");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptReady));
  for (int step = 1; step <= 20; ++step) {
    ASSERT_EQ(Post("/v1/checkpoint", "{\"rank\": 0, \"step\": " + std::to_string(step) + "}"), kTaken);
  }
  ASSERT_TRUE(WriteSmallFile(job_directory + "/go", ""));
  ASSERT_TRUE(Await(kRankExited));
  std::vector<uint64_t> steps;
  for (const v1::Report& report : master->reports) {
    if (report.has_checkpoint()) steps.push_back(report.checkpoint().step());
  }
  EXPECT_EQ(steps, (std::vector<uint64_t>{1, 20}));
  ASSERT_TRUE(Await(kAttemptEnded));
}

TEST_F(AgentSdkTest, ARankThatPrintsNothingIsReadyWhenItSpeaks) {
  Script("while [ ! -e $JOB/go ]; do sleep 0.02; done");
  StartBoth();
  ASSERT_TRUE(master->Until([&] { return !master->hellos.empty(); }));
  OrderStart();
  ASSERT_TRUE(Await(kAttemptStarted));
  EXPECT_FALSE(Has(kAttemptReady));
  ASSERT_TRUE(master->Until([&] { return Post("/v1/step", R"({"step": 1, "rank": 0})") == kTaken; }));
  EXPECT_TRUE(Await(kAttemptReady));
}

}  // namespace
}  // namespace aimaster::agent
