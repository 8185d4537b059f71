#include "agent/stack_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <expected>
#include <utility>

#include "agent/descriptor_limit.h"
#include "agent/stack_capture.h"
#include "agent/stack_limits.h"
#include "agent/stack_processes.h"

namespace aimaster::agent {
namespace {

constexpr size_t kChunkBytes = 64 << 10;
constexpr size_t kAnswerMaxBytes = stacks::kNodeDocumentMaxBytes + 4096;

struct Pipe {
  int read = -1, write = -1;
};

bool Open(Pipe& pipe) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  pipe = {ends[0], ends[1]};
  return true;
}

std::expected<pid_t, int> Spawn(const std::string& program, int input, int output) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  OriginalDescriptorLimit::FreeDescriptor(files);
  ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string name = "aimaster-agent", option = kStackHelperOption;
  char* const arguments[] = {name.data(), option.data(), nullptr};
  pid_t pid = 0;
  int error = 0;
  {
    const OriginalDescriptorLimit limit;
    error = ::posix_spawn(&pid, program.c_str(), &files, &attributes, arguments, environ);
  }
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return std::unexpected(error);
  return pid;
}

}  // namespace

struct StackHelper::Talk {
  explicit Talk(boost::asio::io_context& io) : input(io), output(io) {}

  boost::asio::posix::stream_descriptor input, output;  // of the helper
  std::string order, answer;
  std::array<char, kChunkBytes> chunk;
  uint32_t capture = 0;
  ProcessIdentity helper;
  std::vector<StackTarget> targets;
  std::vector<ProcessIdentity> stopped_before;
  Done done;
};

StackHelper::StackHelper(boost::asio::io_context& io) : io_(io), deadline_(io), release_timer_(io) {}

StackHelper::~StackHelper() {
  Stop();
  while (release_ && !release_->Look(StackRelease::Clock::now())) {
    ::poll(nullptr, 0, static_cast<int>(kReleaseLookEvery.count()));
  }
}

void StackHelper::Start(std::string program, StackOrder order, Done done) {
  Stop();
  // Who is still held by a dead tool would be taken for one that was stopped before.
  if (release_) {
    waiting_ = {std::move(program), std::move(order), std::move(done)};
    return;
  }
  Begin(program, std::move(order), std::move(done));
}

bool StackHelper::IsTaking(uint32_t capture) const {
  return (talk_ != nullptr && talk_->capture == capture) || (waiting_ && waiting_->order.capture == capture);
}

void StackHelper::Begin(const std::string& program, StackOrder order, Done done) {
  talk_ = std::make_shared<Talk>(io_);
  const std::shared_ptr<Talk> talk = talk_;
  talk->done = std::move(done);
  talk->capture = order.capture;
  talk->order = FormatStackOrder(order);
  talk->stopped_before = StoppedProcesses(order.targets);
  Pipe to, from;
  const bool is_open = Open(to) && Open(from);
  std::expected<pid_t, int> pid = std::unexpected(EMFILE);
  if (is_open) pid = Spawn(program, to.read, from.write);
  for (const int fd : {to.read, from.write}) {
    if (fd >= 0) ::close(fd);
  }
  if (to.write >= 0) talk->input.assign(to.write);
  if (from.read >= 0) talk->output.assign(from.read);
  if (!pid) {
    return End(talk, Fail(ErrorKind::kEnvironment, std::string("the process that takes stacks could not be started: ") +
                                                       std::strerror(pid.error())));
  }
  const auto stat = ReadStat(*pid);
  talk->helper = {*pid, stat ? stat->start_ticks : 0};
  talk->targets = std::move(order.targets);
  boost::asio::async_write(talk->input, boost::asio::buffer(talk->order), [talk](boost::system::error_code, size_t) {
    boost::system::error_code ignored;
    talk->input.close(ignored);
  });
  ReadOn(talk);
  deadline_.After(order.timeout + kHelperSlack, [this, talk] {
    End(talk, Fail(ErrorKind::kEnvironment, "taking stacks did not end within its time, and was ended"));
  });
}

void StackHelper::ReadOn(const std::shared_ptr<Talk>& talk) {
  talk->output.async_read_some(boost::asio::buffer(talk->chunk), [this, weak = std::weak_ptr(talk)](
                                                                     boost::system::error_code error, size_t got) {
    const std::shared_ptr<Talk> same = weak.lock();
    if (same == nullptr || same != talk_) return;
    if (!error) {
      same->answer.append(same->chunk.data(), got);
      if (same->answer.size() <= kAnswerMaxBytes) return ReadOn(same);
    }
    const bool is_whole = error == boost::asio::error::eof && same->answer.ends_with("}\n");
    if (is_whole) return End(same, std::move(same->answer));
    End(same, Fail(ErrorKind::kEnvironment, "the process that takes stacks ended without an answer"));
  });
}

void StackHelper::End(std::shared_ptr<Talk> talk, Result<std::string> document) {
  if (talk != talk_) return;
  talk_.reset();
  deadline_.Cancel();
  if (!document && talk->helper.pid != 0) {
    release_.emplace(talk->helper, talk->targets, talk->stopped_before);
    Release();
  }
  if (talk->done) talk->done(std::move(document));
}

void StackHelper::Release() {
  if (!release_->Look(StackRelease::Clock::now()))
    return release_timer_.After(kReleaseLookEvery, [this] { Release(); });
  release_.reset();
  if (!waiting_) return;
  Waiting next = *std::exchange(waiting_, std::nullopt);
  Begin(next.program, std::move(next.order), std::move(next.done));
}

void StackHelper::Stop() {
  waiting_.reset();
  if (talk_ == nullptr) return;
  talk_->done = nullptr;
  End(talk_, Fail(ErrorKind::kEnvironment, ""));
}

}  // namespace aimaster::agent
