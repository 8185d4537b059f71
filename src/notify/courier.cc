#include "notify/courier.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/clocks.h"
#include "core/count.h"
#include "core/quote.h"
#include "journal/files.h"
#include "journal/job_directory.h"
#include "journal/job_reader.h"
#include "notify/message_reader.h"
#include "notify/plan.h"
#include "notify/sender.h"
#include "notify/sink_queue.h"
#include "notify/talk.h"

namespace aimaster::notify {
namespace {

constexpr milliseconds kLookAnyway{2000};  // should nobody say that there is something to see
constexpr milliseconds kLookAgain{200};    // after a journal that could not be read
constexpr milliseconds kPassPace{60'000};  // each sink's bookmark is a write
constexpr int64_t kEventsPerLook = 1000;

bool Say(const CourierSays& says) { return WriteAll(STDOUT_FILENO, Encode(says)); }

void Log(const std::string& line) { Say(CourierLog{line}); }

class Courier {
 public:
  Courier(const JobDirectory& directory, const JobSpec& spec, const Plan& plan)
      : directory_(directory), spec_(spec), plan_(plan), messages_(directory, spec) {}

  int Run() {
    Say(CourierReady{plan_.drain});
    while (!is_over_) {
      ReadEvents();
      SendWhatMayGo();
      const bool is_done = drain_until_ && IsDone();
      if (is_done || std::chrono::steady_clock::now() >= pass_again_) TellPassed();
      if (is_done) break;
      Wait();
      HearMaster();
      for (const auto& [sink, outcome] : sender_.Perform()) OnOutcome(*lines_[sink], outcome, sink);
    }
    return 0;
  }

 private:
  // One sink and what waits for it.
  struct Line {
    const Sink* sink = nullptr;
    SinkQueue queue;
    std::string trouble;  // what was told last
  };

  // ---- the journal ----

  bool Open() {
    if (reader_) return true;
    Result<JobReader> reader = JobReader::Open(directory_);
    if (!reader) return false;
    reader_.emplace(std::move(*reader));
    return true;
  }

  // Where each sink stands, when it is looked at for the first time. The master marks only what we have told it, so
  // afterwards we know by ourselves.
  bool ReadPositions() {
    if (!lines_.empty()) return true;
    const Result<std::vector<SinkProgress>> outbox = reader_->ReadOutbox();
    if (!outbox) return false;
    auto random = std::make_shared<std::mt19937_64>(std::random_device{}());
    const auto jitter = [random] { return std::uniform_real_distribution<double>(0, 1)(*random); };
    read_ = INT64_MAX;
    for (const Sink& sink : plan_.sinks) {
      const auto known = std::ranges::find(*outbox, sink.name, &SinkProgress::sink);
      positions_.push_back(known == outbox->end() ? 0 : known->position);
      read_ = std::min(read_, positions_.back());
      lines_.push_back(
          std::make_unique<Line>(Line{&sink, SinkQueue(sink, jitter), known == outbox->end() ? "" : known->trouble}));
    }
    return true;
  }

  void ReadEvents() {
    if (!is_to_look_ && std::chrono::steady_clock::now() < look_again_) return;
    is_to_look_ = false;
    look_again_ = std::chrono::steady_clock::now() + kLookAnyway;
    const Result<std::vector<NumberedEvent>> events =
        Open() && ReadPositions() && reader_->DataVersion()
            ? reader_->ReadEventsAfter(read_, kEventsPerLook)
            : Fail(ErrorKind::kEnvironment, "the journal can't be read at this moment");
    has_read_all_ = events && static_cast<int64_t>(events->size()) < kEventsPerLook;
    if (events && !has_read_all_) look_again_ = {};
    if (!events) {
      reader_.reset();
      look_again_ = std::chrono::steady_clock::now() + kLookAgain;
      return;
    }
    for (const NumberedEvent& event : *events) {
      for (size_t i = 0; i < lines_.size(); ++i) {
        if (event.number > positions_[i] && Wants(plan_, lines_[i]->sink->name, event.event.type, spec_.name)) {
          lines_[i]->queue.Add(event);
        }
      }
      read_ = event.number;
    }
  }

  // What was not for a sink is behind it too, or each of our successors would read it all again.
  void TellPassed() {
    pass_again_ = std::chrono::steady_clock::now() + kPassPace;
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (!lines_[i]->queue.is_idle() || positions_[i] >= read_) continue;
      positions_[i] = read_;
      Say(OutboxMark{.kind = OutboxMark::Kind::kPassed,
                     .sink = lines_[i]->sink->name,
                     .position = read_,
                     .events = 0,
                     .answer = "",
                     .at = {}});
    }
  }

  // ---- sending ----

  void SendWhatMayGo() {
    for (size_t i = 0; i < lines_.size(); ++i) {
      const Batch* batch = lines_[i]->queue.Take(MonotonicNow());
      if (batch != nullptr) sender_.Start(i, *lines_[i]->sink, Write(*batch), WallNow());
    }
  }

  Letter Write(const Batch& batch) {
    Letter letter{.message = reader_ ? messages_.Read(*reader_, batch.event) : MessageOf(spec_, batch.event),
                  .first = batch.first,
                  .last = batch.last,
                  .more = batch.count - 1,
                  .kinds = batch.kinds};
    return letter;
  }

  void OnOutcome(Line& line, const Outcome& outcome, size_t index) {
    const std::string name = "sink " + Quoted(line.sink->name);
    OutboxMark mark{.kind = OutboxMark::Kind::kDelivered,
                    .sink = line.sink->name,
                    .position = 0,
                    .events = 0,
                    .answer = outcome.answer,
                    .at = {}};
    if (outcome.delivered) {
      line.queue.OnDelivered();
      if (!line.trouble.empty()) Log(name + " takes messages again");
      line.trouble.clear();
    } else if (line.queue.OnFailed(MonotonicNow(), outcome) == SinkQueue::Failure::kTriedAgain) {
      // Once for each reason: a sink that is away for an hour is tried many times.
      if (line.trouble == outcome.answer) return;
      line.trouble = outcome.answer;
      Log(name + " at " + PlaceOf(*line.sink) + " did not take a message: " + outcome.answer + "; tried again in " +
          FormatDuration(line.queue.next_try_in(MonotonicNow())) + ", " + Count(line.queue.waiting(), "event") +
          " waiting");
      mark.kind = OutboxMark::Kind::kTrouble;
      Say(mark);
      return;
    } else {
      line.trouble = outcome.answer;
      Log(name + " at " + PlaceOf(*line.sink) + ": giving up " + Count(line.queue.done().count, "event") + " after " +
          std::to_string(line.queue.tries()) + (line.queue.tries() == 1 ? " try: " : " tries: ") + outcome.answer);
      mark.kind = OutboxMark::Kind::kGaveUp;
    }
    mark.position = line.queue.done().last;
    mark.events = static_cast<int64_t>(line.queue.done().count);
    positions_[index] = mark.position;
    if (!Say(mark)) is_over_ = true;
  }

  // ---- the master ----

  void Wait() {
    milliseconds at_most = std::chrono::ceil<milliseconds>(look_again_ - std::chrono::steady_clock::now());
    const Monotonic now = MonotonicNow();
    for (const auto& line : lines_) {
      const std::optional<Monotonic> deadline = line->queue.NextDeadline(now);
      if (deadline) at_most = std::min(at_most, std::chrono::ceil<milliseconds>(*deadline - now));
    }
    if (drain_until_) {
      at_most = std::min(at_most, std::chrono::ceil<milliseconds>(*drain_until_ - std::chrono::steady_clock::now()));
    }
    pollfd master{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    sender_.Wait({&master, 1}, std::max(at_most, milliseconds(0)));
  }

  void HearMaster() {
    std::array<char, 4096> buffer{};
    while (true) {
      const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) break;  // nothing more for now
      if (got == 0) {
        is_over_ = true;
        return;
      }
      heard_.append(buffer.data(), static_cast<size_t>(got));
    }
    for (size_t end; (end = heard_.find('\n')) != std::string::npos; heard_.erase(0, end + 1)) {
      Obey(std::string_view(heard_).substr(0, end + 1));
    }
  }

  void Obey(std::string_view line) {
    if (line == kLook) {
      is_to_look_ = true;
    } else if (line == kDrain) {
      is_to_look_ = true;
      has_read_all_ = false;
      drain_until_ = std::chrono::steady_clock::now() + plan_.drain;
    } else if (line.starts_with(kMarked)) {
      const std::string_view name = line.substr(kMarked.size(), line.size() - kMarked.size() - 1);
      const auto found = std::ranges::find_if(lines_, [&](const auto& each) { return each->sink->name == name; });
      if (found != lines_.end()) (*found)->queue.OnMarked();
    }
  }

  bool IsDone() {
    const bool all_sent =
        has_read_all_ && std::ranges::all_of(lines_, [](const auto& line) { return line->queue.is_idle(); });
    if (all_sent) return true;
    if (std::chrono::steady_clock::now() < *drain_until_) return false;
    for (const auto& line : lines_) {
      if (line->queue.waiting() == 0) continue;
      Log(Count(line->queue.waiting(), "event") + " not delivered to sink " + Quoted(line->sink->name) +
          (line->trouble.empty() ? "" : " (" + line->trouble + ")") + "; `aimaster resume " + spec_.id.text() +
          "` tries again");
    }
    return true;
  }

  const JobDirectory& directory_;
  const JobSpec& spec_;
  const Plan& plan_;
  const MessageReader messages_;
  std::optional<JobReader> reader_;
  Sender sender_;
  std::vector<std::unique_ptr<Line>> lines_;  // in the order of the plan's sinks
  std::vector<int64_t> positions_;            // of each: done with
  int64_t read_ = 0;                          // the last event that was looked at
  bool is_to_look_ = true, has_read_all_ = false, is_over_ = false;
  std::chrono::steady_clock::time_point look_again_{};
  std::chrono::steady_clock::time_point pass_again_ = std::chrono::steady_clock::now() + kPassPace;
  std::optional<std::chrono::steady_clock::time_point> drain_until_;
  std::string heard_;
};

}  // namespace

int ServeJob(const std::filesystem::path& job_directory) {
  fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
  const Result<JobDirectory> directory = JobDirectory::Open(job_directory);
  const Result<JobSpec> spec = directory ? directory->ReadSpec() : std::unexpected(directory.error());
  const Result<Plan> plan = spec ? ReadPlan(*directory) : std::unexpected(spec.error());
  if (!plan) {
    Log("no notifications: " + plan.error().message);
    return spec && plan.error().kind != ErrorKind::kEnvironment ? kExitNoPlan : 1;
  }
  return Courier(*directory, *spec, *plan).Run();
}

}  // namespace aimaster::notify
