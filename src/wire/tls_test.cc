#include "wire/tls.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

#include "wire/test_peers.h"
#include "wire/websocket_client.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;
using testing::AnIdentity;
using testing::kToken;
using testing::RawPeer;
using testing::Request;
using testing::RunUntil;
using testing::Settle;
using testing::TestServer;

// The 96 bytes after which a client of TLS 1.3 might stop: a record that says it is longer than what comes.
constexpr std::string_view kHalfHello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);

class TlsTest : public ::testing::Test {
 protected:
  // The reason why a connection to the server came to nothing.
  std::string WhyNot(uint16_t port, const std::string& fingerprint, bool* opened = nullptr) {
    std::string why;
    bool open = false;
    const WebSocketClient client(
        io_, {"127.0.0.1", port, "/agent", kToken, fingerprint},
        {[&] { open = true; }, [](std::string_view) {}, [&](std::string reason) { why = std::move(reason); }});
    EXPECT_TRUE(RunUntil(io_, [&] { return open || !why.empty(); }));
    if (opened != nullptr) *opened = open;
    return why;
  }

  boost::asio::io_context io_{1};
};

TEST_F(TlsTest, ASelfSignedPairIsOneTextAndNeverTheSame) {
  const std::string first = MakeSelfSignedPem().value(), second = MakeSelfSignedPem().value();
  const auto one = TlsIdentity::FromPem(first, first), same = TlsIdentity::FromPem(first, first),
             other = TlsIdentity::FromPem(second, second);
  ASSERT_TRUE(one && same && other);
  EXPECT_TRUE(IsFingerprint((*one)->fingerprint())) << (*one)->fingerprint();
  EXPECT_EQ((*one)->fingerprint(), (*same)->fingerprint());
  EXPECT_NE((*one)->fingerprint(), (*other)->fingerprint());
}

TEST_F(TlsTest, WhatIsNoPairIsRefusedWithoutQuotingTheKey) {
  const std::string pem = MakeSelfSignedPem().value(), other = MakeSelfSignedPem().value();
  const std::string key = pem.substr(0, pem.find("-----BEGIN CERT"));
  const std::string certificate = pem.substr(key.size());
  const auto error = [](std::string_view certificates, std::string_view keys) {
    const auto identity = TlsIdentity::FromPem(certificates, keys);
    return identity ? "taken" : identity.error().message;
  };
  EXPECT_EQ(error(certificate, key), "taken");
  EXPECT_NE(error("", key).find("not a certificate"), std::string::npos);
  EXPECT_NE(error(key, key).find("not a certificate"), std::string::npos);
  EXPECT_NE(error(certificate, "").find("not a private key"), std::string::npos);
  EXPECT_NE(error(certificate, certificate).find("not a private key"), std::string::npos);
  EXPECT_NE(error(certificate, other).find("does not belong"), std::string::npos) << error(certificate, other);
  const std::string damaged = key.substr(0, key.size() / 2);
  EXPECT_NE(error(certificate, damaged).find("not a private key"), std::string::npos);
  EXPECT_EQ(error(certificate, damaged).find(key.substr(40, 20)), std::string::npos);
}

TEST_F(TlsTest, AFingerprintIs64LowercaseDigits) {
  EXPECT_TRUE(IsFingerprint(std::string(64, 'a')));
  EXPECT_FALSE(IsFingerprint(""));
  EXPECT_FALSE(IsFingerprint(std::string(63, 'a')));
  EXPECT_FALSE(IsFingerprint(std::string(64, 'A')));
}

TEST_F(TlsTest, WhoeverShowsAnotherCertificateNeverSeesTheToken) {
  const std::string pem = MakeSelfSignedPem().value();
  TestServer impostor(io_, {.identity = TlsIdentity::FromPem(pem, pem).value()});
  const std::string expected = AnIdentity()->fingerprint();
  const std::string why = WhyNot(impostor.port(), expected);
  EXPECT_NE(why.find(TlsIdentity::FromPem(pem, pem).value()->fingerprint()), std::string::npos) << why;
  EXPECT_NE(why.find(expected), std::string::npos) << why;
  EXPECT_EQ(impostor.requests, 0);
  EXPECT_TRUE(impostor.sockets.empty());
}

TEST_F(TlsTest, AFingerprintThatIsNoneIsAnErrorAndNotClearText) {
  TestServer server(io_, {.identity = AnIdentity()});
  EXPECT_NE(WhyNot(server.port(), "x").find("fingerprint"), std::string::npos);
}

