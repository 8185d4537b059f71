#include "mpi/channel.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/quote.h"
#include "mpi/limits.h"

namespace aimaster::mpi {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kHeaderBytes = 5;

std::chrono::milliseconds Rest(Clock::time_point until) {
  return std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()));
}

short Events(IoStep::Wait wait) { return wait == IoStep::Wait::kReadable ? POLLIN : POLLOUT; }

}  // namespace

bool WaitFor(int descriptor, short events, std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  while (true) {
    pollfd waited{.fd = descriptor, .events = events, .revents = 0};
    const int result = ::poll(&waited, 1, static_cast<int>(Rest(until).count()));
    if (result >= 0 || errno != EINTR) return result > 0;
  }
}

Result<Endpoint> Resolve(const std::string& host, uint16_t port) {
  addrinfo* found = nullptr;
  const addrinfo hints{.ai_flags = AI_NUMERICSERV, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return Fail(ErrorKind::kEnvironment, "cannot find " + Quoted(host) + ": " + ::gai_strerror(error));
  Endpoint endpoint{.size = found->ai_addrlen};
  std::memcpy(&endpoint.address, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return endpoint;
}

Result<std::string> ReadSecret(const std::string& token_file) {
  const int fd = ::open(token_file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return Fail(ErrorKind::kNotFound,
                "cannot read the job's token " + Quoted(token_file) + ": " + std::strerror(errno));
  }
  char bytes[kTokenMaxBytes];
  const ssize_t size = ::read(fd, bytes, sizeof bytes);
  ::close(fd);
  std::string token(bytes, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  token.erase(std::ranges::find(token, '\n'), token.end());
  if (token.empty()) return Fail(ErrorKind::kUsage, "there is no token in " + Quoted(token_file));
  return "remote start of MPI " + token;  // other uses of the token have other keys
}

Channel::Channel(int descriptor, std::unique_ptr<TlsSession> session)
    : descriptor_(descriptor), session_(std::move(session)) {}

Channel::Channel(Channel&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      session_(std::move(other.session_)),
      received_(std::move(other.received_)),
      is_damaged_(other.is_damaged_) {}

Channel::~Channel() {
  session_.reset();
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<Channel> Channel::Open(int descriptor, const std::string& secret, bool is_server) {
  auto session = TlsSession::BySecret(secret, is_server, descriptor);
  if (!session) {
    ::close(descriptor);
    return std::unexpected(session.error());
  }
  return Channel(descriptor, *std::move(session));
}

bool Channel::TakeFrame(Frame& frame) {
  if (received_.size() < kHeaderBytes) return false;
  size_t size = 0;
  for (size_t i = 1; i < kHeaderBytes; ++i) size = size << 8 | static_cast<unsigned char>(received_[i]);
  const auto kind = static_cast<unsigned char>(received_[0]);
  is_damaged_ = size > kFrameMaxBytes || kind < static_cast<unsigned char>(FrameKind::kCommand) ||
                kind > static_cast<unsigned char>(FrameKind::kExit);
  if (is_damaged_ || received_.size() < kHeaderBytes + size) return false;
  frame = {FrameKind{kind}, received_.substr(kHeaderBytes, size)};
  received_.erase(0, kHeaderBytes + size);
  return true;
}

Channel::Got Channel::Receive(Frame& frame) {
  while (true) {
    if (TakeFrame(frame)) return Got::kFrame;
    if (is_damaged_) return Got::kEnd;
    char bytes[kOutputPieceBytes];
    const IoStep step = session_->Read(bytes, sizeof bytes);
    if (step.wait == IoStep::Wait::kWritable) {  // the handshake has something to say first
      if (!WaitFor(descriptor_, POLLOUT, kSendMax)) return Got::kEnd;
      continue;
    }
    if (step.wait == IoStep::Wait::kReadable) return Got::kNothing;
    if (step.error) return Got::kEnd;
    received_.append(bytes, step.size);
  }
}

bool Channel::Await(Frame& frame, std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  while (true) {
    const Got got = Receive(frame);
    if (got != Got::kNothing) return got == Got::kFrame;
    if (!WaitFor(descriptor_, POLLIN, Rest(until))) return false;
  }
}

bool Channel::Send(FrameKind kind, std::string_view bytes) {
  std::string rest(1, static_cast<char>(kind));
  for (int shift = 24; shift >= 0; shift -= 8) rest += static_cast<char>(bytes.size() >> shift & 0xff);
  rest += bytes;
  const auto until = Clock::now() + kSendMax;
  while (!rest.empty()) {
    const IoStep step = session_->Write(rest.data(), rest.size());
    if (step.wait != IoStep::Wait::kNothing) {
      if (!WaitFor(descriptor_, Events(step.wait), Rest(until))) return false;
      continue;
    }
    if (step.error) return false;
    rest.erase(0, step.size);
  }
  return true;
}

void Channel::SayEnd() { session_->SayEnd(); }

}  // namespace aimaster::mpi
