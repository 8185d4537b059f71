#include "notify/cloud_event.h"

#include <algorithm>

namespace aimaster::notify {
namespace {

using nlohmann::json;

json Envelope(const Message& message, const std::string& id, const std::string& type) {
  json event{{"specversion", "1.0"},
             {"id", id},
             {"source", "/aimaster/jobs/" + message.job_id},
             {"type", type},
             {"time", FormatRfc3339(message.time)},
             {"datacontenttype", "application/json"}};
  if (!message.subject.empty()) event["subject"] = message.subject;
  return event;
}

json Data(const Message& message) {
  json data{{"number", message.number}, {"job_id", message.job_id},           {"job_name", message.job_name},
            {"title", message.title},   {"severity", Name(message.severity)}, {"message", message.text}};
  for (const Fact& fact : message.facts) {
    std::string name = fact.label;
    std::ranges::replace(name, ' ', '_');
    data[name] = fact.text;
  }
  if (!message.look.empty()) data["look"] = message.look;
  return data;
}

json Whole(const Message& message) {
  json event = Envelope(message, message.job_id + "-" + std::to_string(message.number), message.type);
  event["data"] = Data(message);
  return event;
}

}  // namespace

json CloudEvent(const JobSpec& spec, const NumberedEvent& event) {
  Message message = MessageOf(spec, event);
  message.text = event.event.message;  // a program gets it uncut
  message.subject = event.event.subject;
  return Whole(message);
}

json CloudEvent(const Letter& letter) {
  if (letter.more == 0) return Whole(letter.message);
  json digest = Envelope(letter.message, IdOf(letter), "aimaster.notify.digest");
  json kinds = json::array();
  for (const auto& [title, count] : letter.kinds) kinds.push_back({{"title", title}, {"count", count}});
  digest["data"] = {{"job_id", letter.message.job_id},
                    {"job_name", letter.message.job_name},
                    {"severity", Name(letter.message.severity)},
                    {"message", MoreText(letter)},
                    {"events", letter.more + 1},
                    {"first_number", letter.first},
                    {"last_number", letter.last},
                    {"more", std::move(kinds)},
                    {"event", Whole(letter.message)}};
  return digest;
}

std::string OneLineOf(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace aimaster::notify
