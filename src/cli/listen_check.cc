#include "cli/listen_check.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "cli/text.h"
#include "core/quote.h"
#include "journal/files.h"
#include "wire/stream.h"
#include "wire/tls.h"

namespace aimaster::cli {
namespace {

constexpr size_t kPemMaxBytes = 1 << 20;

// With fewer it could listen, but take nobody's connection.
Status CheckDescriptors(uint32_t nodes) {
  constexpr rlim_t kOfItsOwn = 15;
  const rlim_t needed = kOfItsOwn + nodes;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return {};
  return Fail(ErrorKind::kUsage, "a process may have " + std::to_string(limit.rlim_cur) +
                                     " files open and would need " + std::to_string(needed) +
                                     " to be the job's master; raise it with ulimit -n");
}

Status CheckAddress(const std::string& listen_address) {
  const auto endpoints = Endpoints(listen_address, 0, /*encrypted=*/true);
  if (!endpoints) return Fail(ErrorKind::kUsage, "--listen: " + endpoints.error().message);
  const auto& endpoint = endpoints->front();
  const int fd = socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  int error = fd < 0 ? errno : 0;
  if (fd >= 0 && bind(fd, endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0) error = errno;
  if (fd >= 0) close(fd);
  if (error == 0) return {};
  return Fail(ErrorKind::kUsage, "--listen: cannot listen on " + Quoted(listen_address) + ": " + std::strerror(error) +
                                     (error == EADDRNOTAVAIL ? "; give an address of this machine, or 0.0.0.0" : ""));
}

// As OpenSSL's old and new forms of a key say it.
bool NeedsPassphrase(const std::string& pem) {
  return pem.find("-----BEGIN ENCRYPTED PRIVATE KEY-----") != std::string::npos ||
         pem.find("Proc-Type: 4,ENCRYPTED") != std::string::npos;
}

Status CheckCertificate(const JobSpec& spec) {
  if (spec.tls_certificate.empty()) return {};
  const Result<std::string> certificate = ReadFile(spec.tls_certificate, kPemMaxBytes);
  if (!certificate) return Fail(ErrorKind::kUsage, "--tls-cert: " + certificate.error().message);
  const Result<std::string> key = ReadFile(spec.tls_key, kPemMaxBytes);
  if (!key) return Fail(ErrorKind::kUsage, "--tls-key: " + key.error().message);
  if (NeedsPassphrase(*key)) {
    return Fail(ErrorKind::kUsage, "--tls-key: " + InQuotes(spec.tls_key) +
                                       " is protected by a passphrase, which nobody enters when a master is started "
                                       "again; give a copy without one (`openssl pkey -in KEY -out COPY`), readable "
                                       "by you alone");
  }
  const auto identity = TlsIdentity::FromPem(*certificate, *key);
  if (!identity) return Fail(ErrorKind::kUsage, "--tls-cert, --tls-key: " + identity.error().message);
  return {};
}

}  // namespace

Status CheckListening(const JobSpec& spec) {
  if (Status descriptors = CheckDescriptors(spec.local_nodes); !descriptors) return descriptors;
  if (Status address = CheckAddress(spec.listen_address); !address) return address;
  return CheckCertificate(spec);
}

}  // namespace aimaster::cli
