#include "wire/tls.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <climits>
#include <utility>

#include "core/check.h"
#include "core/quote.h"

namespace aimaster {
namespace {

using ErrorCode = boost::beast::error_code;

template <auto Free>
struct FreeWith {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
template <typename T, auto Free>
using Owned = std::unique_ptr<T, FreeWith<Free>>;
using Bio = Owned<BIO, &BIO_free_all>;
using Certificate = Owned<X509, &X509_free>;
using Key = Owned<EVP_PKEY, &EVP_PKEY_free>;
using Context = Owned<SSL_CTX, &SSL_CTX_free>;

constexpr long kSelfSignedDays = 3650;  // nobody looks: a caller knows the certificate itself
constexpr long kSecondsPerDay = 86'400;
constexpr size_t kFingerprintDigits = 64;
constexpr int kSerialBits = 127;

// Before the first use of the library. Its configuration file is left alone: it may name modules to load.
bool InitialiseLibrary() {
  static const bool good = OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr) == 1;
  return good;
}

// The reason of the oldest error that waits, which is where it began; empties the queue.
std::string LibraryError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "no reason given" : Printable(reason);
}

std::unexpected<Error> CannotUse(const std::string& what) {
  return Fail(ErrorKind::kEnvironment, "TLS: " + what + ": " + LibraryError());
}

std::string Fingerprint(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (certificate == nullptr || X509_digest(certificate, EVP_sha256(), digest, &size) != 1) return {};
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text.push_back(kDigits[digest[i] >> 4]);
    text.push_back(kDigits[digest[i] & 15]);
  }
  return text;
}

// ---- the socket, as OpenSSL sees it ----
// Its own one writes without MSG_NOSIGNAL: a peer that hangs up would end a program that has not ignored SIGPIPE.

int DescriptorOf(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

int ReadSocket(BIO* bio, char* to, size_t size, size_t* got) {
  BIO_clear_retry_flags(bio);
  const ssize_t result = ::recv(DescriptorOf(bio), to, size, 0);
  *got = result > 0 ? static_cast<size_t>(result) : 0;
  if (result < 0 && IsForLater(errno)) BIO_set_retry_read(bio);
  if (result == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return result > 0 ? 1 : 0;
}

int WriteSocket(BIO* bio, const char* from, size_t size, size_t* put) {
  BIO_clear_retry_flags(bio);
  const ssize_t result = ::send(DescriptorOf(bio), from, size, MSG_NOSIGNAL);
  *put = result > 0 ? static_cast<size_t>(result) : 0;
  if (result < 0 && IsForLater(errno)) BIO_set_retry_write(bio);
  return result > 0 ? 1 : 0;
}

long ControlSocket(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* SocketMethod() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    CHECK(made != nullptr);
    BIO_meth_set_read_ex(made, &ReadSocket);
    BIO_meth_set_write_ex(made, &WriteSocket);
    BIO_meth_set_ctrl(made, &ControlSocket);
    return made;
  }();
  return method;
}

// ---- contexts: what all connections of one kind share ----

Context NewContext(const SSL_METHOD* method) {
  Context context(InitialiseLibrary() ? SSL_CTX_new(method) : nullptr);
  if (!context) return context;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(context.get(), 0);  // connections last; none is ever taken up again
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  // A peer that only ever sends what carries no data must not keep the loop inside one read.
  SSL_CTX_clear_mode(context.get(), SSL_MODE_AUTO_RETRY);
  return context;
}

class Identity final : public TlsIdentity {
 public:
  Identity(Context context, std::string fingerprint)
      : context_(std::move(context)), fingerprint_(std::move(fingerprint)) {}
  const std::string& fingerprint() const override { return fingerprint_; }
  ssl_ctx_st* context() const override { return context_.get(); }

 private:
  const Context context_;
  const std::string fingerprint_;
};

Bio Reader(std::string_view text) {
  CHECK(text.size() <= INT_MAX);
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A key behind a passphrase is refused: nobody is there to be asked for it.
int NoPassphrase(char*, int, int, void*) { return -1; }

// One that reads and writes this socket; null when there is no memory.
SSL* NewSession(SSL_CTX* context, int descriptor) {
  SSL* const session = SSL_new(context);
  BIO* const bio = session == nullptr ? nullptr : BIO_new(SocketMethod());
  if (bio == nullptr) {
    SSL_free(session);
    return nullptr;
  }
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)));
  BIO_set_init(bio, 1);
  SSL_set_bio(session, bio, bio);
  return session;
}

}  // namespace

