// What an agent reads of its master in the job directory: where it listens (master.json), and the secret that it is to
// be shown (token).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace aimaster::agent {

struct MasterWhereabouts {
  std::string host;
  uint16_t port = 0;
  std::string tls_fingerprint;  // of its certificate; empty: it speaks clear text
  bool operator==(const MasterWhereabouts&) const = default;
};

// Nothing when it is damaged: a fingerprint that is none never becomes clear text.
std::optional<MasterWhereabouts> ParseMasterFile(std::string_view text);

// The token without the end of its line; empty when it is none that can be sent.
std::string ParseTokenFile(std::string_view text);

}  // namespace aimaster::agent
