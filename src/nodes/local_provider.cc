#include "nodes/local_provider.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstring>
#include <expected>

#include "nodes/detached_process.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;
using std::filesystem::path;

constexpr std::chrono::milliseconds kRestartFirst = 20ms, kRestartMax = 5s;
// What an agent's exit status says: trying again won't help; another agent serves this node.
constexpr int kPermanentFirst = 64, kPermanentLast = 78, kServedByAnother = 75;
constexpr std::chrono::seconds kHealthyLife = 30s;  // an agent that lived this long is started again at once

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

// The process that holds the agent's lock, or 0.
pid_t LockHolder(const path& lock_file) {
  const int fd = open(lock_file.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return 0;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool known = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(fd);
  return known ? lock.l_pid : 0;
}

}  // namespace

struct LocalProvider::Agent {
  explicit Agent(boost::asio::io_context& io) : pidfd(io), restart(io) {}
  bool wanted = true;
  pid_t pid = 0;
  boost::asio::posix::stream_descriptor pidfd;
  boost::asio::steady_timer restart;
  std::chrono::milliseconds backoff{0};
  std::chrono::steady_clock::time_point started;
};

LocalProvider::LocalProvider(boost::asio::io_context& io, Options options, Callbacks callbacks)
    : io_(io), options_(std::move(options)), callbacks_(std::move(callbacks)) {}

LocalProvider::~LocalProvider() = default;

std::string LocalProvider::NodeName(NodeIndex node, uint32_t nodes) {
  return nodes == 1 ? HostName() : "node-" + std::to_string(Value(node));
}

path LocalProvider::DirectoryOf(NodeIndex node) const {
  return options_.job_directory / "nodes" / NodeName(node, options_.nodes);
}

void LocalProvider::Acquire(const std::vector<NodeIndex>& nodes) {
  bool denied = false;
  for (const NodeIndex node : nodes) {
    if (Value(node) >= options_.nodes) {
      denied = true;
    } else if (!agents_.contains(node)) {
      agents_[node] = std::make_unique<Agent>(io_);
      Start(node);
    }
  }
  if (!denied) return;
  boost::asio::post(io_, [this] {
    callbacks_.on_denied("this machine pretends to be " + std::to_string(options_.nodes) +
                         (options_.nodes == 1 ? " node" : " nodes") + ", --local-nodes");
  });
}

void LocalProvider::Start(NodeIndex node) {
  Agent& agent = *agents_[node];
  const std::string name = NodeName(node, options_.nodes);
  const path directory = DirectoryOf(node);
  std::error_code ignored;  // the agent names the reason when it can't write there
  std::filesystem::create_directories(directory, ignored);
  agent.started = std::chrono::steady_clock::now();
  if (const pid_t holder = LockHolder(directory / "agent.lock"); holder > 0) {
    Watch(node, holder);
    return;
  }
  const std::expected<pid_t, int> pid = StartDetached({options_.agent_program, "--job-dir", options_.job_directory,
                                                       "--node", std::to_string(Value(node)), "--node-name", name},
                                                      directory / "agent.log");
  if (pid) {
    Watch(node, *pid);
  } else {
    // The node is not lost for it: ranks of a former agent may run on.
    callbacks_.on_trouble("cannot start " + options_.agent_program.string() + ": " + std::strerror(pid.error()) +
                          "; trying again");
    StartAgain(node);
  }
}

void LocalProvider::Watch(NodeIndex node, int pid) {
  Agent& agent = *agents_[node];
  agent.pid = pid;
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  boost::system::error_code error;
  if (agent.pidfd.is_open()) agent.pidfd.close(error);
  if (pidfd >= 0) agent.pidfd.assign(pidfd, error);
  if (pidfd < 0 || error) {
    OnExit(node);
    return;
  }
  fcntl(pidfd, F_SETFD, FD_CLOEXEC);
  agent.pidfd.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this, node](const boost::system::error_code& failed) {
                           if (failed != boost::asio::error::operation_aborted) OnExit(node);
                         });
}

void LocalProvider::OnExit(NodeIndex node) {
  Agent& agent = *agents_[node];
  int status = 0;
  const bool reaped = agent.pid > 0 && waitpid(agent.pid, &status, WNOHANG) == agent.pid;  // only a child can be
  agent.pid = 0;
  boost::system::error_code ignored;
  if (agent.pidfd.is_open()) agent.pidfd.close(ignored);
  if (!agent.wanted) return;
  // It will fare no better the next time, but is tried on: for a job that still waits for the node this is the answer,
  // and for one that runs, its ranks are better off with an agent that comes late than with none.
  const int code = reaped && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (code >= kPermanentFirst && code <= kPermanentLast && code != kServedByAnother) {
    callbacks_.on_denied("the agent of " + NodeName(node, options_.nodes) + " can't serve (exit code " +
                         std::to_string(code) + "); why is in " + (DirectoryOf(node) / "agent.log").string());
  }
  StartAgain(node);
}

// For as long as the node is wanted: at once after a good life, with growing pauses after short ones.
void LocalProvider::StartAgain(NodeIndex node) {
  Agent& agent = *agents_[node];
  const bool healthy = std::chrono::steady_clock::now() - agent.started > kHealthyLife;
  agent.backoff = healthy || agent.backoff == 0ms ? kRestartFirst : std::min(agent.backoff * 2, kRestartMax);
  agent.restart.expires_after(agent.backoff);
  agent.restart.async_wait([this, node](const boost::system::error_code& error) {
    if (!error && agents_[node]->wanted) Start(node);
  });
}

void LocalProvider::Release(NodeIndex node) {
  if (const auto found = agents_.find(node); found != agents_.end()) found->second->wanted = false;
}

void LocalProvider::Dismiss() {
  for (auto& [node, agent] : agents_) {
    agent->wanted = false;
    if (agent->pidfd.is_open()) syscall(SYS_pidfd_send_signal, agent->pidfd.native_handle(), SIGTERM, nullptr, 0);
  }
}

// Later jobs on the same machine would land on the same hardware whatever we did: isolation is the engine's placement.
void LocalProvider::Isolate(NodeIndex, const std::string&) {}

// The machine is alive, since we run on it; so it is the agent that is stuck. Its ranks outlive it.
void LocalProvider::Recover(NodeIndex node, const std::string&) {
  const auto found = agents_.find(node);
  if (found == agents_.end() || found->second->pid <= 0 || !found->second->pidfd.is_open()) return;
  syscall(SYS_pidfd_send_signal, found->second->pidfd.native_handle(), SIGKILL, nullptr, 0);
}

}  // namespace aimaster
