#include "master/notifier.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "core/argv.h"
#include "core/overloaded.h"
#include "core/quote.h"
#include "notify/plan.h"
#include "notify/talk.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kAgainFirst = 1s, kAgainMost = 60s;
constexpr std::chrono::seconds kHealthyLife = 60s;      // who lived this long is started again soon
constexpr std::chrono::milliseconds kDrainMargin = 3s;  // beyond what the courier allows itself

struct Pipe {
  int read = -1, write = -1;
  bool Open() {
    std::array<int, 2> ends{-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  void Close() {
    for (int* end : {&read, &write}) {
      if (*end >= 0) close(std::exchange(*end, -1));
    }
  }
};

// 0 and the process, or an errno.
int SpawnWithPipes(std::vector<std::string> words, const Pipe& in, const Pipe& out, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, in.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const std::vector<char*> argv = ArgvOf(words);
  const int failed = posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return failed;
}

}  // namespace

bool Notifier::IsWanted(const JobDirectory& job_directory) {
  return access(job_directory.notify_plan().c_str(), F_OK) == 0;
}

Notifier::Notifier(boost::asio::io_context& io, Options options, Callbacks callbacks)
    : io_(io),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      again_(io),
      drain_(io),
      drain_most_(notify::kDrainMost) {}

// Not waited for: whoever looks after this process collects what it leaves. It ends its commands first, so no SIGKILL.
Notifier::~Notifier() {
  if (!life_) return;
  kill(life_->pid, SIGTERM);
  kill(life_->pid, SIGCONT);
}

void Notifier::Start() {
  // What it allows itself is asked here too, since it may not come so far as to say so.
  if (const Result<notify::Plan> plan = notify::ReadPlan(options_.job_directory)) drain_most_ = plan->drain;
  Spawn();
}

void Notifier::Spawn() {
  Pipe in, out;
  pid_t pid = -1;
  int failed = in.Open() && out.Open() ? 0 : errno;
  if (failed == 0) {
    failed = SpawnWithPipes({options_.program, "serve", options_.job_directory.path(), std::to_string(getpid())}, in,
                            out, pid);
  }
  started_ = std::chrono::steady_clock::now();
  const int pidfd = failed == 0 ? static_cast<int>(syscall(SYS_pidfd_open, pid, 0)) : -1;
  if (failed == 0 && pidfd < 0) {
    failed = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  if (failed != 0) {
    in.Close();
    out.Close();
    callbacks_.on_log("notifications: cannot start " + Quoted(options_.program.string()) + ": " +
                      std::strerror(failed));
    return StartAgain();
  }
  close(std::exchange(in.read, -1));
  close(std::exchange(out.write, -1));
  life_ = std::make_shared<Life>(io_);
  life_->pid = pid;
  life_->pidfd.assign(pidfd);
  life_->input.assign(in.write);
  life_->output.assign(out.read);
  Read(life_);
  life_->pidfd.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this, life = life_](auto error) {
    if (error || life != life_) return;
    life->has_ended = true;
    OnEnd();
  });
  if (done_) Say(notify::kDrain);
}

void Notifier::Look() { Say(notify::kLook); }

void Notifier::Marked(const std::string& sink) { Say(std::string(notify::kMarked) + sink + "\n"); }

void Notifier::Say(std::string_view line) {
  if (!life_) return;
  // One look is as good as many.
  if (line == notify::kLook && life_->to_say.ends_with(line)) return;
  life_->to_say += line;
  Write(life_);
}

void Notifier::Write(const std::shared_ptr<Life>& life) {
  if (life->is_writing || life->to_say.empty()) return;
  life->is_writing = true;
  auto text = std::make_shared<std::string>(std::exchange(life->to_say, {}));
  boost::asio::async_write(life->input, boost::asio::buffer(*text), [this, life, text](auto error, size_t) {
    life->is_writing = false;
    if (!error && life == life_) Write(life);  // its end is noticed where it is read
  });
}

void Notifier::Read(const std::shared_ptr<Life>& life) {
  auto buffer = std::make_shared<std::array<char, 8192>>();
  life->output.async_read_some(boost::asio::buffer(*buffer), [this, life, buffer](auto error, size_t size) {
    if (error == boost::asio::error::operation_aborted || life != life_) return;
    if (error) {
      life->has_said_all = true;
      return OnEnd();
    }
    life->heard.append(buffer->data(), size);
    for (size_t end; (end = life->heard.find('\n')) != std::string::npos; life->heard.erase(0, end + 1)) {
      Hear(std::string_view(life->heard).substr(0, end));
    }
    if (life->heard.size() > notify::kTalkLineMaxBytes) kill(life->pid, SIGKILL);  // it is out of its mind
    Read(life);
  });
}

void Notifier::Hear(std::string_view line) {
  std::optional<notify::CourierSays> says = notify::DecodeCourierSays(line);
  if (!says) return callbacks_.on_log("notifications: the courier said something odd: " + Quoted(line));
  std::visit(Overloaded{[this](notify::CourierReady& ready) { drain_most_ = ready.drain; },
                        [this](notify::CourierLog& log) { callbacks_.on_log("notifications: " + log.line); },
                        [this](OutboxMark& mark) { callbacks_.on_mark(std::move(mark)); }},
             *says);
}

// When it has died, and all that it said has been heard.
void Notifier::OnEnd() {
  if (!life_->has_ended || !life_->has_said_all) return;
  int status = 0;
  waitpid(life_->pid, &status, WNOHANG);
  life_.reset();
  if (done_ && WIFEXITED(status)) return Finish();
  if (WIFEXITED(status) && WEXITSTATUS(status) == notify::kExitNoPlan) {
    is_down_ = true;  // it has said why
    return;
  }
  callbacks_.on_log(std::string("notifications: the courier has ended, ") +
                    (WIFSIGNALED(status) ? "killed by signal " + std::to_string(WTERMSIG(status))
                                         : "exit code " + std::to_string(WEXITSTATUS(status))) +
                    "; it is started again");
  StartAgain();
}

void Notifier::StartAgain() {
  const bool was_healthy = std::chrono::steady_clock::now() - started_ > kHealthyLife;
  backoff_ = was_healthy ? kAgainFirst : std::clamp(backoff_ * 2, kAgainFirst, kAgainMost);
  again_.expires_after(backoff_);
  again_.async_wait([this](auto error) {
    if (!error) Spawn();
  });
}

// ---- the end ----

void Notifier::Drain(std::function<void()> done) {
  if (done_) return;
  done_ = std::move(done);
  if (is_down_) return Finish();
  drain_.expires_after(drain_most_ + kDrainMargin);
  drain_.async_wait([this](auto error) {
    if (!error) Finish();
  });
  Say(notify::kDrain);
}

void Notifier::Finish() {
  again_.cancel();
  drain_.cancel();
  if (done_) boost::asio::post(io_, std::exchange(done_, nullptr));
}

}  // namespace aimaster
