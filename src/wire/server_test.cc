#include "wire/server.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <set>

#include "wire/test_peers.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;
using testing::Frame;
using testing::kToken;
using testing::RawPeer;
using testing::Request;
using testing::RunUntil;
using testing::Settle;
using testing::TestServer;
using testing::UpgradeRequestText;

class ServerTest : public ::testing::Test {
 protected:
  // Says something and waits until the server has hung up.
  std::string LastWords(TestServer& server, std::string_view bytes) {
    RawPeer peer(server.port());
    peer.Send(bytes);
    EXPECT_TRUE(RunUntil(io_, [&] { return peer.ended(); })) << bytes.substr(0, 200);
    return peer.Received();
  }

  void ExpectHealthy(TestServer& server) {
    const int before = server.requests;
    RawPeer peer(server.port());
    peer.Send(Request("GET /health", kToken));
    EXPECT_TRUE(RunUntil(io_, [&] { return peer.Received().ends_with("GET /health "); }));
    EXPECT_EQ(server.requests, before + 1);
  }

  boost::asio::io_context io_{1};
};

TEST_F(ServerTest, WhoHasNoTokenGets401AndNothingElse) {
  TestServer server(io_);
  for (const std::string& request :
       {Request("GET /x", ""), Request("GET /x", "wrong"), Request("GET /x", "0123456789abcdee"),
        Request("GET /x", "0123456789abcdef0123456789abcdef"), Request("POST /x", "wrong", "", "a body"),
        Request("GET /x", "", "Authorization: Basic 0123456789abcdef\r\n"),
        Request("GET /x", kToken, "Authorization: Bearer wrong\r\n"),
        Request("POST /x", "", "Content-Length: 99999999999\r\n"), UpgradeRequestText(""),
        UpgradeRequestText("wrong")}) {
    const std::string answer = LastWords(server, request);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 401 ")) << request << answer;
    EXPECT_NE(answer.find("WWW-Authenticate: Bearer"), std::string::npos);
    EXPECT_EQ(answer.find(kToken), std::string::npos);
  }
  EXPECT_EQ(server.requests, 0);
  EXPECT_TRUE(server.sockets.empty());
  ExpectHealthy(server);
}

TEST_F(ServerTest, AConnectionServesOneRequestAfterTheOther) {
  TestServer server(io_);
  RawPeer peer(server.port());
  peer.Send(Request("POST /a", kToken, "", "one"));
  ASSERT_TRUE(RunUntil(io_, [&] { return peer.Received().ends_with("POST /a one"); }));
  peer.Send(Request("GET /b?x=1", kToken) + Request("DELETE /c", kToken));  // both at once
  ASSERT_TRUE(RunUntil(io_, [&] { return peer.Received().ends_with("DELETE /c "); }));
  EXPECT_NE(peer.Received().find("GET /b?x=1 "), std::string::npos);
  EXPECT_FALSE(peer.ended());
  peer.Send(Request("GET /d", kToken, "Connection: close\r\n"));
  ASSERT_TRUE(RunUntil(io_, [&] { return peer.ended(); }));
  EXPECT_TRUE(peer.Received().ends_with("GET /d "));
}

TEST_F(ServerTest, ARequestMayComeByteByByte) {
  TestServer server(io_);
  RawPeer peer(server.port());
  for (const char byte : Request("POST /slow", kToken, "", "body")) {
    peer.Send({&byte, 1});
    if (io_.stopped()) io_.restart();
    io_.poll();
  }
  EXPECT_TRUE(RunUntil(io_, [&] { return peer.Received().ends_with("POST /slow body"); }));
}

