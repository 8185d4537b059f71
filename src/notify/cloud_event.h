// CloudEvent: an event of a job as CloudEvents 1.0 JSON, in structured mode: what webhooks get, and what
// `aimaster events --json` prints. Field names here are a promise to users.
#pragma once

#include <nlohmann/json.hpp>

#include "notify/message.h"

namespace aimaster::notify {

// An event as the journal has it.
nlohmann::json CloudEvent(const JobSpec& spec, const NumberedEvent& event);
// One to a sink, with its facts. A digest is of type aimaster.notify.digest, and has the event that it tells in whole,
// itself a CloudEvent, in its data.
nlohmann::json CloudEvent(const Letter& letter);

// As one line. What a rank printed may hold bytes that are not UTF-8; they are replaced.
std::string OneLineOf(const nlohmann::json& value);

}  // namespace aimaster::notify
