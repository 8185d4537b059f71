#include "mpi/station.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "mpi/channel.h"
#include "mpi/daemon.h"
#include "mpi/environment.h"
#include "mpi/limits.h"

namespace aimaster::mpi {
namespace {

using Clock = std::chrono::steady_clock;

void Say(const std::string& line) { std::fprintf(stderr, "aimaster-mpi: %s\n", line.c_str()); }

// The signal that killed the daemon; 0: none did. The shell that it was started by tells of it in its own way.
int KillerOf(int status) {
  constexpr int kShellsSignals = 128;
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  const int code = WEXITSTATUS(status);
  return code > kShellsSignals && code < kShellsSignals + NSIG ? code - kShellsSignals : 0;
}

// ---- one call ----

class Call {
 public:
  Call(Channel channel, Daemon daemon) : channel_(std::move(channel)), daemon_(daemon) {}

  // Until the daemon has ended. The exit code of the station when somebody else has killed it, or 0.
  int Run() {
    const int end = static_cast<int>(::syscall(SYS_pidfd_open, daemon_.pid, 0));
    while (true) {
      pollfd waited[] = {{.fd = channel_.descriptor(), .events = POLLIN, .revents = 0},
                         {.fd = daemon_.output, .events = POLLIN, .revents = 0},
                         {.fd = daemon_.errors, .events = POLLIN, .revents = 0},
                         {.fd = end, .events = POLLIN, .revents = 0}};
      ::poll(waited, std::size(waited), -1);
      Listen();
      Pass(daemon_.output, FrameKind::kOutput);
      Pass(daemon_.errors, FrameKind::kErrors);
      int status = 0;
      if (::waitpid(daemon_.pid, &status, WNOHANG) == daemon_.pid) return Finish(status);
      if (!has_caller_) return EndDaemon(end);
    }
  }

 private:
  void Listen() {
    Frame frame;
    while (has_caller_) {
      const Channel::Got got = channel_.Receive(frame);
      if (got == Channel::Got::kNothing) return;
      has_caller_ = got == Channel::Got::kFrame;
      if (has_caller_ && frame.kind == FrameKind::kSignal) Signal(frame.bytes);
    }
  }

  void Signal(const std::string& text) {
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    if (number <= 0 || number >= NSIG) return;
    was_told_ = true;
    ::kill(-daemon_.pid, number);
  }

  // What can be read now. A descriptor that has come to its end is closed.
  void Pass(int& from, FrameKind kind) {
    char bytes[kOutputPieceBytes];
    while (from >= 0) {
      const ssize_t size = ::read(from, bytes, sizeof bytes);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && IsForLater(errno)) return;
      if (size <= 0) {
        ::close(std::exchange(from, -1));
        return;
      }
      has_caller_ = has_caller_ && channel_.Send(kind, {bytes, static_cast<size_t>(size)});
    }
  }

  int Finish(int status) {
    const auto until = Clock::now() + kDrainMax;
    for (int* from : {&daemon_.output, &daemon_.errors}) {
      const FrameKind kind = from == &daemon_.output ? FrameKind::kOutput : FrameKind::kErrors;
      Pass(*from, kind);
      // Somebody whom it has left behind may hold the other end.
      while (*from >= 0 && Clock::now() < until && WaitFor(*from, POLLIN, 100ms)) Pass(*from, kind);
    }
    if (has_caller_) channel_.Send(FrameKind::kExit, std::to_string(status));
    channel_.SayEnd();
    const int killer = KillerOf(status);
    if (killer == 0 || was_told_) return 0;
    Say("the MPI daemon on this host was killed by signal " + std::to_string(killer));
    return 128 + killer;
  }

  // Whoever wanted it is gone.
  int EndDaemon(int end) {
    ::kill(-daemon_.pid, SIGTERM);
    if (!WaitFor(end, POLLIN, kEndMax)) ::kill(-daemon_.pid, SIGKILL);
    int status = 0;
    ::waitpid(daemon_.pid, &status, 0);
    return 0;
  }