TEST_F(ServerTest, ChunkedBodiesExpectationsAndHeadAreUnderstood) {
  TestServer server(io_);
  RawPeer chunked(server.port());
  chunked.Send(Request("POST /a", kToken, "Transfer-Encoding: chunked\r\n") + "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n");
  EXPECT_TRUE(RunUntil(io_, [&] { return chunked.Received().ends_with("POST /a onetwo"); }));

  RawPeer expecting(server.port());
  expecting.Send(Request("POST /b", kToken, "Expect: 100-continue\r\nContent-Length: 3\r\n"));
  EXPECT_TRUE(RunUntil(io_, [&] { return expecting.Received() == "HTTP/1.1 100 Continue\r\n\r\n"; }));
  expecting.Send("abc");
  EXPECT_TRUE(RunUntil(io_, [&] { return expecting.Received().ends_with("POST /b abc"); }));

  const std::string head = LastWords(server, Request("HEAD /c", kToken, "Connection: close\r\n"));
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_NE(head.find("Content-Length: 8"), std::string::npos);
}

TEST_F(ServerTest, WhatIsTooLargeIsRefusedBeforeItIsRead) {
  TestServer server(io_);
  EXPECT_TRUE(LastWords(server, Request("POST /x", kToken, "Content-Length: 65537\r\n")).starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(
      LastWords(server, Request("POST /x", kToken, "", std::string(100'000, 'x'))).starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(LastWords(server, Request("POST /x", kToken, "Transfer-Encoding: chunked\r\n") + "fffffff\r\n")
                  .starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(LastWords(server, Request("GET /" + std::string(20'000, 'x'), kToken)).starts_with("HTTP/1.1 431 "));
  EXPECT_EQ(server.requests, 0);

  RawPeer peer(server.port());
  const std::string largest(kRequestBodyMax, 'x');
  peer.Send(Request("POST /x", kToken, "", largest));
  EXPECT_TRUE(RunUntil(io_, [&] { return peer.Received().ends_with(largest); }));
}

TEST_F(ServerTest, GarbageEndsItsOwnConnectionOnly) {
  TestServer server(io_);
  RawPeer bystander(server.port());
  bystander.Send(UpgradeRequestText(kToken));
  ASSERT_TRUE(RunUntil(io_, [&] { return server.sockets.size() == 1; }));
  for (const std::string& garbage :
       {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), std::string(300, '\0'),
        std::string("\r\n\r\n"), std::string("GET /x\r\n\r\n"), std::string("GET /x HTTP/9.9\r\n\r\n"),
        Request("POST /x", kToken, "Content-Length: -1\r\n"), Request("POST /x", kToken, "Content-Length: 1, 2\r\n"),
        Request("POST /x", kToken, "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n") + "abc",
        Request("POST /x", kToken, "Transfer-Encoding: chunked\r\n") + "zz\r\n"}) {
    const std::string answer = LastWords(server, garbage);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << garbage << answer;
  }
  EXPECT_EQ(server.requests, 0);
  bystander.Send(Frame(2, "still here"));
  EXPECT_TRUE(RunUntil(io_, [&] { return server.received.size() == 1; }));
  ExpectHealthy(server);
}

TEST_F(ServerTest, HalfARequestAndAHangUpIsNoRequest) {
  TestServer server(io_);
  const std::string whole = Request("POST /x", kToken, "", "body");
  for (size_t length = 0; length < whole.size(); length += 7) {
    RawPeer peer(server.port());
    peer.Send(std::string_view(whole).substr(0, length));
    peer.Close();
    Settle(io_);
  }
  EXPECT_EQ(server.requests, 0);
  ExpectHealthy(server);
}

TEST_F(ServerTest, WhoSendsTooSlowlyLosesTheConnection) {
  ServerOptions options;
  options.limits.header_timeout = 20ms;
  options.limits.body_timeout = 20ms;
  options.limits.keep_alive_timeout = 20ms;
  TestServer server(io_, options);
  EXPECT_EQ(LastWords(server, ""), "");
  EXPECT_EQ(LastWords(server, "GET / HT"), "");
  EXPECT_EQ(LastWords(server, Request("POST /x", kToken, "Content-Length: 10\r\n") + "half"), "");
  EXPECT_TRUE(LastWords(server, Request("GET /then-silent", kToken)).ends_with("GET /then-silent "));
  EXPECT_EQ(server.requests, 1);
}

TEST_F(ServerTest, WhoReadsTooSlowlyLosesTheConnection) {
  ServerOptions options;
  options.limits.response_timeout = 20ms;
  TestServer server(io_, options);
  RawPeer peer(server.port());
  const int small = 4096;
  ::setsockopt(peer.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  const std::string large = Request("POST /x", kToken, "", std::string(kRequestBodyMax, 'x'));
  for (int i = 0; i < 200; ++i) {
    if (::send(peer.fd(), large.data(), large.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) break;
    Settle(io_);
  }
  EXPECT_LT(server.requests, 200);
  ExpectHealthy(server);
}

TEST_F(ServerTest, OnlyAgentsSpeakWebSocketAndOnlyAtTheirPath) {
  TestServer server(io_);
  EXPECT_TRUE(LastWords(server, Request("GET /agent", kToken)).starts_with("HTTP/1.1 426 "));
  std::string elsewhere = UpgradeRequestText(kToken);
  elsewhere.replace(elsewhere.find("/agent"), 6, "/other");
  EXPECT_TRUE(LastWords(server, elsewhere).starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(LastWords(server, UpgradeRequestText(kToken) + Frame(2, "too early")).starts_with("HTTP/1.1 400 "));
  std::string no_key = UpgradeRequestText(kToken);
  no_key.replace(no_key.find("Sec-WebSocket-Key"), 17, "Sec-WebSocket-Kex");
  EXPECT_FALSE(LastWords(server, no_key).starts_with("HTTP/1.1 101 "));
  EXPECT_TRUE(server.sockets.empty());
}

TEST_F(ServerTest, AnAgentThatVanishesIsReportedOnce) {
  TestServer server(io_);
  RawPeer reset(server.port()), closed(server.port());
  reset.Send(UpgradeRequestText(kToken));
  closed.Send(UpgradeRequestText(kToken));
  ASSERT_TRUE(RunUntil(io_, [&] { return server.sockets.size() == 2; }));
  reset.Reset();
  closed.Close();
  ASSERT_TRUE(RunUntil(io_, [&] { return server.closed.size() == 2; }));
  server.sockets[0]->Send("into the void");
  server.sockets[0]->Close();
  Settle(io_);
  EXPECT_EQ(server.closed.size(), 2u);
  EXPECT_EQ(server.sockets[0]->queued_bytes(), 0u);
}

TEST_F(ServerTest, AFrameThatIsTooLargeOrTextOrUnmaskedEndsTheConnection) {
  TestServer server(io_);
  const std::string four_gigabytes("\x82\xff\0\0\0\1\0\0\0\0\0\0\0\0", 14);
  const std::string largest_number("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14);
  const std::string unmasked("\x82\x01x", 3);
  size_t count = 0;
  for (const std::string& frame : {four_gigabytes, largest_number, unmasked, Frame(1, "text"), Frame(5, "reserved")}) {
    RawPeer peer(server.port());
    peer.Send(UpgradeRequestText(kToken));
    ASSERT_TRUE(RunUntil(io_, [&] { return server.sockets.size() == count + 1; }));
    peer.Send(frame);
    ASSERT_TRUE(RunUntil(io_, [&] { return peer.Received().find("\x88") != std::string::npos; }));  // a goodbye
    peer.Close();
    ASSERT_TRUE(RunUntil(io_, [&] { return server.closed.size() == count + 1; }));
    ++count;
  }
  EXPECT_EQ(server.closed[0], "the peer sent a message of more than 1048576 bytes");
  EXPECT_EQ(server.closed[3], "the peer sent text where only binary messages are spoken");
  EXPECT_TRUE(server.received.empty());
}

TEST_F(ServerTest, APeerThatNeverReadsIsGivenUpWhenTooMuchWaits) {
  ServerOptions options;
  options.limits.queue_max = 1'000'000;
  TestServer server(io_, options);
  RawPeer peer(server.port());
  peer.Send(UpgradeRequestText(kToken));
  ASSERT_TRUE(RunUntil(io_, [&] { return server.sockets.size() == 1; }));
  size_t most = 0;
  for (int i = 0; i < 10'000 && server.closed.empty(); ++i) {
    server.sockets[0]->Send(std::string(100'000, 'x'));
    most = std::max(most, server.sockets[0]->queued_bytes());
    if (io_.stopped()) io_.restart();
    io_.poll();
  }
  ASSERT_EQ(server.closed.size(), 1u);
  EXPECT_TRUE(server.closed[0].starts_with("the peer takes too little: ")) << server.closed[0];
  EXPECT_LE(most, 1'000'000u);
  ExpectHealthy(server);
}

TEST_F(ServerTest, APeerWithoutASignOfLifeIsGivenUp) {
  ServerOptions options;
  options.limits.idle_timeout = 40ms;
  TestServer server(io_, options);
  RawPeer peer(server.port());
  peer.Send(UpgradeRequestText(kToken));
  ASSERT_TRUE(RunUntil(io_, [&] { return server.closed.size() == 1; }));
  EXPECT_EQ(server.closed[0], "no sign of the peer for 40 ms");
}

TEST_F(ServerTest, AGoodbyeThatIsNotAnsweredEndsAnyway) {
  ServerOptions options;
  options.limits.close_timeout = 20ms;
  TestServer server(io_, options);
  RawPeer peer(server.port());
  peer.Send(UpgradeRequestText(kToken));
  ASSERT_TRUE(RunUntil(io_, [&] { return server.sockets.size() == 1; }));
  server.sockets[0]->Send("last word");
  server.sockets[0]->Close();
  EXPECT_TRUE(server.closed.empty());  // never from inside the call
  ASSERT_TRUE(RunUntil(io_, [&] { return server.closed.size() == 1; }));
  EXPECT_EQ(server.closed[0], "closed here; the peer did not answer the goodbye within 20 ms");
  EXPECT_NE(peer.Received().find("last word"), std::string::npos);
}

TEST_F(ServerTest, AThousandIdleConnectionsHarmNobody) {
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &descriptors);

  ServerOptions options;
  options.limits.strangers_max = 100;
  TestServer server(io_, options);
  RawPeer agent(server.port());
  agent.Send(UpgradeRequestText(kToken));
  ASSERT_TRUE(RunUntil(io_, [&] { return server.sockets.size() == 1; }));

  std::deque<RawPeer> idle;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(idle.emplace_back(server.port()).connected());
    if (io_.stopped()) io_.restart();
    io_.poll();
  }
  ASSERT_TRUE(RunUntil(io_, [&] { return std::ranges::count_if(idle, [](auto& p) { return !p.ended(); }) == 100; }));
  ExpectHealthy(server);
  agent.Send(Frame(2, "report"));
  EXPECT_TRUE(RunUntil(io_, [&] { return server.received.size() == 1; }));
}

TEST_F(ServerTest, AThousandAgentsAtOnceAllGetIn) {
  TestServer server(io_);
  std::deque<RawPeer> agents;
  for (int i = 0; i < 1000; ++i) agents.emplace_back(server.port()).Send(UpgradeRequestText(kToken));
  EXPECT_TRUE(RunUntil(io_, [&] { return server.sockets.size() == 1000; }));
  ExpectHealthy(server);
}

TEST_F(ServerTest, WithoutDescriptorsItWaitsAndGoesOn) {
  TestServer server(io_);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  RawPeer peer(server.port());
  const int lowest_free = ::dup(0);
  ::close(lowest_free);
  rlimit none_left = before;
  none_left.rlim_cur = static_cast<rlim_t>(lowest_free);
  ::setrlimit(RLIMIT_NOFILE, &none_left);
  peer.Send(Request("GET /late", kToken));
  Settle(io_);
  EXPECT_EQ(server.requests, 0);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(RunUntil(io_, [&] { return peer.Received().ends_with("GET /late "); }));
}

TEST_F(ServerTest, NoSocketReachesAChildProcess) {
  std::set<int> before;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    before.insert(std::atoi(entry.path().filename().c_str()));
  }
  boost::asio::io_context io{1};
  TestServer server(io);
  RawPeer peer(server.port());
  peer.Send(UpgradeRequestText(kToken));
  ASSERT_TRUE(RunUntil(io, [&] { return server.sockets.size() == 1; }));
  int looked_at = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::atoi(entry.path().filename().c_str());
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags < 0 || before.contains(fd)) continue;
    ++looked_at;
    EXPECT_TRUE(flags & FD_CLOEXEC) << std::filesystem::read_symlink(entry.path());
  }
  EXPECT_GE(looked_at, 5);  // the loop's own, listening, accepted, the peer
}

TEST_F(ServerTest, MayBeDestroyedFromInsideAnyCallback) {
  {
    TestServer server(io_);
    server.on_request = [&] { server.server.reset(); };
    LastWords(server, Request("GET /x", kToken));
  }
  {
    TestServer server(io_);
    server.on_message = [&](ServerSocket*, std::string_view) { server.server.reset(); };
    RawPeer peer(server.port());
    peer.Send(UpgradeRequestText(kToken));
    ASSERT_TRUE(RunUntil(io_, [&] { return server.sockets.size() == 1; }));
    peer.Send(Frame(2, "x") + Frame(2, "y"));
    EXPECT_TRUE(RunUntil(io_, [&] { return peer.ended(); }));
    Settle(io_);
    EXPECT_EQ(server.received.size(), 1u);
    EXPECT_TRUE(server.closed.empty());
  }
  {
    TestServer server(io_);
    server.on_close = [&] { server.server.reset(); };
    RawPeer peer(server.port()), other(server.port());
    peer.Send(UpgradeRequestText(kToken));
    other.Send(UpgradeRequestText(kToken));
    ASSERT_TRUE(RunUntil(io_, [&] { return server.sockets.size() == 2; }));
    peer.Close();
    EXPECT_TRUE(RunUntil(io_, [&] { return other.ended(); }));
    EXPECT_EQ(server.closed.size(), 1u);
  }
}

TEST_F(ServerTest, ACircleOfTheOwnersMakingIsBrokenAtTheEnd) {
  auto watched = std::make_shared<int>(0);
  {
    auto server = Server::Listen(
        io_, {.token = kToken}, [](const HttpRequest&) { return HttpResponse{}; },
        [watched](std::shared_ptr<ServerSocket> socket) {
          ++*watched;
          socket->on_message = [socket, watched](std::string_view) {};
          socket->on_close = [socket, watched](const std::string&) {};
        });
    ASSERT_TRUE(server.has_value());
    RawPeer stays((*server)->port()), leaves((*server)->port());
    stays.Send(UpgradeRequestText(kToken));
    leaves.Send(UpgradeRequestText(kToken));
    ASSERT_TRUE(RunUntil(io_, [&] { return *watched == 2; }));
    leaves.Close();
    Settle(io_);
  }
  Settle(io_);
  EXPECT_EQ(watched.use_count(), 1);
}

TEST_F(ServerTest, ThePreferredPortIsTakenWhenItIsFree) {
  uint16_t port = 0;
  {
    TestServer first(io_);
    port = first.port();
    ServerOptions options;
    options.preferred_port = port;
    TestServer second(io_, options);
    EXPECT_NE(second.port(), port);
    EXPECT_NE(second.port(), 0);
  }
  ServerOptions options;
  options.preferred_port = port;
  TestServer again(io_, options);
  EXPECT_EQ(again.port(), port);
}

TEST_F(ServerTest, WhatWouldNotBeSafeIsNotServed) {
  auto listen = [&](ServerOptions options) {
    return Server::Listen(
        io_, std::move(options), [](const HttpRequest&) { return HttpResponse{}; },
        [](std::shared_ptr<ServerSocket>) {});
  };
  EXPECT_FALSE(listen({.token = ""}).has_value());
  EXPECT_FALSE(listen({.token = "line\nbreak"}).has_value());
  const auto everywhere = listen({.address = "0.0.0.0", .token = kToken});
  ASSERT_FALSE(everywhere.has_value());
  EXPECT_NE(everywhere.error().message.find("TLS"), std::string::npos);
  EXPECT_FALSE(listen({.address = "no address", .token = kToken}).has_value());
}

}  // namespace
}  // namespace aimaster
