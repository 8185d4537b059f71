#include "cli/follower.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/directory_watch.h"
#include "cli/job_care.h"
#include "cli/job_texts.h"
#include "cli/last_words.h"
#include "cli/launch_master.h"
#include "cli/log_input.h"
#include "cli/master_call.h"
#include "cli/rank_tee.h"
#include "cli/report.h"
#include "cli/screen.h"
#include "cli/text.h"
#include "cli/trouble_watch.h"
#include "core/count.h"
#include "journal/job_json.h"
#include "journal/job_reader.h"

namespace aimaster::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLookAgain{100};       // when nothing wakes us
constexpr milliseconds kLookAgainSoon{10};    // while ranks print
constexpr milliseconds kSnapshotEvery{250};   // for the live line; a job of ten thousand instances is some work to read
constexpr milliseconds kUnattendedMax{1000};  // a supervisor may just be being replaced by `aimaster resume`
constexpr milliseconds kFarewellMax{5000};    // for the master and its agents to leave after the end
constexpr milliseconds kStopAtOnceMax{5000};  // then whoever has said so twice may go
constexpr milliseconds kAskMax{200};          // for the master to answer a question
constexpr uint64_t kLinesForLateComers = 10;

Wall Now() { return {std::chrono::system_clock::now().time_since_epoch()}; }

std::string SignalName(int number) {
  switch (number) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "SIGUSR2";
  }
}

TeeSelection Select(Tee tee, const JobSpec& spec) {
  TeeSelection selection;
  selection.none = tee == Tee::kNone;
  selection.with_prefixes = tee == Tee::kAll;
  if (tee != Tee::kRank0) return selection;
  selection.rank = 0;
  if (!spec.roles.empty()) selection.instance = InstanceName(spec.id, spec.roles.front().role, 0);
  return selection;
}

class Follower {
 public:
  Follower(const JobDirectory& directory, const JobSpec& spec, Interrupts& interrupts, FollowOptions options)
      : directory_(directory),
        spec_(spec),
        interrupts_(interrupts),
        options_(std::move(options)),
        tee_(directory.path(), Select(options_.tee, spec)),
        watch_(directory.path()),
        wishes_(directory.path()),
        trouble_(directory.path()) {
    if (options_.supervisor) supervisor_ = ProcessHandle(*options_.supervisor);
    if (options_.stop) wishes_.Stop(options_.stop->at_once, options_.stop->by);
    if (options_.from_the_start) {
      Say("job " + spec.id.text() + " (" + OneLine(spec.name) + ")");
    } else {
      tee_.Discover();
      tee_.SkipToLastLines(kLinesForLateComers);
    }
  }

  int Run() {
    while (!exit_code_) {
      HandleInterrupts();
      watch_.Clear();
      const bool changed = ReadJournal();
      if (changed) tee_.Discover();
      printing_ = tee_.Pump(screen_);
      wishes_.Pursue(steady_clock::now(), summary_.status);
      if (!IsEnd(summary_.status)) {
        if (const auto trouble = trouble_.Look(steady_clock::now())) Say(*trouble);
      }
      if (options_.tell_address && !std::exchange(told_address_, true)) TellAddress();
      ShowLiveLine();
      screen_.Flush();
      if (!exit_code_) DecideWhetherToGoOn();
      if (!exit_code_) Wait();
    }
    return *exit_code_;
  }

 private:
  // --- what a person wants ---

  void HandleInterrupts() {
    while (const std::optional<int> number = interrupts_.Next()) {
      switch (*number) {
        case SIGWINCH:
          screen_.LookAgain();
          break;
        case SIGHUP:
          Leave(128 + SIGHUP);
          break;
        case SIGUSR1:
        case SIGUSR2:
          wishes_.Signal(SignalName(*number));
          break;
        default:
          OnInterrupt(*number);
          break;
      }
    }
  }

