// Talk: what a master and its courier say to each other, a line each. The courier (`aimaster-notify serve`) reads the
// journal and sends; the master alone writes the journal.
//
//   master → courier, on its standard input      courier → master, on its standard output, JSON
//     look          something was appended          {"ready": 30000}    how long it may take to empty the outbox
//     marked SINK   what was told of it is durable  {"mark": "Delivered", "sink": …, "position": …, …}
//     drain         the job is over: send what      {"log": "…"}        a line for the job's log
//                   waits, then leave
//
// The end of its standard input is the end of its master: it leaves at once, since a successor sends the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "journal/outbox.h"
#include "notify/limits.h"

namespace aimaster::notify {

struct CourierReady {
  milliseconds drain{};
};
struct CourierLog {
  std::string line;
};
using CourierSays = std::variant<CourierReady, OutboxMark, CourierLog>;

// With the line's end.
std::string Encode(const CourierSays& says);
// None: it is no such line.
std::optional<CourierSays> DecodeCourierSays(std::string_view line);

inline constexpr std::string_view kLook = "look\n", kDrain = "drain\n", kMarked = "marked ";
// The courier's exit code, after it has said why: the job has no plan that can be used, and the next one would find the
// same.
inline constexpr int kExitNoPlan = 3;
inline constexpr size_t kTalkLineMaxBytes = 64 << 10;

}  // namespace aimaster::notify
