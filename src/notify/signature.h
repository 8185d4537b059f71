// Signatures: how each service wants to be shown that a message is from who knows its secret. All are HMAC-SHA256; they
// differ in what is the key and what the message. OpenSSL computes; what is ours is the order of things.
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "core/time.h"

namespace aimaster::notify {

std::string Base64(std::string_view bytes);
// Everything but letters, digits, '-', '.', '_' and '~' as %NN.
std::string UrlEncoded(std::string_view text);

// The three headers of the Standard Webhooks convention, which libraries of many languages verify: the signature is
// over "ID.TIMESTAMP.BODY", so that a message that was caught can't be played again later. A secret "whsec_…" is
// base64; any other text is the key as it stands.
struct WebhookSignature {
  std::string id, timestamp, signature;  // webhook-id, webhook-timestamp, webhook-signature
};
Result<WebhookSignature> SignWebhook(std::string_view secret, const std::string& id, std::string_view body, Wall now);

// What DingTalk wants behind a robot's address: "timestamp=…&sign=…".
std::string DingTalkQuery(std::string_view secret, Wall now);

// Feishu's "sign", for a "timestamp" in seconds.
std::string FeishuSign(std::string_view secret, const std::string& timestamp);

}  // namespace aimaster::notify
