// The limits of notifications.
#pragma once

#include <chrono>
#include <cstddef>

namespace aimaster::notify {

using std::chrono::milliseconds;

// Of a notify file.
inline constexpr size_t kFileMaxBytes = 256 << 10;
inline constexpr size_t kPlanMaxBytes = 4 << 20;  // the same as it lies in the job's directory
inline constexpr size_t kSinksMax = 50;
inline constexpr size_t kRulesMax = 200;
inline constexpr size_t kItemsMax = 100;  // of one list
inline constexpr size_t kTextMaxBytes = 4096;
inline constexpr size_t kSecretMaxBytes = 64 << 10;  // of the file that holds one

inline constexpr milliseconds kTimeoutLeast{100}, kTimeoutDefault{10'000}, kTimeoutMost{600'000};
inline constexpr milliseconds kRetryForLeast{0}, kRetryForDefault{3'600'000}, kRetryForMost{7 * 86'400'000};
inline constexpr milliseconds kDrainLeast{0}, kDrainDefault{30'000}, kDrainMost{600'000};
inline constexpr int kPerMinuteLeast = 1, kPerMinuteDefault = 20, kPerMinuteMost = 6000;

// Between two tries of one message: doubled each time.
inline constexpr milliseconds kBackoffFirst{1000}, kBackoffMost{300'000};
static_assert(kBackoffMost < kRetryForDefault);

// Of what the other side answers.
inline constexpr size_t kAnswerMaxBytes = 64 << 10;
inline constexpr size_t kAnswerShownBytes = 300;

// What services take at most; longer texts are cut.
inline constexpr size_t kLineMaxBytes = 1000;      // of one fact in a message
inline constexpr size_t kWeComMaxBytes = 4096;     // of a markdown message, by its documentation
inline constexpr size_t kChatTextMaxBytes = 3000;  // of the others, which take more than anybody reads
static_assert(kChatTextMaxBytes < kWeComMaxBytes);

inline constexpr size_t kKindsShown = 8;  // in a digest; the rest is counted

}  // namespace aimaster::notify
