#include "notify/signature.h"

#include <gtest/gtest.h>

namespace aimaster::notify {
namespace {

using namespace std::chrono_literals;

// The expected values are from Python's hmac, by the words of each service's documentation.
constexpr Wall kSigningTime{1'700'000'000'123ms};

TEST(SignatureTest, AWebhookIsSignedOverItsIdItsTimeAndItsBody) {
  const Result<WebhookSignature> signature = SignWebhook("key", "dlc-1", R"({"a":1})", kSigningTime);
  ASSERT_TRUE(signature);
  EXPECT_EQ(signature->id, "dlc-1");
  EXPECT_EQ(signature->timestamp, "1700000000");
  EXPECT_EQ(signature->signature, "v1,h+Y27mNiIh21dKezmf7wxDRRqq3gYZqwU0a4A/X9ezk=");
}

TEST(SignatureTest, ASecretOfTheConventionIsBase64) {
  const Result<WebhookSignature> signature = SignWebhook("whsec_AAECYmluYXJ5", "dlc-1", R"({"a":1})", kSigningTime);
  ASSERT_TRUE(signature);
  EXPECT_EQ(signature->signature, "v1,9XfbfABYFYeD77Kl9S8kAnDCFYagANJPiqutCyy2ZkU=");
  for (const char* odd : {"whsec_", "whsec_?", "whsec_abc"}) {
    const Result<WebhookSignature> refused = SignWebhook(odd, "dlc-1", "", kSigningTime);
    ASSERT_FALSE(refused) << odd;
    EXPECT_EQ(refused.error().message, "what follows whsec_ in the secret is not base64");
  }
}

TEST(SignatureTest, DingTalkSignsItsAddress) {
  EXPECT_EQ(DingTalkQuery("SECtest", kSigningTime),
            "timestamp=1700000000123&sign=lrMq5E54T40t3FfGVjxdvoqIbXlWY6mzkZYiVoI6emk%3D");
}

TEST(SignatureTest, FeishuSignsNothingWithTimeAndSecretAsTheKey) {
  EXPECT_EQ(FeishuSign("SECtest", "1700000000"), "G7XpBpG8NgG02fJOAhX6FRAObIljmFoxVReo8I62pEk=");
}

TEST(SignatureTest, EncodingsCoverEveryLength) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("a"), "YQ==");
  EXPECT_EQ(Base64("abc"), "YWJj");
  EXPECT_EQ(UrlEncoded("a/b+c=~é"), "a%2Fb%2Bc%3D~%C3%A9");
}

}  // namespace
}  // namespace aimaster::notify
