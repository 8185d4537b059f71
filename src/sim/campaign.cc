#include "sim/campaign.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "sim/seed_run.h"

namespace aimaster::sim {
namespace {

constexpr uint64_t kTwiceEvery = 16;  // seeds of which the second run is compared with the first

// What a worker says of a seed; written in one piece, since it is shorter than what a pipe keeps together.
struct Record {
  uint64_t seed;
  uint64_t events;
  bool found;
  char checker[32];
  char what[400];
};
static_assert(sizeof(Record) <= 512);

void Copy(const std::string& text, char* to, size_t capacity) {
  const size_t size = std::min(text.size(), capacity - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options) : options_(options) {
    void* shared =
        ::mmap(nullptr, sizeof(size_t) * options.jobs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || ::pipe(pipe_) != 0) std::abort();
    at_ = static_cast<volatile size_t*>(shared);
    workers_.resize(options.jobs);
  }

  CampaignResult Run() {
    for (unsigned worker = 0; worker < options_.jobs; ++worker) Start(worker, worker);
    while (running_ > 0) {
      pollfd event{.fd = pipe_[0], .events = POLLIN, .revents = 0};
      const bool readable = ::poll(&event, 1, 200) == 1;
      if (readable) {
        Record record;
        if (::read(pipe_[0], &record, sizeof record) == static_cast<ssize_t>(sizeof record)) Take(record);
      } else {
        ReapWorkers();
      }
    }
    std::ranges::sort(result_.findings, {}, &Finding::seed);
    return std::move(result_);
  }

 private:
  void Start(unsigned worker, size_t first) {
    std::fflush(stdout);
    const pid_t pid = ::fork();
    if (pid < 0) std::abort();
    if (pid == 0) Work(worker, first);
    workers_[worker] = pid;
    ++running_;
  }

  [[noreturn]] void Work(unsigned worker, size_t first) {
    for (size_t i = first; i < options_.seeds.size(); i += options_.jobs) {
      at_[worker] = i;
      const uint64_t seed = options_.seeds[i];
      const bool twice =
          options_.broken == Break::kOtherChance || (options_.broken == Break::kNone && seed % kTwiceEvery == 0);
      const Verdict verdict = twice ? RunSeedTwice(seed, options_.broken) : RunSeed(seed, options_.broken, false);
      Record record{};
      record.seed = seed;
      record.events = verdict.events;
      record.found = verdict.violation.has_value();
      if (verdict.violation) {
        Copy(verdict.violation->checker, record.checker, sizeof record.checker);
        Copy(verdict.violation->what, record.what, sizeof record.what);
      }
      if (::write(pipe_[1], &record, sizeof record) != static_cast<ssize_t>(sizeof record)) ::_exit(1);
    }
    ::_exit(0);
  }

  void Take(const Record& record) {
    ++result_.seeds_run;
    result_.events += record.events;
    if (record.found) Found({record.seed, record.checker, record.what});
    if (options_.on_progress) options_.on_progress(result_.seeds_run, result_.findings.size());
  }

  void Found(Finding finding) {
    result_.findings.push_back(std::move(finding));
    if (!options_.stop_at_first) return;
    for (const pid_t pid : workers_) {
      if (pid > 0) ::kill(pid, SIGKILL);
    }
    stopping_ = true;
  }

  void ReapWorkers() {
    for (unsigned worker = 0; worker < options_.jobs; ++worker) {
      int status = 0;
      if (workers_[worker] <= 0 || ::waitpid(workers_[worker], &status, WNOHANG) != workers_[worker]) continue;
      workers_[worker] = 0;
      --running_;
      if (stopping_ || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) continue;
      const size_t at = at_[worker];
      ++result_.seeds_run;
      Found({options_.seeds[at], "check",
             WIFSIGNALED(status)
                 ? "the program ended with signal " + std::to_string(WTERMSIG(status)) + ", a CHECK failed"
                 : "the program ended with code " + std::to_string(WEXITSTATUS(status))});
      if (!stopping_ && at + options_.jobs < options_.seeds.size()) Start(worker, at + options_.jobs);
    }
  }

  const CampaignOptions& options_;
  CampaignResult result_;
  int pipe_[2] = {-1, -1};
  volatile size_t* at_ = nullptr;
  std::vector<pid_t> workers_;
  unsigned running_ = 0;
  bool stopping_ = false;
};

}  // namespace

CampaignResult RunCampaign(const CampaignOptions& options) { return Campaign(options).Run(); }

}  // namespace aimaster::sim