bool IsFingerprint(std::string_view text) {
  return text.size() == kFingerprintDigits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<std::shared_ptr<const TlsIdentity>> TlsIdentity::FromPem(std::string_view certificates, std::string_view key) {
  Context context = NewContext(TLS_server_method());
  if (!context) return CannotUse("cannot be used");
  ERR_clear_error();
  const Bio certificate_text = Reader(certificates);
  const Certificate own(PEM_read_bio_X509(certificate_text.get(), nullptr, &NoPassphrase, nullptr));
  if (!own || SSL_CTX_use_certificate(context.get(), own.get()) != 1) return CannotUse("not a certificate in PEM");
  while (X509* next = PEM_read_bio_X509(certificate_text.get(), nullptr, &NoPassphrase, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context.get(), next) == 1) continue;
    X509_free(next);
    return CannotUse("a further certificate cannot be used");
  }
  ERR_clear_error();  // the end of the text is an error to the reader
  const Key private_key(PEM_read_bio_PrivateKey(Reader(key).get(), nullptr, &NoPassphrase, nullptr));
  if (!private_key) return CannotUse("not a private key in PEM without a passphrase");
  if (SSL_CTX_use_PrivateKey(context.get(), private_key.get()) != 1 || SSL_CTX_check_private_key(context.get()) != 1) {
    return CannotUse("the private key does not belong to the certificate");
  }
  std::string fingerprint = Fingerprint(own.get());
  if (fingerprint.empty()) return CannotUse("the certificate has no fingerprint");
  return std::make_shared<const Identity>(std::move(context), std::move(fingerprint));
}

Result<std::string> MakeSelfSignedPem() {
  if (!InitialiseLibrary()) return CannotUse("cannot be used");
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  const Owned<BIGNUM, &BN_free> serial(BN_new());
  if (!key || !certificate || !serial) return CannotUse("no key can be made");
  X509_NAME* name = X509_get_subject_name(certificate.get());
  const bool made =
      X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
      BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get())) != nullptr &&
      // From yesterday on: clocks differ.
      X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kSecondsPerDay) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kSelfSignedDays * kSecondsPerDay) != nullptr &&
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("aimaster"), -1, -1,
                                 0) == 1 &&
      X509_set_issuer_name(certificate.get(), name) == 1 && X509_set_pubkey(certificate.get(), key.get()) == 1 &&
      X509_sign(certificate.get(), key.get(), EVP_sha256()) != 0;
  const Bio text(BIO_new(BIO_s_mem()));
  if (!made || !text ||
      PEM_write_bio_PKCS8PrivateKey(text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1 ||
      PEM_write_bio_X509(text.get(), certificate.get()) != 1) {
    return CannotUse("no certificate can be made");
  }
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(text.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

bool IsForLater(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

TlsSession::TlsSession(ssl_st* session, std::string expected) : session_(session), expected_(std::move(expected)) {}

TlsSession::~TlsSession() { SSL_free(session_); }

int TlsSession::CheckCertificate(X509_STORE_CTX* store, void*) {
  const auto* session = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* self = static_cast<TlsSession*>(SSL_get_ex_data(session, 0));
  const std::string shown = Fingerprint(X509_STORE_CTX_get0_cert(store));
  if (shown == self->expected_) return 1;
  self->failure_ = "its certificate has the fingerprint " + shown + ", the master's has " + self->expected_ +
                   ": somebody else answers there";
  X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

Result<std::unique_ptr<TlsSession>> TlsSession::Server(const TlsIdentity& identity, int descriptor) {
  SSL* const session = NewSession(identity.context(), descriptor);
  if (session == nullptr) return CannotUse("no memory for a connection");
  SSL_set_accept_state(session);
  return std::unique_ptr<TlsSession>(new TlsSession(session, {}));
}

Result<std::unique_ptr<TlsSession>> TlsSession::Client(std::string fingerprint, int descriptor) {
  static const Context context = [] {
    Context made = NewContext(TLS_client_method());
    if (made) {
      SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER, nullptr);
      SSL_CTX_set_cert_verify_callback(made.get(), &TlsSession::CheckCertificate, nullptr);
    }
    return made;
  }();
  if (!context) return CannotUse("cannot be used");
  if (!IsFingerprint(fingerprint)) {
    return Fail(ErrorKind::kEnvironment, "TLS: " + Quoted(fingerprint) + " is not a certificate's fingerprint");
  }
  SSL* const session = NewSession(context.get(), descriptor);
  if (session == nullptr) return CannotUse("no memory for a connection");
  SSL_set_connect_state(session);
  auto made = std::unique_ptr<TlsSession>(new TlsSession(session, std::move(fingerprint)));
  SSL_set_ex_data(session, 0, made.get());
  return made;
}

// ---- by a secret: the pre-shared keys of TLS 1.3, with a fresh exchange for each connection ----

unsigned TlsSession::FindKey(SSL* session, const char*, unsigned char* key, unsigned key_size) {
  const auto* self = static_cast<TlsSession*>(SSL_get_ex_data(session, 0));
  if (self->expected_.size() > key_size) return 0;
  self->expected_.copy(reinterpret_cast<char*>(key), self->expected_.size());
  return static_cast<unsigned>(self->expected_.size());
}

unsigned TlsSession::TellKey(SSL* session, const char*, char* identity, unsigned identity_size, unsigned char* key,
                             unsigned key_size) {
  constexpr std::string_view kIdentity = "aimaster";
  if (kIdentity.size() >= identity_size) return 0;
  identity[kIdentity.copy(identity, identity_size - 1)] = '\0';
  return FindKey(session, nullptr, key, key_size);
}

Result<std::unique_ptr<TlsSession>> TlsSession::BySecret(std::string_view secret, bool is_server, int descriptor) {
  CHECK(!secret.empty());
  Context context = NewContext(is_server ? TLS_server_method() : TLS_client_method());
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context.get(), "TLS_AES_128_GCM_SHA256") != 1) {
    return CannotUse("cannot be used");
  }
  if (is_server) {  // it has no certificate to show in place of the key
    SSL_CTX_set_psk_server_callback(context.get(), &TlsSession::FindKey);
  } else {  // and a client would take none
    SSL_CTX_set_psk_client_callback(context.get(), &TlsSession::TellKey);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 0; });
  }
  unsigned char key[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_Digest(secret.data(), secret.size(), key, &size, EVP_sha256(), nullptr) != 1) return CannotUse("no digest");
  SSL* const session = NewSession(context.get(), descriptor);
  if (session == nullptr) return CannotUse("no memory for a connection");
  if (is_server) {
    SSL_set_accept_state(session);
  } else {
    SSL_set_connect_state(session);
  }
  auto made =
      std::unique_ptr<TlsSession>(new TlsSession(session, std::string(reinterpret_cast<const char*>(key), size)));
  SSL_set_ex_data(session, 0, made.get());
  return made;
}

