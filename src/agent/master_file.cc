#include "agent/master_file.h"

#include <nlohmann/json.hpp>

#include "wire/tls.h"
#include "wire/token.h"

namespace aimaster::agent {

using nlohmann::json;

std::optional<MasterWhereabouts> ParseMasterFile(std::string_view text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const json host = object.value("host", json()), port = object.value("port", json()),
             fingerprint = object.value("tls_fingerprint", json(""));
  if (!host.is_string() || !port.is_number_unsigned() || port.get<uint64_t>() > UINT16_MAX) return std::nullopt;
  if (!fingerprint.is_string()) return std::nullopt;
  const auto& digits = fingerprint.get_ref<const std::string&>();
  if (!digits.empty() && !IsFingerprint(digits)) return std::nullopt;
  return MasterWhereabouts{host.get<std::string>(), port.get<uint16_t>(), digits};
}

std::string ParseTokenFile(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with(' ')) text.remove_suffix(1);
  return IsToken(text) ? std::string(text) : std::string();
}

}  // namespace aimaster::agent