TEST_F(TlsTest, ClearTextAndEncryptionDoNotMix) {
  TestServer clear(io_), encrypted(io_, {.identity = AnIdentity()});
  EXPECT_NE(WhyNot(clear.port(), AnIdentity()->fingerprint()), "");
  EXPECT_NE(WhyNot(encrypted.port(), ""), "");
  bool opened = false;
  WhyNot(encrypted.port(), AnIdentity()->fingerprint(), &opened);
  EXPECT_TRUE(opened);
  EXPECT_EQ(clear.requests + encrypted.requests, 0);
}

TEST_F(TlsTest, AHandshakeThatIsSlowOrGarbageEndsItsOwnConnectionOnly) {
  TestServer server(io_, {.identity = AnIdentity(), .limits = {.header_timeout = 100ms}});
  const std::string four_gibibytes("\x16\x03\x01\xff\xff\x01\xff\xff\xff", 9);
  for (const std::string& bytes : {std::string(), std::string(kHalfHello), std::string("\x16"), four_gibibytes,
                                   std::string(20'000, '\0'), Request("GET /x", kToken)}) {
    RawPeer peer(server.port());
    peer.Send(bytes);
    EXPECT_TRUE(RunUntil(io_, [&] { return peer.ended(); })) << bytes.size();
    EXPECT_EQ(peer.Received().find("HTTP"), std::string::npos);
  }
  EXPECT_EQ(server.requests, 0);
  bool opened = false;
  WhyNot(server.port(), AnIdentity()->fingerprint(), &opened);
  EXPECT_TRUE(opened);
}

TEST_F(TlsTest, BeyondLoopbackThereIsTlsOrNothing) {
  TestServer server(io_, {.address = "0.0.0.0", .identity = AnIdentity()});
  bool opened = false;
  WhyNot(server.port(), AnIdentity()->fingerprint(), &opened);
  EXPECT_TRUE(opened);
  EXPECT_FALSE(Server::Listen(
      io_, {.address = "0.0.0.0", .token = kToken}, [](const HttpRequest&) { return HttpResponse{}; },
      [](std::shared_ptr<ServerSocket>) {}));
}

// ---- by a secret ----

class BySecret : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_), 0); }
  void TearDown() override {
    server_.reset();
    client_.reset();
    for (const int end : ends_) ::close(end);
  }
  void Meet(std::string_view servers, std::string_view clients) {
    server_ = TlsSession::BySecret(servers, /*is_server=*/true, ends_[0]).value();
    client_ = TlsSession::BySecret(clients, /*is_server=*/false, ends_[1]).value();
  }
  // What the server reads of what the client writes; nothing when either of them gives up.
  std::string Say(std::string_view words) {
    std::string heard;
    size_t said = 0;
    for (int i = 0; i < 20 && heard.size() < words.size(); ++i) {
      if (said < words.size()) {
        const IoStep step = client_->Write(words.data() + said, words.size() - said);
        if (step.error) return "";
        if (step.wait == IoStep::Wait::kNothing) said += step.size;
      }
      char bytes[100];
      const IoStep step = server_->Read(bytes, sizeof bytes);
      if (step.error) return "";
      if (step.wait == IoStep::Wait::kNothing) heard.append(bytes, step.size);
    }
    return heard;
  }

  int ends_[2] = {-1, -1};
  std::unique_ptr<TlsSession> server_, client_;
};

TEST_F(BySecret, WhoShareOneUnderstandEachOther) {
  Meet("a secret", "a secret");
  EXPECT_EQ(Say("good morning"), "good morning");
}

TEST_F(BySecret, WhoDontShareOneSayNothing) {
  Meet("a secret", "a Secret");
  EXPECT_EQ(Say("good morning"), "");
  EXPECT_NE(server_->failure() + client_->failure(), "");
}

TEST_F(BySecret, AClientTakesNoCertificateInItsPlace) {
  const std::string pem = MakeSelfSignedPem().value();
  const auto identity = TlsIdentity::FromPem(pem, pem).value();
  server_ = TlsSession::Server(*identity, ends_[0]).value();
  client_ = TlsSession::BySecret("a secret", /*is_server=*/false, ends_[1]).value();
  EXPECT_EQ(Say("good morning"), "");
}

}  // namespace
}  // namespace aimaster