IoStep TlsSession::Read(void* to, size_t size) {
  ERR_clear_error();
  errno = 0;
  IoStep step;
  const int result = SSL_read_ex(session_, to, size, &step.size);
  return result == 1 ? step : Outcome(result);
}

IoStep TlsSession::Write(const void* from, size_t size) {
  ERR_clear_error();
  errno = 0;
  IoStep step;
  const int result = SSL_write_ex(session_, from, size, &step.size);
  return result == 1 ? step : Outcome(result);
}

IoStep TlsSession::Outcome(int result) {
  const int socket_error = errno;
  IoStep step;
  switch (SSL_get_error(session_, result)) {
    case SSL_ERROR_WANT_READ:
      step.wait = IoStep::Wait::kReadable;
      return step;
    case SSL_ERROR_WANT_WRITE:
      step.wait = IoStep::Wait::kWritable;
      return step;
    case SSL_ERROR_ZERO_RETURN:
      step.error = boost::asio::error::eof;
      return step;
    case SSL_ERROR_SYSCALL:
      step.error = socket_error != 0 ? ErrorCode(socket_error, boost::system::system_category())
                                     : ErrorCode(boost::asio::error::connection_reset);
      return step;
    default: {
      const unsigned long code = ERR_peek_error();
      if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {  // whoever is killed says no goodbye
        ERR_clear_error();
        step.error = boost::asio::error::connection_reset;
        return step;
      }
      const std::string reason = LibraryError();
      if (failure_.empty()) failure_ = "TLS: " + reason;
      step.error = boost::asio::error::no_protocol_option;
      return step;
    }
  }
}

void TlsSession::SayEnd() {
  ERR_clear_error();
  if (SSL_is_init_finished(session_) == 1 && failure_.empty()) SSL_shutdown(session_);
  ERR_clear_error();
}

}  // namespace aimaster
