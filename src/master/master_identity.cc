#include "master/master_identity.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "journal/files.h"
#include "wire/stream.h"

namespace aimaster {
namespace {

constexpr size_t kPemMaxBytes = 1 << 20;

using Identity = Result<std::shared_ptr<const TlsIdentity>>;

Identity Read(const std::filesystem::path& certificate, const std::filesystem::path& key) {
  const Result<std::string> certificate_text = ReadFile(certificate, kPemMaxBytes);
  if (!certificate_text) return std::unexpected(certificate_text.error());
  const Result<std::string> key_text = ReadFile(key, kPemMaxBytes);
  if (!key_text) return std::unexpected(key_text.error());
  Identity identity = TlsIdentity::FromPem(*certificate_text, *key_text);
  if (identity) return identity;
  const std::string files = certificate.string() + (key == certificate ? "" : " and " + key.string());
  return Fail(identity.error().kind, files + ": " + identity.error().message);
}

Identity OwnPair(const std::filesystem::path& folder) {
  const std::filesystem::path pair = folder / "pair.pem";
  Identity found = Read(pair, pair);
  if (found || found.error().kind != ErrorKind::kNotFound) return found;
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return Fail(ErrorKind::kEnvironment, "cannot make " + folder.string() + ": " + std::strerror(errno));
  }
  const Result<std::string> pem = MakeSelfSignedPem();
  if (!pem) return std::unexpected(pem.error());
  if (const Status written = WriteFileAtomically(pair, *pem, 0600); !written) return std::unexpected(written.error());
  return Read(pair, pair);
}

}  // namespace

Result<std::shared_ptr<const TlsIdentity>> FindMasterIdentity(const JobSpec& spec, const JobDirectory& directory) {
  if (!spec.tls_certificate.empty()) return Read(spec.tls_certificate, spec.tls_key);
  if (IsLoopback(spec.listen_address)) return nullptr;
  return OwnPair(directory.tls());
}

std::string AddressToDial(const std::string& listen_address) {
  if (listen_address == "0.0.0.0" || listen_address == "localhost") return "127.0.0.1";
  return listen_address == "::" ? "::1" : listen_address;
}

}  // namespace aimaster
