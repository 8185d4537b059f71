#include "agent/sdk_api.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "agent/limits.h"
#include "core/failure.h"
#include "core/quote.h"

namespace aimaster::agent {
namespace {

using nlohmann::json;

std::string ToBody(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

HttpResponse Refuse(unsigned status, const std::string& why) { return {status, ToBody({{"error", why}})}; }

HttpResponse Done(const Status& done) { return done ? HttpResponse{200, "{}\n"} : Refuse(400, done.error().message); }

json Parse(const std::string& body) { return json::parse(body, nullptr, /*allow_exceptions=*/false); }

// A number of at most 53 bits, which every JSON library can say.
std::optional<uint64_t> Number(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto number = found->get<uint64_t>();
  return number < uint64_t{1} << 53 ? std::optional(number) : std::nullopt;
}

}  // namespace

HttpResponse SdkApi::Answer(const HttpRequest& request, pid_t caller) {
  const auto only = [&](const char* method, auto answer) {
    if (request.method == method) return answer();
    return Refuse(405, request.target + " takes " + method + " only");
  };
  if (request.target == "/v1/retryable_errors") return only("POST", [&] { return AddRetryableErrors(request.body); });
  if (request.target == "/v1/step") return only("POST", [&] { return SetStep(request.body, caller); });
  if (request.target == "/v1/status") return only("GET", [&] { return DescribeState(); });
  return Refuse(404, "there is no " + Quoted(request.target) + " here");
}

HttpResponse SdkApi::AddRetryableErrors(const std::string& body) {
  static const std::string kForm = R"(what is expected is {"errors": ["a text", "another"]})";
  const json object = Parse(body);
  if (!object.is_object() || !object.contains("errors") || !object["errors"].is_array()) return Refuse(400, kForm);
  std::vector<std::string> texts;
  for (const json& error : object["errors"]) {
    if (!error.is_string()) return Refuse(400, kForm);
    const auto& text = error.get_ref<const std::string&>();
    if (text.empty()) return Refuse(400, "an empty text would be found in every log");
    if (text.size() > kRetryableTextMaxBytes) {
      return Refuse(400, Quoted(text) + " is longer than " + std::to_string(kRetryableTextMaxBytes) + " bytes");
    }
    texts.push_back(text);
  }
  return Done(node_.AddRetryableErrors(texts));
}

HttpResponse SdkApi::SetStep(const std::string& body, pid_t caller) {
  static const char* const kForm = R"(what is expected is {"step": 120}, a whole number from 0)";
  const json object = Parse(body);
  if (!object.is_object()) return Refuse(400, kForm);
  const std::optional<uint64_t> step = Number(object, "step");
  const std::optional<uint64_t> rank = Number(object, "rank");
  if (!step || (object.contains("rank") && rank.value_or(kIndexMax) >= kIndexMax)) return Refuse(400, kForm);
  return Done(node_.SetStep(caller, rank ? std::optional(static_cast<uint32_t>(*rank)) : std::nullopt, *step));
}

HttpResponse SdkApi::DescribeState() const {
  const Node::State state = node_.GetState();
  return {200, ToBody({{"job", state.job},
                       {"node", state.node},
                       {"connected", state.connected},
                       {"retryable_errors", state.retryable_errors}})};
}

}  // namespace aimaster::agent
