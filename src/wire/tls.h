// Tls: encryption for a connection, with OpenSSL, over a socket that is awaited elsewhere.
//
// Think of an interpreter between two people on a telephone: he speaks and listens for them, and when the line is busy
// he says so and is asked again. Whom a caller talks to is known by the fingerprint of the certificate, which reached
// him through the job directory; there is no authority, no name and no expiry to check, and a stranger cannot have the
// private key that belongs to it.
//
// Asio's own stream was rejected: it keeps some seventy kibibytes of buffers per connection, ten thousand agents are
// idle most of the time, and a master is to run in tens of megabytes. Here OpenSSL reads and writes the socket itself
// and gives its buffers back in between.
#pragma once

#include <boost/beast/core/error.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"

struct ssl_st;
struct ssl_ctx_st;
struct x509_store_ctx_st;

namespace aimaster {

// SHA-256 of a certificate as 64 lowercase hexadecimal digits: what `openssl x509 -outform DER | sha256sum` prints.
bool IsFingerprint(std::string_view text);

// What a server shows to prove who it is: a certificate and its private key. Any thread.
class TlsIdentity {
 public:
  // The certificate may be followed by those that it rests on. An error says which of the two is wrong, and how; it
  // never quotes the key.
  static Result<std::shared_ptr<const TlsIdentity>> FromPem(std::string_view certificates, std::string_view key);

  virtual ~TlsIdentity() = default;
  virtual const std::string& fingerprint() const = 0;
  virtual ssl_ctx_st* context() const = 0;
};

// A fresh private key (EC P-256) and a certificate that it has signed itself, one after the other in PEM: one text, so
// that a file holds both or neither. Both parameters of FromPem take it.
Result<std::string> MakeSelfSignedPem();

// An errno of a socket that only says: not now.
bool IsForLater(int error);

// How far a step has come.
struct IoStep {
  enum class Wait { kNothing, kReadable, kWritable };
  Wait wait = Wait::kNothing;  // try again when the socket is that
  boost::beast::error_code error;
  size_t size = 0;  // when there is nothing to wait for
};

// One end of an encrypted connection. The handshake is part of the first read or write, so whoever bounds those bounds
// it too. Lives on the thread of the socket, and goes before the descriptor is closed.
class TlsSession {
 public:
  static Result<std::unique_ptr<TlsSession>> Server(const TlsIdentity& identity, int descriptor);
  // Talks to the owner of that certificate and to nobody else: what is written is sent only after the proof.
  static Result<std::unique_ptr<TlsSession>> Client(std::string fingerprint, int descriptor);

  // Either end of a connection between two who share a secret and have no certificate: each proves that it knows it.
  static Result<std::unique_ptr<TlsSession>> BySecret(std::string_view secret, bool is_server, int descriptor);

  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  IoStep Read(void* to, size_t size);
  // A write that had to wait is tried again with the same bytes, wherever they lie by then.
  IoStep Write(const void* from, size_t size);
  // Tells the peer that nothing more comes, as far as the socket takes it now.
  void SayEnd();

  // Why it failed, in a sentence for people; empty when it did not.
  const std::string& failure() const { return failure_; }

 private:
  TlsSession(ssl_st* session, std::string expected);
  IoStep Outcome(int result);
  static int CheckCertificate(x509_store_ctx_st* store, void* unused);
  static unsigned TellKey(ssl_st* session, const char* hint, char* identity, unsigned identity_size, unsigned char* key,
                          unsigned key_size);
  static unsigned FindKey(ssl_st* session, const char* identity, unsigned char* key, unsigned key_size);

  ssl_st* const session_;
  const std::string expected_;  // the fingerprint, of a client; the key, of one that goes by a secret
  std::string failure_;
};

}  // namespace aimaster
