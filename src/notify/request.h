// Request: a letter in the words of each service, and what its answer means. Pure: the secrets, the time and the answer
// come in as arguments, so that a signature and an odd answer can be tested without a server.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "notify/message.h"
#include "notify/plan.h"

namespace aimaster::notify {

// A sink's secrets as they are at this moment.
struct Revealed {
  std::string url, secret, password;
  std::vector<std::string> header_values;  // in the order of Sink::headers
};
Result<Revealed> RevealAll(const Sink& sink);
// The text with every secret in it replaced: what a server answers may repeat what it was sent.
std::string WithoutSecrets(std::string text, const Revealed& revealed);

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
};
// For all but smtp and command. All that is told is in the letter.
Result<HttpRequest> MakeHttpRequest(const Sink& sink, const Revealed& revealed, const Letter& letter, Wall now);

// A mail, whole, with CRLF line ends. Its Message-ID is the letter's: a mail program shows a repetition once.
std::string MakeMail(const Sink& sink, const Letter& letter);

struct CommandInput {
  std::string standard_input;            // the CloudEvent
  std::vector<std::string> environment;  // "AIMASTER_EVENT_TYPE=…"
};
CommandInput MakeCommandInput(const Letter& letter);

// How one try ended.
struct Outcome {
  bool delivered = false;
  bool refused = false;                     // another try would be answered in the same way
  std::optional<milliseconds> retry_after;  // what the other side asks for
  std::string answer;                       // for people: "200 OK", "connection refused"
};
inline Outcome NotDelivered(std::string answer, bool refused = false) {
  return {.delivered = false, .refused = refused, .retry_after = {}, .answer = std::move(answer)};
}
// The body uncut, since it may hold secrets. `retry_after` as the server wrote it, in seconds; 0: it did not.
Outcome ReadHttpAnswer(SinkType type, long status, std::string_view body, int64_t retry_after_seconds,
                       const Revealed& revealed);
// What went wrong, empty when nothing did; and the last line of the server's, uncut.
Outcome ReadMailAnswer(const std::string& error, std::string_view reply, const Revealed& revealed);

}  // namespace aimaster::notify
