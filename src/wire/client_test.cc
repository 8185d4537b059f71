// Both clients against the real server, in one loop where they can share it; in clear text and encrypted.
#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "wire/http_client.h"
#include "wire/message_socket.h"
#include "wire/test_peers.h"
#include "wire/websocket_client.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;
using testing::AnIdentity;
using testing::kToken;
using testing::RawPeer;
using testing::RunUntil;
using testing::Settle;
using testing::TestServer;

// Whether the connections are encrypted.
class ClientTest : public ::testing::TestWithParam<bool> {
 protected:
  static ServerOptions Serving() { return {.identity = GetParam() ? AnIdentity() : nullptr}; }
  static std::string Fingerprint() { return GetParam() ? AnIdentity()->fingerprint() : ""; }

  struct Agent {
    std::unique_ptr<WebSocketClient> client;
    bool open = false;
    std::vector<std::string> received;
    std::vector<std::string> closed;
    std::function<void()> on_open;
    std::function<void()> on_message;
    std::function<void()> on_close;
  };

  void Connect(Agent& agent, uint16_t port, std::string token = kToken, std::string host = "127.0.0.1") {
    agent.client = std::make_unique<WebSocketClient>(
        io_, WebSocketTarget{std::move(host), port, "/agent", std::move(token), Fingerprint()},
        WebSocketClient::Callbacks{[&agent] {
                                     agent.open = true;
                                     if (agent.on_open) agent.on_open();
                                   },
                                   [&agent](std::string_view message) {
                                     agent.received.emplace_back(message);
                                     if (agent.on_message) agent.on_message();
                                   },
                                   [&agent](std::string reason) {
                                     agent.closed.push_back(std::move(reason));
                                     if (agent.on_close) agent.on_close();
                                   }});
    EXPECT_FALSE(agent.open || !agent.closed.empty());  // never from inside a call
  }

  uint16_t ClosedPort() {
    TestServer gone(io_, Serving());
    return gone.port();
  }

  boost::asio::io_context io_{1};
};