  void OnInterrupt(int number) {
    if (IsEnd(summary_.status) || !options_.interrupt_stops_job) return Leave(ended_code_.value_or(128 + number));
    if (leave_at_) {
      leaves_when_told_ = true;
      return;
    }
    const bool again = interrupted_by_.has_value();
    if (!again) interrupted_by_ = number;
    if (again) leave_at_ = steady_clock::now() + kStopAtOnceMax;
    wishes_.Stop(again, SignalName(number));
    Say(again ? "stopping at once"
              : "stopping the job, " + FormatDuration(spec_.timing.stop_grace) +
                    " of grace; once more to stop it at once");
  }

  // Whatever keeps the job from ending does not keep a person who has said twice that he wants to go; only that the job
  // goes on to its end as if nothing had been said he would not want.
  void LeaveUnstopped() {
    const JobCare care = LookAtCare(directory_, kAskMax);
    const std::string why = !care.trouble.empty() ? care.trouble
                            : wishes_.pending()   ? wishes_.last_error()
                                                  : "its processes have not ended";
    Say("job " + spec_.id.text() + " was told to stop and is not over yet (" + why + "); still there: " +
        Describe(FindLivingParts(directory_)) + "; `aimaster stop --now " + spec_.id.text() + "` tries again");
    Leave(128 + interrupted_by_.value_or(SIGINT));
  }

  void Leave(int exit_code) {
    screen_.Live("");
    screen_.FlushBeforeLeaving();
    exit_code_ = exit_code;
  }

  // --- what happens ---

  // True when the job has changed, or might have.
  bool ReadJournal() {
    if (!reader_) {
      Result<JobReader> opened = JobReader::Open(directory_);
      if (!opened) {
        if (opened.error().kind == ErrorKind::kVersion) Fail(opened.error());
        return true;
      }
      reader_.emplace(*std::move(opened));
      if (!options_.from_the_start && !std::exchange(has_read_, true)) PassOverEvents();
    }
    const Result<int64_t> version = reader_->DataVersion();
    if (!version) {
      // Let go of, so that a master that finds damage is not kept from mending it by those who still read.
      reader_.reset();
      version_ = snapshot_version_ = -1;
      return false;
    }
    if (*version == version_) return false;
    const Result<JobSummary> summary = reader_->ReadSummary();
    const Result<std::vector<NumberedEvent>> events = reader_->ReadEventsAfter(last_event_);
    // Trouble for a moment, such as a disk that is full for the writer too: it is read again at the next turn.
    if (!summary || !events) return false;
    version_ = *version;
    // Output that a rank printed before something happened to it is shown before the line that tells of it.
    tee_.Discover();
    tee_.Pump(screen_);
    for (const NumberedEvent& event : *events) {
      if (const auto line = EventLine(event.event, screen_.terminal())) screen_.Line(*line);
      last_event_ = event.number;
    }
    summary_ = *summary;
    return true;
  }

  void PassOverEvents() {
    const Result<std::vector<NumberedEvent>> events = reader_->ReadEventsAfter(0);
    if (events && !events->empty()) last_event_ = events->back().number;
    if (const Result<JobSummary> summary = reader_->ReadSummary()) {
      Say("following job " + spec_.id.text() + " (" + OneLine(spec_.name) + "): " + std::string(Name(summary->status)) +
          ", round " + std::to_string(Value(summary->round)) + ", " + Count(summary->restarts, "restart"));
    }
  }

  void TellAddress() {
    const Result<MasterAddress> master = directory_.FindLiveMaster();
    told_address_ = master.has_value();
    if (master) Say("the job's master listens on " + ListeningText(*master, spec_));
  }

  void ShowLiveLine() {
    if (!screen_.terminal().is_terminal || !reader_ || IsEnd(summary_.status)) return screen_.Live("");
    const auto now = steady_clock::now();
    if (now < next_snapshot_) return;
    next_snapshot_ = now + kSnapshotEvery;
    if (snapshot_version_ != version_) {
      if (Result<JobSnapshot> snapshot = reader_->ReadSnapshot()) {
        snapshot_ = *std::move(snapshot);
        snapshot_version_ = version_;
      }
    }
    screen_.Live(LiveLine(spec_, snapshot_, Now()));
  }