  Channel channel_;
  Daemon daemon_;
  bool has_caller_ = true;
  bool was_told_ = false;  // to end, or whatever its caller's signals mean
};

int ServeCall(int descriptor, const std::string& secret) {
  Result<Channel> channel = Channel::Open(descriptor, secret, /*is_server=*/true);
  Frame frame;
  if (!channel || !channel->Await(frame, kFirstFrameMax) || frame.kind != FrameKind::kCommand) {
    Say("somebody called who is not of this job, or did not say what he wanted");
    return 0;
  }
  const Result<Daemon> daemon = StartDaemon(frame.bytes);
  if (!daemon) {
    channel->Send(FrameKind::kErrors, "aimaster-mpi: " + daemon.error().message + "\n");
    channel->Send(FrameKind::kExit, std::to_string(126 << 8));
    return 0;
  }
  return Call(*std::move(channel), *daemon).Run();
}

// ---- the station ----

class Station {
 public:
  Station(int listener, std::string secret) : listener_(listener), secret_(std::move(secret)) {}

  int Run() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    const int children = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    while (true) {
      pollfd waited[] = {{.fd = calls_ < kCallsMax ? listener_ : -1, .events = POLLIN, .revents = 0},
                         {.fd = children, .events = POLLIN, .revents = 0}};
      ::poll(waited, std::size(waited), -1);
      signalfd_siginfo told{};
      while (::read(children, &told, sizeof told) == static_cast<ssize_t>(sizeof told)) continue;
      if (const std::optional<int> code = Reap()) return *code;
      if ((waited[0].revents & POLLIN) != 0) Accept();
    }
  }

 private:
  std::optional<int> Reap() {
    int status = 0;
    while (::waitpid(-1, &status, WNOHANG) > 0) {
      --calls_;
      if (WIFEXITED(status) && WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
    }
    return std::nullopt;
  }

  void Accept() {
    const int descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0) return;
    const pid_t station = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != station) std::_Exit(0);
      ::close(listener_);
      std::_Exit(ServeCall(descriptor, secret_));
    }
    ::close(descriptor);
    if (pid < 0) Say(std::string("cannot create a process for a call: ") + std::strerror(errno));
    calls_ += pid > 0;
  }

  const int listener_;
  const std::string secret_;
  int calls_ = 0;
};

Result<int> Listen(const StationOptions& options) {
  const Result<Endpoint> endpoint = Resolve(options.address, options.port);
  if (!endpoint) return std::unexpected(endpoint.error());
  const int listener = ::socket(endpoint->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  if (listener >= 0 && ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
      ::bind(listener, reinterpret_cast<const sockaddr*>(&endpoint->address), endpoint->size) == 0 &&
      ::listen(listener, SOMAXCONN) == 0) {
    return listener;
  }
  return Fail(ErrorKind::kEnvironment, "cannot listen on " + options.address + " port " + std::to_string(options.port) +
                                           ": " + std::strerror(errno));
}

}  // namespace

StationOptions FindStation() {
  StationOptions options{.address = Variable("AIMASTER_MPI_ADDRESS"),
                         .token_file = Variable("AIMASTER_MPI_TOKEN_FILE")};
  const std::string port = Variable("AIMASTER_MPI_PORT");
  std::from_chars(port.data(), port.data() + port.size(), options.port);
  return options;
}

int RunStation(const StationOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  // A worker is ready when it has said something, as any rank is.
  if (options.address.empty()) {
    std::puts("nothing is started by this worker: mpirun starts its ranks on this host itself, or by another worker");
    std::fflush(stdout);
    while (true) ::pause();
  }
  const Result<std::string> secret = ReadSecret(options.token_file);
  const Result<int> listener = secret ? Listen(options) : std::unexpected(secret.error());
  if (!listener) {
    Say(listener.error().message);
    return 1;
  }
  std::printf("waiting on %s port %u for what mpirun starts here\n", options.address.c_str(), options.port);
  std::fflush(stdout);
  return Station(*listener, *secret).Run();
}

}  // namespace aimaster::mpi
