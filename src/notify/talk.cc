#include "notify/talk.h"

#include <nlohmann/json.hpp>

#include "core/overloaded.h"
#include "journal/json_fields.h"

namespace aimaster {

inline std::string_view Name(OutboxMark::Kind kind) {
  switch (kind) {
    case OutboxMark::Kind::kDelivered:
      return "Delivered";
    case OutboxMark::Kind::kGaveUp:
      return "GaveUp";
    case OutboxMark::Kind::kTrouble:
      return "Trouble";
    case OutboxMark::Kind::kPassed:
      return "Passed";
  }
  return "";
}

// The time is the master's: it has the job's clock.
template <typename V>
void Fields(V& v, OutboxMark& x) {
  v("mark", x.kind);
  v("sink", x.sink);
  v("position", x.position);
  v("events", x.events);
  v("answer", x.answer);
}

namespace notify {

std::string Encode(const CourierSays& says) {
  const json line =
      std::visit(Overloaded{[](const CourierReady& ready) -> json { return {{"ready", ready.drain.count()}}; },
                            [](const OutboxMark& mark) -> json { return ToJson(mark); },
                            [](const CourierLog& log) -> json { return {{"log", TextToJson(log.line)}}; }},
                 says);
  return ToText(line) + "\n";
}

std::optional<CourierSays> DecodeCourierSays(std::string_view line) {
  const json parsed = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return std::nullopt;
  if (const auto ready = parsed.find("ready"); ready != parsed.end()) {
    if (!ready->is_number_integer()) return std::nullopt;
    return CourierReady{milliseconds(ready->get<int64_t>())};
  }
  if (const auto log = parsed.find("log"); log != parsed.end()) {
    CourierLog said;
    if (!TextFromJson(*log, said.line).empty()) return std::nullopt;
    return said;
  }
  Result<OutboxMark> mark = FromJson<OutboxMark>(parsed);
  if (!mark || mark->sink.empty()) return std::nullopt;
  return std::move(*mark);
}

}  // namespace notify
}  // namespace aimaster