  void Say(const std::string& text) {
    screen_.Line(screen_.terminal().Paint(Colour::kDim, "aimaster: " + ClockTime(Now())) + " " + text);
  }

  // --- the end ---

  void DecideWhetherToGoOn() {
    if (IsEnd(summary_.status)) return FinishWithJob();
    const auto now = steady_clock::now();
    const bool is_told = summary_.status == JobStatus::kStopping;
    if (leave_at_ && (now > *leave_at_ || (leaves_when_told_ && is_told))) return LeaveUnstopped();
    if (options_.give_up_after && now - began_ > *options_.give_up_after) {
      return FailWhenTooLate();
    }
    if (IsLookedAfter()) {
      unattended_since_.reset();
    } else if (!unattended_since_) {
      unattended_since_ = now;
    } else if (now - *unattended_since_ > kUnattendedMax) {
      FailUnattended();
    }
  }

  void FailWhenTooLate() {
    std::string text = "job " + spec_.id.text() + " has not ended within " + WholeSeconds(*options_.give_up_after) +
                       ", it is " + std::string(Name(summary_.status));
    const JobCare care = LookAtCare(directory_, kAskMax);
    if (wishes_.pending()) {
      text += "; its master has not taken the stop: " + (care.trouble.empty() ? wishes_.last_error() : care.trouble);
    } else if (options_.stop) {
      text += "; it was told to stop, and goes on with that" + (care.note.empty() ? "" : "; " + care.note);
    }
    Fail({ErrorKind::kEnvironment, text});
  }

  bool IsLookedAfter() {
    if (!supervisor_.HasEnded()) return true;
    if (const std::optional<ProcessIdentity> live = LiveSupervisor(directory_.path())) {
      supervisor_ = ProcessHandle(*live);
      return true;
    }
    return directory_.FindLiveMaster().has_value();
  }

  void FailUnattended() {
    const std::string said = LastLogLine(directory_.path());
    const std::string log = said.empty() ? "" : "; its log ends with: " + said;
    Fail({ErrorKind::kEnvironment, "nobody looks after job " + spec_.id.text() +
                                       " any more, its master and supervisor are " + "gone; `aimaster resume " +
                                       spec_.id.text() + "` takes it up again" + log});
  }

  void Fail(const Error& error) {
    screen_.Live("");
    screen_.Line("aimaster: " + OneLine(error.message));
    screen_.FlushBeforeLeaving();
    exit_code_ = kExitFailure;
  }

  // The journal has told of the end; now everything that ranks printed is shown to the last byte, and whoever looked
  // after the job gets a moment to leave, so that after us nothing of it runs any more.
  void FinishWithJob() {
    const auto now = steady_clock::now();
    if (!ended_code_) {
      ended_code_ = ExitCodeOfJob();
      farewell_until_ = now + kFarewellMax;
      tee_.Discover();
    }
    if (tee_.Pump(screen_) || !screen_.empty()) {
      printing_ = true;
      return;
    }
    if (!summary_shown_) {
      tee_.Finish(screen_);
      ShowSummary();
      summary_shown_ = true;
      screen_.Flush();
      if (!screen_.empty()) return;
    }
    if (now < farewell_until_ && IsLookedAfter()) return;
    // Where the supervisor is our child: not left behind as a zombie for an init that may not collect it.
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    exit_code_ = ended_code_;
  }

  void ShowSummary() {
    screen_.Live("");
    const Result<JobSnapshot> snapshot = reader_->ReadSnapshot();
    if (!snapshot) return;
    if (snapshot->summary.status == JobStatus::kFailed) ShowLastWords(*snapshot);
    for (const std::string& line : SummaryLines(spec_, *snapshot, directory_.path(), screen_.terminal()))
      screen_.Line(line);
  }

