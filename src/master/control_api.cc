#include "master/control_api.h"

#include <signal.h>

#include <nlohmann/json.hpp>

namespace aimaster {
namespace {

using nlohmann::json;

constexpr size_t kByMaxBytes = 128;

HttpResponse Refuse(unsigned status, const std::string& why) { return {status, json{{"error", why}}.dump()}; }

}  // namespace

HttpResponse ControlApi::Answer(const HttpRequest& request) {
  if (request.target == "/api/v1/status" && request.method == "GET") {
    return {200, json{{"job", job_.DescribeJob()}, {"trouble", job_.Trouble()}}.dump()};
  }
  if (request.method != "POST") return Refuse(404, "no such page: " + request.target.substr(0, 200));
  const json body = json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  if (!body.is_object()) return Refuse(400, "the body has to be a JSON object");
  if (request.target == "/api/v1/stop") {
    const json at_once = body.value("at_once", json(false)), by = body.value("by", json("a request"));
    if (!at_once.is_boolean() || !by.is_string()) return Refuse(400, "at_once is a boolean, by a string");
    job_.Stop(at_once.get<bool>(), by.get<std::string>().substr(0, kByMaxBytes));
    return {200, "{}"};
  }
  if (request.target == "/api/v1/stacks") {
    const json by = body.value("by", json("a request"));
    if (!by.is_string()) return Refuse(400, "by is a string");
    const std::string why_not = job_.RequestStacks(by.get<std::string>().substr(0, kByMaxBytes));
    return why_not.empty() ? HttpResponse{200, "{}"} : Refuse(409, why_not);
  }
  if (request.target == "/api/v1/signal") {
    const json name = body.value("signal", json(""));
    if (name != "SIGUSR1" && name != "SIGUSR2") return Refuse(400, "signal is SIGUSR1 or SIGUSR2");
    job_.Signal(name == "SIGUSR1" ? SIGUSR1 : SIGUSR2);
    return {200, "{}"};
  }
  return Refuse(404, "no such page: " + request.target.substr(0, 200));
}

}  // namespace aimaster
