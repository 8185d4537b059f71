#include "notify/signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace aimaster::notify {
namespace {

std::string HmacSha256(std::string_view key, std::string_view message) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(message.data()),
       message.size(), digest.data(), &size);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

Result<std::string> FromBase64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0 || text.empty()) return Fail(ErrorKind::kUsage, "what follows whsec_ in the secret is not base64");
  const auto padding = static_cast<size_t>(std::ranges::count(text.substr(text.size() - 2), '='));
  bytes.resize(static_cast<size_t>(size) - padding);
  return bytes;
}

}  // namespace

std::string Base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(std::max(size, 0)));
  return text;
}

std::string UrlEncoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || std::string_view("-._~").contains(c)) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

Result<WebhookSignature> SignWebhook(std::string_view secret, const std::string& id, std::string_view body, Wall now) {
  constexpr std::string_view kPrefix = "whsec_";
  std::string key(secret);
  if (secret.starts_with(kPrefix)) {
    Result<std::string> decoded = FromBase64(secret.substr(kPrefix.size()));
    if (!decoded) return std::unexpected(decoded.error());
    key = std::move(*decoded);
  }
  WebhookSignature signature{.id = id, .timestamp = "", .signature = ""};
  signature.timestamp = std::to_string(ToMilliseconds(now.since_epoch) / 1000);
  const std::string signed_text = id + "." + signature.timestamp + "." + std::string(body);
  signature.signature = "v1," + Base64(HmacSha256(key, signed_text));
  return signature;
}

std::string DingTalkQuery(std::string_view secret, Wall now) {
  const std::string timestamp = std::to_string(ToMilliseconds(now.since_epoch));
  const std::string sign = Base64(HmacSha256(secret, timestamp + "\n" + std::string(secret)));
  return "timestamp=" + timestamp + "&sign=" + UrlEncoded(sign);
}

std::string FeishuSign(std::string_view secret, const std::string& timestamp) {
  return Base64(HmacSha256(timestamp + "\n" + std::string(secret), ""));
}

}  // namespace aimaster::notify