  // What the rank printed that made the job fail, unless that was shown already.
  void ShowLastWords(const JobSnapshot& snapshot) {
    const Result<std::vector<Explanation>> explanations = reader_->ReadExplanations();
    if (!explanations || explanations->empty()) return;
    const Explanation& last = explanations->back();
    if (!last.line || !last.judgement || !last.judgement->root_rank) return;
    const Rank rank = *last.judgement->root_rank;
    if (options_.tee == Tee::kAll || (options_.tee == Tee::kRank0 && rank == Rank{0})) return;
    const std::string file = FileOf(directory_, spec_, snapshot, *last.line).string();
    const std::vector<std::string> words = ReadLastWords(file, last.line->match.offset);
    if (words.empty()) return;
    const std::string prefix = screen_.terminal().is_terminal ? "  " : "aimaster: ";
    screen_.Line(prefix + "rank " + std::to_string(Value(rank)) + " said last (" +
                 PositionIn(file, last.line->match.offset) + "):");
    for (const std::string& line : words) screen_.Line(prefix + "  " + line);
  }

  int ExitCodeOfJob() const {
    if (options_.stop) return kExitSuccess;  // nothing of it runs any more: what was asked for
    if (summary_.status == JobStatus::kStopped && interrupted_by_) return 128 + *interrupted_by_;
    return ExitCodeOf(summary_);
  }

  // --- waiting ---

  void Wait() {
    std::array<pollfd, 4> events{};
    size_t count = 0;
    const auto watch = [&](int descriptor, short what) {
      if (descriptor >= 0) events[count++] = {.fd = descriptor, .events = what, .revents = 0};
    };
    watch(interrupts_.descriptor(), POLLIN);
    watch(watch_.descriptor(), POLLIN);
    if (!supervisor_.HasEnded()) watch(supervisor_.descriptor(), POLLIN);
    watch(screen_.waiting_for(), POLLOUT);
    const milliseconds pause = printing_ || IsEnd(summary_.status) ? kLookAgainSoon : kLookAgain;
    poll(events.data(), count, static_cast<int>(pause.count()));
  }

  const JobDirectory& directory_;
  const JobSpec& spec_;
  Interrupts& interrupts_;
  const FollowOptions options_;
  Screen screen_;
  RankTee tee_;
  DirectoryWatch watch_;
  MasterWishes wishes_;
  TroubleWatch trouble_;
  ProcessHandle supervisor_;

  std::optional<JobReader> reader_;
  bool has_read_ = false;
  int64_t version_ = -1;
  int64_t last_event_ = 0;
  JobSummary summary_;
  JobSnapshot snapshot_;
  int64_t snapshot_version_ = -1;
  steady_clock::time_point next_snapshot_{};

  const steady_clock::time_point began_ = steady_clock::now();
  std::optional<steady_clock::time_point> unattended_since_;
  steady_clock::time_point farewell_until_{};
  std::optional<int> interrupted_by_;
  std::optional<steady_clock::time_point> leave_at_;  // when the second interrupt has not helped
  bool leaves_when_told_ = false;                     // a third one: as soon as the journal knows of the stop
  bool told_address_ = false;
  std::optional<int> ended_code_;
  bool printing_ = false;
  bool summary_shown_ = false;
  std::optional<int> exit_code_;
};

}  // namespace

Tee ParseTee(std::string_view text) {
  const auto found = std::ranges::find(kTeeChoices, text);
  return found == kTeeChoices.end() ? Tee::kRank0 : static_cast<Tee>(found - kTeeChoices.begin());
}

int ExitCodeOf(const JobSummary& summary) {
  if (summary.status == JobStatus::kSucceeded) return kExitSuccess;
  // A job that did not succeed never looks as if it had.
  return summary.exit_code == 0 ? kExitFailure : summary.exit_code;
}

int Follow(const JobDirectory& directory, const JobSpec& spec, Interrupts& interrupts, FollowOptions options) {
  return Follower(directory, spec, interrupts, std::move(options)).Run();
}

}  // namespace aimaster::cli