TEST_P(ClientTest, TenThousandFramesComeBackInOrder) {
  TestServer server(io_, Serving());
  server.on_message = [](ServerSocket* socket, std::string_view message) { socket->Send(std::string(message)); };
  Agent agent;
  Connect(agent, server.port(), kToken, "localhost");
  for (int i = 0; i < 10'000; ++i) agent.client->Send(std::to_string(i));  // the first ones before it is open
  ASSERT_TRUE(RunUntil(io_, [&] { return agent.received.size() == 10'000; }));
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(agent.received[static_cast<size_t>(i)], std::to_string(i));
  EXPECT_EQ(agent.client->queued_bytes(), 0u);
}

TEST_P(ClientTest, TheLargestMessagesOfBothDirectionsArriveWhole) {
  TestServer server(io_, Serving());
  Agent agent;
  Connect(agent, server.port());
  agent.client->Send(std::string(kMessageToMasterMax, 'a'));
  agent.client->Send("");
  ASSERT_TRUE(RunUntil(io_, [&] { return server.received.size() == 2; }));
  EXPECT_EQ(server.received[0], std::string(kMessageToMasterMax, 'a'));
  EXPECT_EQ(server.received[1], "");
  server.sockets[0]->Send(std::string(kMessageToAgentMax, 'b'));
  ASSERT_TRUE(RunUntil(io_, [&] { return agent.received.size() == 1; }));
  EXPECT_EQ(agent.received[0], std::string(kMessageToAgentMax, 'b'));
}

TEST_P(ClientTest, WhatTheServerThinksTooLargeEndsTheConnectionAtBothEnds) {
  ServerOptions options = Serving();
  options.limits.message_max = 1000;
  TestServer server(io_, options);
  Agent agent;
  Connect(agent, server.port());
  agent.client->Send(std::string(1001, 'a'));
  ASSERT_TRUE(RunUntil(io_, [&] { return server.closed.size() == 1 && agent.closed.size() == 1; }));
  EXPECT_EQ(server.closed[0], "the peer sent a message of more than 1000 bytes");
  EXPECT_TRUE(server.received.empty());
}

TEST_P(ClientTest, AnotherTokenIsRefusedWithTheReason) {
  TestServer server(io_, Serving());
  Agent agent;
  Connect(agent, server.port(), "fedcba9876543210");
  ASSERT_TRUE(RunUntil(io_, [&] { return !agent.closed.empty(); }));
  EXPECT_EQ(agent.closed[0], "refused by 127.0.0.1:" + std::to_string(server.port()) + ": HTTP 401 Unauthorized");
  EXPECT_FALSE(agent.open);
  EXPECT_TRUE(server.sockets.empty());
}

TEST_P(ClientTest, WhereNobodyListensThereIsExactlyOneEnd) {
  const uint16_t port = ClosedPort();
  Agent agent;
  Connect(agent, port);
  agent.client->Send("nobody hears this");
  ASSERT_TRUE(RunUntil(io_, [&] { return !agent.closed.empty(); }));
  agent.client->Close();
  agent.client->Send("nor this");
  Settle(io_);
  ASSERT_EQ(agent.closed.size(), 1u);
  EXPECT_EQ(agent.closed[0], "cannot connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused");
}

TEST_P(ClientTest, ADestinationThatIsNotAllowedIsAnEndToo) {
  Agent remote, unsafe;
  Connect(remote, 80, kToken, GetParam() ? "a.name.of.a.machine" : "192.0.2.1");
  Connect(unsafe, 80, "a token\r\nwith: a header");
  ASSERT_TRUE(RunUntil(io_, [&] { return !remote.closed.empty() && !unsafe.closed.empty(); }));
  EXPECT_NE(remote.closed[0].find(GetParam() ? "not an IP address" : "TLS"), std::string::npos);
  EXPECT_EQ(unsafe.closed[0].find("header"), std::string::npos);
}

TEST_P(ClientTest, AServerThatAcceptsAndSaysNothingIsGivenUp) {
  // A listening socket of which nobody accepts: the kernel connects, and that is all that ever happens.
  const int mute = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(mute, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(mute, 1), 0);
  ASSERT_EQ(::getsockname(mute, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const uint16_t port = ntohs(address.sin_port);

  std::vector<std::string> closed;
  const MessageLimits limits{1000, 1000, 1000, 20ms, 20ms, 20ms};
  auto socket = DialMessageSocket(io_, {"127.0.0.1", port, "/agent", kToken}, limits,
                                  {nullptr, nullptr, [&](std::string reason) { closed.push_back(std::move(reason)); }});
  ASSERT_TRUE(RunUntil(io_, [&] { return !closed.empty(); }));
  EXPECT_EQ(closed[0], "no answer from 127.0.0.1:" + std::to_string(port) + " within 20 ms");

  const auto answer = HttpCall({.port = port, .token = kToken, .timeout = 20ms}, "GET", "/", "");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().message, "no answer from 127.0.0.1:" + std::to_string(port) + " within 20 ms");
  ::close(mute);
}

TEST_P(ClientTest, CloseSendsWhatWaitsAndThenEndsBothSides) {
  TestServer server(io_, Serving());
  Agent agent;
  Connect(agent, server.port());
  ASSERT_TRUE(RunUntil(io_, [&] { return agent.open; }));
  for (int i = 0; i < 1000; ++i) agent.client->Send(std::string(1000, 'a'));
  agent.client->Close();
  agent.client->Send("after the end");
  EXPECT_TRUE(agent.closed.empty());
  ASSERT_TRUE(RunUntil(io_, [&] { return agent.closed.size() == 1 && server.closed.size() == 1; }));
  EXPECT_EQ(server.received.size(), 1000u);
  EXPECT_EQ(agent.closed[0], "closed here");
  EXPECT_EQ(server.closed[0], "closed by the peer");
}

TEST_P(ClientTest, TheServersCloseSendsWhatWaitsToo) {
  TestServer server(io_, Serving());
  server.on_message = [](ServerSocket* socket, std::string_view) {
    socket->Send("refused");
    socket->Close();
  };
  Agent agent;
  Connect(agent, server.port());
  for (int i = 0; i < 100; ++i) agent.client->Send("report");
  ASSERT_TRUE(RunUntil(io_, [&] { return agent.closed.size() == 1 && server.closed.size() == 1; }));
  EXPECT_EQ(agent.received, std::vector<std::string>{"refused"});
  EXPECT_EQ(server.received.size(), 1u);  // after Close() nothing is delivered any more
}

TEST_P(ClientTest, BothMayCloseAtOnce) {
  TestServer server(io_, Serving());
  Agent agent;
  Connect(agent, server.port());
  ASSERT_TRUE(RunUntil(io_, [&] { return agent.open && server.sockets.size() == 1; }));
  agent.client->Close();
  server.sockets[0]->Close();
  ASSERT_TRUE(RunUntil(io_, [&] { return agent.closed.size() == 1 && server.closed.size() == 1; }));
}

TEST_P(ClientTest, ClosingInsideOnOpenStillSendsWhatCameBefore) {
  TestServer server(io_, Serving());
  Agent agent;
  agent.on_open = [&] { agent.client->Close(); };
  Connect(agent, server.port());
  agent.client->Send("before");
  ASSERT_TRUE(RunUntil(io_, [&] { return agent.closed.size() == 1 && server.closed.size() == 1; }));
  EXPECT_EQ(server.received, std::vector<std::string>{"before"});
}

TEST_P(ClientTest, ClosingWhileDiallingIsAnEnd) {
  TestServer server(io_, Serving());
  Agent agent;
  Connect(agent, server.port());
  agent.client->Close();
  ASSERT_TRUE(RunUntil(io_, [&] { return agent.closed.size() == 1; }));
  Settle(io_);
  EXPECT_FALSE(agent.open);
  EXPECT_EQ(agent.closed.size(), 1u);
}

TEST_P(ClientTest, MayBeDestroyedAtAnyMomentWithoutACallback) {
  TestServer server(io_, Serving());
  server.on_message = [](ServerSocket* socket, std::string_view message) { socket->Send(std::string(message)); };
  for (int turns = 0; turns < 30; ++turns) {
    Agent agent;
    Connect(agent, server.port());
    agent.client->Send("hello");
    if (io_.stopped()) io_.restart();
    for (int i = 0; i < turns; ++i) io_.poll_one();
    agent.client.reset();
    const size_t received = agent.received.size();
    Settle(io_);
    EXPECT_TRUE(agent.closed.empty());
    EXPECT_EQ(agent.received.size(), received);
  }
}

TEST_P(ClientTest, MayBeDestroyedFromInsideItsCallbacks) {
  TestServer server(io_, Serving());
  server.on_message = [](ServerSocket* socket, std::string_view message) { socket->Send(std::string(message)); };
  Agent in_open, in_message, in_close;
  in_open.on_open = [&] { in_open.client.reset(); };
  in_message.on_message = [&] { in_message.client.reset(); };
  in_close.on_close = [&] { in_close.client.reset(); };
  Connect(in_open, server.port());
  Connect(in_message, server.port());
  in_message.client->Send("x");
  in_message.client->Send("y");
  Connect(in_close, server.port(), "wrong");
  ASSERT_TRUE(RunUntil(io_, [&] { return !in_open.client && !in_message.client && !in_close.client; }));
  ASSERT_TRUE(RunUntil(io_, [&] { return server.closed.size() == 2; }));
  EXPECT_EQ(in_message.received.size(), 1u);
}

TEST_P(ClientTest, AServerThatDiesIsNoticed) {
  auto server = std::make_unique<TestServer>(io_, Serving());
  Agent agent;
  Connect(agent, server->port());
  ASSERT_TRUE(RunUntil(io_, [&] { return agent.open; }));
  server.reset();
  ASSERT_TRUE(RunUntil(io_, [&] { return agent.closed.size() == 1; }));
  EXPECT_TRUE(agent.closed[0].starts_with("connection lost: ")) << agent.closed[0];
}

TEST_P(ClientTest, AQuietConnectionIsKeptByPings) {
  ServerOptions options = Serving();
  options.limits.idle_timeout = 200ms;
  TestServer server(io_, options);
  Agent agent;
  Connect(agent, server.port());
  ASSERT_TRUE(RunUntil(io_, [&] { return agent.open; }));
  const auto end = std::chrono::steady_clock::now() + 600ms;
  ASSERT_TRUE(RunUntil(io_, [&] { return std::chrono::steady_clock::now() > end; }));
  EXPECT_TRUE(agent.closed.empty() && server.closed.empty());
}

TEST_P(ClientTest, ALoopThatEndsFirstLeavesNothingBehind) {
  auto watched = std::make_shared<int>(0);
  {
    boost::asio::io_context io{1};
    WebSocketClient client(io, {"127.0.0.1", 1, "/agent", kToken},
                           {[watched] {}, [watched](std::string_view) {}, [watched](std::string) {}});
  }
  EXPECT_EQ(watched.use_count(), 1);
}

class HttpCallTest : public ClientTest {
 protected:
  Result<std::string> Call(HttpCallOptions options, std::string method, std::string target, std::string body) {
    options.fingerprint = Fingerprint();
    auto answer = std::async(std::launch::async, [=] { return HttpCall(options, method, target, body); });
    EXPECT_TRUE(RunUntil(io_, [&] { return answer.wait_for(0s) == std::future_status::ready; }));
    return answer.get();
  }
};

TEST_P(HttpCallTest, ASuccessIsTheBody) {
  TestServer server(io_, Serving());
  EXPECT_EQ(Call({.port = server.port(), .token = kToken}, "POST", "/stop?now=1", "{}").value(), "POST /stop?now=1 {}");
  EXPECT_EQ(Call({.host = "localhost", .port = server.port(), .token = kToken}, "GET", "/x", "").value(), "GET /x ");
}

TEST_P(HttpCallTest, AFailureIsQuoted) {
  TestServer server(io_, Serving());
  const auto missing = Call({.port = server.port(), .token = kToken}, "GET", "/missing", "");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(missing.error().message,
            "GET /missing: HTTP 404 from 127.0.0.1:" + std::to_string(server.port()) + ": no such thing");
  const auto stranger = Call({.port = server.port(), .token = "wrong"}, "GET", "/x", "");
  ASSERT_FALSE(stranger.has_value());
  EXPECT_NE(stranger.error().message.find("HTTP 401"), std::string::npos);
  const auto large = Call({.port = server.port(), .token = kToken}, "POST", "/x", std::string(500'000, 'x'));
  ASSERT_FALSE(large.has_value());
  EXPECT_NE(large.error().message.find("HTTP 413"), std::string::npos) << large.error().message;
}

TEST_P(HttpCallTest, WhereNobodyAnswersTheErrorNamesThePlace) {
  const uint16_t port = ClosedPort();
  const auto nobody = Call({.port = port, .token = kToken}, "GET", "/x", "");
  ASSERT_FALSE(nobody.has_value());
  EXPECT_EQ(nobody.error().message, "cannot connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused");
  EXPECT_FALSE(Call({.host = "192.0.2.1", .port = port, .token = kToken}, "GET", "/x", "").has_value());
  EXPECT_FALSE(Call({.port = port, .token = kToken}, "GET", "/x HTTP/1.1\r\nInjected: y", "").has_value());
  EXPECT_FALSE(Call({.port = port, .token = ""}, "GET", "/x", "").has_value());
}

std::string NameOfKind(const ::testing::TestParamInfo<bool>& info) { return info.param ? "Encrypted" : "Clear"; }
INSTANTIATE_TEST_SUITE_P(OverBoth, ClientTest, ::testing::Bool(), &NameOfKind);
INSTANTIATE_TEST_SUITE_P(OverBoth, HttpCallTest, ::testing::Bool(), &NameOfKind);

}  // namespace
}  // namespace aimaster
