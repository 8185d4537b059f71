#include "agent/sdk_api.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "agent/limits.h"
#include "core/failure.h"
#include "core/quote.h"

namespace aimaster::agent {
namespace {

using nlohmann::json;

std::string ToBody(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

HttpResponse Rejected(unsigned status, const std::string& why) { return {status, ToBody({{"error", why}})}; }

HttpResponse Done(const Status& done) {
  if (done) return {200, "{}\n"};
  return Rejected(done.error().kind == ErrorKind::kEnvironment ? 429 : 400, done.error().message);
}

json Parse(const std::string& body) { return json::parse(body, nullptr, /*allow_exceptions=*/false); }

// A number of at most 53 bits, which every JSON library can say.
std::optional<uint64_t> Number(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto number = found->get<uint64_t>();
  return number < uint64_t{1} << 53 ? std::optional(number) : std::nullopt;
}

// An index that is there is a small number; one that is not there is none.
bool TakeIndex(const json& object, const char* name, std::optional<uint32_t>& index) {
  if (!object.contains(name)) return true;
  const std::optional<uint64_t> number = Number(object, name);
  if (number.value_or(kIndexMax) >= kIndexMax) return false;
  index = static_cast<uint32_t>(*number);
  return true;
}

std::optional<SdkCaller> Caller(const json& object, pid_t pid) {
  if (!object.is_object()) return std::nullopt;
  SdkCaller caller{.pid = pid, .rank = {}, .instance = {}, .attempt = {}, .round = {}, .at_ns = {}};
  if (!TakeIndex(object, "rank", caller.rank) || !TakeIndex(object, "attempt", caller.attempt)) return std::nullopt;
  if (!TakeIndex(object, "round", caller.round)) return std::nullopt;
  if (const auto instance = object.find("instance"); instance != object.end()) {
    if (!instance->is_string()) return std::nullopt;
    caller.instance = instance->get<std::string>();
  }
  if (const auto at = object.find("at_ns"); at != object.end()) {
    if (!at->is_number_unsigned()) return std::nullopt;
    caller.at_ns = at->get<uint64_t>();
  }
  return caller;
}

// Whether it is one; none: it is absent.
bool TakeLoss(const json& object, std::optional<double>& loss) {
  const auto found = object.find("loss");
  if (found == object.end() || found->is_null()) return true;
  if (found->is_number()) {
    loss = found->get<double>();
    return true;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string text = found->is_string() ? found->get<std::string>() : std::string();
  if (text == "nan") loss = std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") loss = kInfinity;
  if (text == "-inf") loss = -kInfinity;
  return loss.has_value();
}

// In milliseconds, as HangSetting has it.
std::optional<int64_t> Interval(const json& seconds) {
  if (seconds.is_null()) return kHangIntervalOwnMs;
  if (!seconds.is_number()) return std::nullopt;
  const auto value = seconds.get<double>();
  if (value == -1) return kHangIntervalOffMs;
  if (!(value > 0) || value > kHangSecondsMax) return std::nullopt;
  return std::max<int64_t>(1000, std::llround(value * 1000));  // no less than the flag may be
}

json Seconds(int64_t interval_ms) {
  if (interval_ms == kHangIntervalOwnMs) return nullptr;
  if (interval_ms == kHangIntervalOffMs) return -1;
  return static_cast<double>(interval_ms) / 1000;
}

}  // namespace

HttpResponse SdkApi::Answer(const HttpRequest& request, pid_t caller) {
  const auto only = [&](const char* method, auto answer) {
    if (request.method == method) return answer();
    return Rejected(405, request.target + " takes " + method + " only");
  };
  if (request.target == "/v1/message") return only("POST", [&] { return SendMessage(request.body, caller); });
  if (request.target == "/v1/retryable_errors") return only("POST", [&] { return AddRetryableErrors(request.body); });
  if (request.target == "/v1/step") return only("POST", [&] { return SetStep(request.body, caller); });
  if (request.target == "/v1/checkpoint") return only("POST", [&] { return SetCheckpoint(request.body, caller); });
  if (request.target == "/v1/hang_interval") {
    if (request.method == "GET") return DescribeHangInterval();
    return only("POST", [&] { return SetHangInterval(request.body, caller); });
  }
  if (request.target == "/v1/status") return only("GET", [&] { return DescribeState(); });
  return Rejected(404, "there is no " + Quoted(request.target) + " here");
}

HttpResponse SdkApi::AddRetryableErrors(const std::string& body) {
  static const std::string kForm = R"(what is expected is {"errors": ["a text", "another"]})";
  const json object = Parse(body);
  if (!object.is_object() || !object.contains("errors") || !object["errors"].is_array()) return Rejected(400, kForm);
  std::vector<std::string> texts;
  for (const json& error : object["errors"]) {
    if (!error.is_string()) return Rejected(400, kForm);
    const auto& text = error.get_ref<const std::string&>();
    if (text.empty()) return Rejected(400, "an empty text would be found in every log");
    if (text.size() > kRetryableTextMaxBytes) {
      return Rejected(400, Quoted(text) + " is longer than " + std::to_string(kRetryableTextMaxBytes) + " bytes");
    }
    texts.push_back(text);
  }
  return Done(node_.AddRetryableErrors(texts));
}

HttpResponse SdkApi::SetStep(const std::string& body, pid_t pid) {
  static const char* const kForm = R"(what is expected is {"step": 120}, a whole number from 0, and perhaps a "loss")";
  const json object = Parse(body);
  const std::optional<SdkCaller> caller = Caller(object, pid);
  if (!caller) return Rejected(400, kForm);
  const std::optional<uint64_t> step = Number(object, "step");
  std::optional<double> loss;
  if (!step || !TakeLoss(object, loss)) return Rejected(400, kForm);
  return Done(node_.SetStep(*caller, *step, loss));
}

HttpResponse SdkApi::SetCheckpoint(const std::string& body, pid_t pid) {
  const json object = Parse(body);
  const std::optional<SdkCaller> caller = Caller(object, pid);
  const std::optional<uint64_t> step = caller ? Number(object, "step") : std::nullopt;
  if (!step) return Rejected(400, R"(what is expected is {"step": 120}, a whole number from 0)");
  return Done(node_.SetCheckpoint(*caller, *step));
}

HttpResponse SdkApi::SendMessage(const std::string& body, pid_t pid) {
  static const char* const kForm = R"(what is expected is {"content": "a text"})";
  const json object = Parse(body);
  const std::optional<SdkCaller> caller = Caller(object, pid);
  if (!caller) return Rejected(400, kForm);
  const auto content = object.find("content");
  if (content == object.end() || !content->is_string()) return Rejected(400, kForm);
  const auto& text = content->get_ref<const std::string&>();
  if (text.empty()) return Rejected(400, "the message is empty");
  if (text.size() > kMessageMaxBytes) {
    return Rejected(400, "the message has " + std::to_string(text.size()) + " bytes, and at most " +
                             std::to_string(kMessageMaxBytes) + " are passed on: shorten it");
  }
  return Done(node_.SendMessage(*caller, text));
}

HttpResponse SdkApi::SetHangInterval(const std::string& body, pid_t pid) {
  static const char* const kForm =
      R"(what is expected is {"seconds": 180}, above 0; -1 for no detection, null for the job's own interval)";
  const json object = Parse(body);
  const std::optional<SdkCaller> caller = Caller(object, pid);
  if (!caller || !object.contains("seconds")) return Rejected(400, kForm);
  const std::optional<int64_t> interval_ms = Interval(object["seconds"]);
  if (!interval_ms) return Rejected(400, kForm);
  return Done(node_.SetHangInterval(*caller, *interval_ms));
}

HttpResponse SdkApi::DescribeHangInterval() const {
  const std::optional<HangSetting> hang = node_.GetState().hang;
  if (!hang) return {200, ToBody({{"seconds", nullptr}})};
  return {200, ToBody({{"seconds", Seconds(hang->interval_ms)}, {"round", hang->round}})};
}

HttpResponse SdkApi::DescribeState() const {
  const Node::State state = node_.GetState();
  return {200, ToBody({{"job", state.job},
                       {"node", state.node},
                       {"connected", state.connected},
                       {"retryable_errors", state.retryable_errors}})};
}

}  // namespace aimaster::agent
