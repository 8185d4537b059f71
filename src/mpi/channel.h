// Channel: one call between mpirun's host and another one, as frames over a connection that only the job's own
// processes can open.
//
//   launcher's host                         a worker's host
//     │ ── kCommand (a line for a shell) ──▶ │
//     │ ◀──────────────── kOutput, kErrors ─ │
//     │ ── kSignal ────────────────────────▶ │
//     │ ◀──────────────────────────── kExit ─│  the wait status; the last frame
//
// A frame is a byte for its kind, four for its length (the greatest first), and its bytes. Both ends know the job's
// token; TLS makes sure that the other one does too, without sending it. Both ends are of one release.
//
// WebSocket and HTTP, which the agents speak, were the alternative: two processes of one job that pass bytes to and fro
// need neither.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"
#include "wire/tls.h"

namespace aimaster::mpi {

enum class FrameKind : unsigned char { kCommand = 1, kSignal = 2, kOutput = 3, kErrors = 4, kExit = 5 };

struct Frame {
  FrameKind kind{};
  std::string bytes;
};

// The secret of a job's calls, out of its token file; kNotFound or kUsage when there is none.
Result<std::string> ReadSecret(const std::string& token_file);

class Channel {
 public:
  // Takes the descriptor over, of a connected socket that does not block.
  static Result<Channel> Open(int descriptor, const std::string& secret, bool is_server);
  ~Channel();
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&&) = delete;

  int descriptor() const { return descriptor_; }

  enum class Got { kFrame, kNothing, kEnd };
  // What has come, without waiting. Readable once more after kNothing only; so call it until it says that.
  Got Receive(Frame& frame);
  // Waits for the first frame, or the next one; nothing when it does not come in time.
  bool Await(Frame& frame, std::chrono::milliseconds patience);
  // Waits until the peer has taken it; false when the peer is gone.
  bool Send(FrameKind kind, std::string_view bytes);
  void SayEnd();

  // Why the last call failed, for people; empty where the peer has just hung up.
  std::string failure() const { return session_->failure(); }

 private:
  Channel(int descriptor, std::unique_ptr<TlsSession> session);
  bool TakeFrame(Frame& frame);

  int descriptor_;
  std::unique_ptr<TlsSession> session_;
  std::string received_;
  bool is_damaged_ = false;
};

// Where a host listens: its address or name, resolved.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
};
Result<Endpoint> Resolve(const std::string& host, uint16_t port);

// Waits for one descriptor; false when the time is over.
bool WaitFor(int descriptor, short events, std::chrono::milliseconds patience);

}  // namespace aimaster::mpi
