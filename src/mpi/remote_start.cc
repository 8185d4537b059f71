#include "mpi/remote_start.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

#include "core/quote.h"
#include "mpi/channel.h"
#include "mpi/environment.h"
#include "mpi/limits.h"

namespace aimaster::mpi {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kExitCannotReach = 255;
constexpr int kPassedOn[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

std::string HostName() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// A connected socket that does not block, or an errno.
std::expected<int, int> Connect(const Endpoint& endpoint) {
  const int descriptor = ::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return std::unexpected(errno);
  int error = 0;
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size) != 0) error = errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof error;
    const bool answered = WaitFor(descriptor, POLLOUT, kReachTryMax);
    if (!answered) error = ETIMEDOUT;
    if (answered && ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  }
  if (error == 0) {
    const int yes = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    return descriptor;
  }
  ::close(descriptor);
  return std::unexpected(error);
}

// Its station may still be starting.
Result<Channel> Reach(const std::string& host, const Hosts& hosts, const std::string& secret) {
  const Result<Endpoint> endpoint = Resolve(host, hosts.port);
  if (!endpoint) return std::unexpected(endpoint.error());
  const auto until = Clock::now() + kReachMax;
  auto pause = std::chrono::milliseconds(kReachPauseFirst);
  while (true) {
    const auto descriptor = Connect(*endpoint);
    if (descriptor) return Channel::Open(*descriptor, secret, /*is_server=*/false);
    if (Clock::now() + pause > until) {
      return Fail(ErrorKind::kEnvironment, "cannot reach the worker on " + host + " at port " +
                                               std::to_string(hosts.port) + ": " + std::strerror(descriptor.error()));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::milliseconds>(pause * 2, kReachPauseMax);
  }
}

int CatchSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : kPassedOn) ::sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void Show(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // nobody listens to it any more
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

int ExitCodeOf(std::string_view status_text) {
  int status = 0;
  std::from_chars(status_text.data(), status_text.data() + status_text.size(), status);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Until the daemon has ended; nothing when the connection has.
std::optional<int> Relay(Channel& channel, int signals) {
  while (true) {
    Frame frame;
    Channel::Got got = Channel::Got::kFrame;
    while ((got = channel.Receive(frame)) == Channel::Got::kFrame) {
      if (frame.kind == FrameKind::kExit) return ExitCodeOf(frame.bytes);
      if (frame.kind == FrameKind::kOutput) Show(STDOUT_FILENO, frame.bytes);
      if (frame.kind == FrameKind::kErrors) Show(STDERR_FILENO, frame.bytes);
    }
    if (got == Channel::Got::kEnd) return std::nullopt;
    pollfd waited[] = {{.fd = channel.descriptor(), .events = POLLIN, .revents = 0},
                       {.fd = signals, .events = POLLIN, .revents = 0}};
    ::poll(waited, std::size(waited), -1);
    signalfd_siginfo told{};
    while (::read(signals, &told, sizeof told) == static_cast<ssize_t>(sizeof told)) {
      channel.Send(FrameKind::kSignal, std::to_string(told.ssi_signo));
    }
  }
}

std::string NamesOf(const Hosts& hosts) {
  std::string names = hosts.own.empty() ? "this one" : hosts.own;
  for (const std::string& station : hosts.stations) names += ", " + station;
  return names;
}

// The exit code of the daemon, as a shell says it.
Result<int> CallStation(const std::string& host, const std::string& command, const Hosts& hosts) {
  if (std::ranges::find(hosts.stations, host) == hosts.stations.end()) {
    return Fail(ErrorKind::kUsage, Quoted(host) + " is no host of this job, which has " + NamesOf(hosts) +
                                       "; leave hosts and host files to AIMaster, or give it more --workers");
  }
  const int signals = CatchSignals();
  const Result<std::string> secret = ReadSecret(hosts.token_file);
  if (!secret) return std::unexpected(secret.error());
  Result<Channel> channel = Reach(host, hosts, *secret);
  if (!channel) return std::unexpected(channel.error());
  const bool is_sent = channel->Send(FrameKind::kCommand, command);
  if (const std::optional<int> code = is_sent ? Relay(*channel, signals) : std::nullopt) return *code;
  return Fail(ErrorKind::kEnvironment, "the connection to the worker on " + host + " was lost" +
                                           (channel->failure().empty() ? "" : ": " + channel->failure()));
}

}  // namespace

Hosts FindHosts() {
  Hosts hosts{.own = Variable("MASTER_ADDR"), .stations = {}, .token_file = Variable("AIMASTER_MPI_TOKEN_FILE")};
  std::istringstream stations(Variable("AIMASTER_MPI_STATIONS"));
  for (std::string station; stations >> station;) hosts.stations.push_back(station);
  const std::string port = Variable("AIMASTER_MPI_PORT");
  std::from_chars(port.data(), port.data() + port.size(), hosts.port);
  return hosts;
}

bool IsThisMachine(const std::string& host, const Hosts& hosts) {
  if (std::ranges::find(hosts.stations, host) != hosts.stations.end()) return false;
  return host == "localhost" || host == "::1" || host.starts_with("127.") || host == hosts.own || host == HostName();
}

int StartRemotely(const std::string& host, const std::string& command, const Hosts& hosts) {
  const pid_t mpirun = ::getppid();
  const Result<int> code = CallStation(host, command, hosts);
  if (code) return *code;
  std::fprintf(stderr, "aimaster-mpi: %s\n", code.error().message.c_str());
  // MPICH's would wait for ever for a proxy that never came. Where it is gone itself, our parent is the shim.
  if (command.find("hydra_") != std::string::npos && ::getppid() == mpirun) ::kill(mpirun, SIGTERM);
  return kExitCannotReach;
}

}  // namespace aimaster::mpi
