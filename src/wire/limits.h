// Every bound of the wire in one place, with the relations that make them safe together. A peer is never trusted to be
// fast, short or polite: whatever it may send, hold open or leave unread has a number here.
#pragma once

#include <chrono>
#include <cstddef>

namespace aimaster {

inline constexpr size_t kKibibyte = 1024;
inline constexpr size_t kMebibyte = 1024 * kKibibyte;

// ---- messages over WebSockets ----

// A report holds at most a rank's log tail (64 KiB), matched lines and an error text (4 KiB).
inline constexpr size_t kMessageToMasterMax = 1 * kMebibyte;
inline constexpr size_t kLogTailMax = 64 * kKibibyte;
inline constexpr size_t kErrorTextMax = 4 * kKibibyte;
static_assert(2 * (kLogTailMax + kErrorTextMax) < kMessageToMasterMax);

// Whatever command and environment the kernel can exec, a master can send: Linux refuses more than 6 MiB of both.
inline constexpr size_t kMessageToAgentMax = 8 * kMebibyte;
inline constexpr size_t kExecBytesMax = 6 * kMebibyte;
static_assert(kExecBytesMax + kMebibyte < kMessageToAgentMax);

// What waits for a peer that reads slowly. Beyond it the connection is given up: a reconnect starts from what is
// unacknowledged, while a queue without end takes the process down.
inline constexpr size_t kQueueToAgentMax = 32 * kMebibyte;
inline constexpr size_t kQueueToMasterMax = 64 * kMebibyte;
static_assert(kQueueToAgentMax >= 2 * kMessageToAgentMax && kQueueToMasterMax >= 2 * kMessageToMasterMax);

// A buffer that one large message made larger than this is given back after it: ten thousand connections are idle
// most of the time.
inline constexpr size_t kIdleBufferMax = 16 * kKibibyte;

// ---- HTTP ----

inline constexpr size_t kRequestHeaderMax = 16 * kKibibyte;
inline constexpr size_t kRequestBodyMax = 64 * kKibibyte;
inline constexpr size_t kResponseBodyMax = 64 * kMebibyte;  // what the command line takes from a master
inline constexpr size_t kTokenMax = 1 * kKibibyte;
static_assert(2 * kTokenMax < kRequestHeaderMax);
// What is still read, and thrown away, after a refusal, so that the peer can see why it was refused.
inline constexpr size_t kLingerBytesMax = 1 * kMebibyte;
static_assert(kLingerBytesMax > kRequestHeaderMax + kRequestBodyMax);
inline constexpr size_t kPeerTextMax = 512;  // of a peer's words in a sentence of ours

// ---- connections ----

inline constexpr size_t kConnectionsMax = 16'384;  // 10,000 agents, command lines, pages
// Those that have not shown the token yet. The oldest gives way to a new one: an honest peer shows it within
// milliseconds, and somebody who only holds connections open must not keep agents out.
inline constexpr size_t kStrangersMax = 1'024;
static_assert(10'000 + 2 * kStrangersMax < kConnectionsMax);
inline constexpr int kAcceptBatch = 16;  // per turn, so that ten thousand agents that come at once delay nobody long
inline constexpr int kListenBacklog = 4'096;

// ---- time ----

inline constexpr std::chrono::milliseconds kHandshakeTimeout{5'000};  // from connect to a WebSocket, to a header
inline constexpr std::chrono::milliseconds kRequestBodyTimeout{10'000};
inline constexpr std::chrono::milliseconds kResponseTimeout{30'000};    // until the peer has taken all of it
inline constexpr std::chrono::milliseconds kKeepAliveTimeout{30'000};   // between two requests
inline constexpr std::chrono::milliseconds kSocketIdleTimeout{15'000};  // a ping goes unanswered for half of it
inline constexpr std::chrono::milliseconds kCloseTimeout{5'000};        // to empty the queue and say goodbye
inline constexpr std::chrono::milliseconds kLingerTimeout{2'000};
inline constexpr std::chrono::milliseconds kAcceptPause{100};  // when there are no descriptors left

// An agent whose connection died without a word has found out and dialled again before its node counts as lost.
inline constexpr std::chrono::milliseconds kNodeLostTimeoutDefault{30'000};  // Timing::node_lost_timeout, see server.cc
static_assert(kSocketIdleTimeout + kHandshakeTimeout < kNodeLostTimeoutDefault);
// Three missing heartbeats make a node suspect; that is not yet a reason to hang up.
inline constexpr std::chrono::milliseconds kHeartbeatInterval{1'000};
static_assert(3 * kHeartbeatInterval < kSocketIdleTimeout / 2);

}  // namespace aimaster
