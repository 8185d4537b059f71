#include "master/master.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "detect/rule_merge.h"
#include "detect/rules_in_force.h"
#include "journal/crash_mark.h"
#include "journal/job_directory.h"
#include "journal/job_rules.h"
#include "journal/journal.h"
#include "journal/journal_file.h"
#include "journal/recovery.h"
#include "master/caretaker.h"
#include "master/clock.h"
#include "master/conductor.h"
#include "master/control_api.h"
#include "master/log.h"
#include "master/master_identity.h"
#include "master/notifier.h"
#include "master/stack_files.h"
#include "nodes/local_provider.h"
#include "wire/server.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;

// Exit statuses that the supervisor understands: from 64 to 78 it gives up, and after 79 it never does.
constexpr int kExitDone = 0, kExitAgain = 1, kExitUsage = 64, kExitFenced = 75, kExitVersion = 76, kExitWorld = 79;

constexpr Duration kAppendAgain = 1s;    // the disk was full: training goes on, decisions wait
constexpr Duration kAppendSlow = 5s;     // a write that lasts longer is told to people
constexpr Duration kStopMargin = 10s;    // beyond the grace, for everything to have been stopped
constexpr Duration kWatchInterval = 1s;  // how often silent agents are looked for

int Refuse(const Error& error) {
  Log("cannot run: " + error.message);
  switch (error.kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kNotFound:
      return kExitUsage;
    case ErrorKind::kVersion:
      return kExitVersion;
    case ErrorKind::kFenced:
      return kExitFenced;
    case ErrorKind::kDiskFull:
      return kExitWorld;
    case ErrorKind::kEnvironment:
      return kExitAgain;
  }
  return kExitAgain;
}

// Files that are missing for a moment, or an interface that is down, are no reason to give up a job that runs; for one
// that never has, `begun` is false, they are.
int RefuseForNow(const Error& error, bool begun) {
  if (!begun || error.kind == ErrorKind::kFenced || error.kind == ErrorKind::kVersion) return Refuse(error);
  Log("cannot run for now, and is tried again and again: " + error.message);
  return kExitWorld;
}

// The world around a Conductor: sockets, timers, the provider, and a thread that writes the journal, so that a disk
// that hangs for half a minute makes nobody believe that the master is dead. Everything else is on one thread.
class Master : private ControlApi::Job {
 public:
  Master(JobDirectory directory, JobSpec spec, RulesInForce rules, Journal journal, CrashMark mark, Recovered recovered)
      : directory_(std::move(directory)),
        spec_(std::move(spec)),
        rules_(std::move(rules)),
        journal_(std::move(journal)),
        mark_(std::move(mark)),
        loss_(journal_.loss()),
        engine_change_(std::move(recovered.engine_change)),
        conductor_(journal_.epoch(), directory_.path(), std::move(recovered.engine), rules_.table()),
        watch_(io_),
        deadline_(io_),
        append_again_(io_) {
    if (recovered.last) clock_.ContinueAfter(*recovered.last);
    conductor_.on_step = [this](const Input* under_way) {
      under_way != nullptr ? mark_.Enter(*under_way) : mark_.Leave();
    };
  }

  int Run() {
    if (const Status listening = Listen(); !listening) {
      return RefuseForNow(listening.error(), job().phase != Phase::kNew || !loss_.empty());
    }
    if (job().phase != Phase::kEnded) MakeProvider();
    if (!loss_.empty()) {
      TakeCare();
    } else {
      MakeNotifier();
      Drive([&] {
        is_read_only_ = mark_.crash() && mark_.crash()->times >= CrashMark::kCrashesMax;
        if (is_read_only_) {
          conductor_.BeginReadOnly(clock_.Now(), CrashMark::Explain(*mark_.crash()));
        } else {
          conductor_.Begin(clock_.Now(), spec_, engine_change_);
        }
      });
    }
    Watch();
    io_.run();
    writer_.join();
    return exit_status_;
  }

 private:
  const JobState& job() const { return conductor_.engine().job(); }

  void MakeProvider() {
    provider_ = std::make_unique<LocalProvider>(
        io_,
        LocalProvider::Options{
            .agent_program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "aimaster-agent",
            .job_directory = directory_.path(),
            .nodes = spec_.local_nodes},
        NodeProvider::Callbacks{.on_denied =
                                    [this](std::string reason) {
                                      if (caretaker_) return Log(reason);
                                      Drive([&] { conductor_.OnNodeDenied(clock_.Now(), std::move(reason)); });
                                    },
                                .on_trouble = [](const std::string& trouble) { Log(trouble); },
                                .on_lost =
                                    [this](NodeIndex node, std::string reason) {
                                      if (caretaker_) return Log(reason);
                                      Drive([&] { conductor_.OnNodeLost(clock_.Now(), node, std::move(reason)); });
                                    }});
  }

  // ---- the loop ----

  // Every call of the conductor goes through here: what follows from it is done before anything else happens.
  template <typename Call>
  void Drive(Call call) {
    call();
    for (Effect& effect : conductor_.TakeEffects()) std::visit(doer_, effect);
    WriteSoon();
    ArmDeadline();
  }

  struct Doer {
    Master& master;
    void operator()(Transmit& transmit) const {
      const auto found = master.sockets_.find(transmit.connection);
      if (found != master.sockets_.end()) found->second->Send(std::move(transmit.bytes));
    }
    void operator()(HangUp& hang_up) const {
      const auto found = master.sockets_.find(hang_up.connection);
      if (found != master.sockets_.end()) found->second->Close();
    }
    void operator()(AcquireFromProvider& acquire) const {
      if (master.provider_) master.provider_->Acquire(acquire.nodes);
    }
    void operator()(IsolateAtProvider& isolate) const {
      if (master.provider_) master.provider_->Isolate(isolate.node, isolate.reason);
    }
    void operator()(ReleaseAtProvider& release) const {
      if (master.provider_) master.provider_->Release(release.node);
    }
    void operator()(RecoverAtProvider& recover) const {
      if (master.provider_) master.provider_->Recover(recover.node, recover.reason);
    }
    void operator()(LookForSuccessor&) const { master.LeaveIfFenced(); }
    void operator()(StoreStacks& store) const { master.Store(std::move(store)); }
    void operator()(Print& print) const { Log(print.line); }
    void operator()(Leave& leave) const { master.LeaveWhenAllIsTold(leave.why); }
  };

  // Not at once: what else has arrived in this turn goes into the same write.
  void WriteSoon() {
    if (!conductor_.WantsToWrite() || append_waits_ || std::exchange(write_posted_, true)) return;
    boost::asio::post(io_, [this] {
      write_posted_ = false;
      if (conductor_.WantsToWrite() && !append_waits_) Write();
    });
  }

  void Write() {
    const JournalBatch& batch = conductor_.BeginWrite();
    if (batch.empty()) {
      Drive([this] { conductor_.OnDurable(clock_.Now()); });
      return;
    }
    writing_since_ = clock_.Now().monotonic;
    boost::asio::post(writer_, [this, &batch] {
      Status appended = journal_.Append(batch, job());
      boost::asio::post(
          io_, [this, appended = std::move(appended), broken = journal_.is_broken()] { OnAppended(appended, broken); });
    });
  }

  void OnAppended(const Status& appended, bool broken) {
    writing_since_.reset();
    if (EndIfHopeless(appended, broken)) return;
    if (appended) {
      if (notifier_) notifier_->Look();
      Drive([this] { conductor_.OnDurable(clock_.Now()); });
    } else {
      append_waits_ = true;
      Drive([&] { conductor_.OnNotDurable(appended.error().message); });
      append_again_.expires_after(kAppendAgain);
      append_again_.async_wait([this](auto error) {
        append_waits_ = false;
        if (!error) WriteSoon();
      });
    }
  }

  // When nothing can be appended by this process any more, whatever it tries.
  bool EndIfHopeless(const Status& journal, bool broken) {
    if (journal) return false;
    if (journal.error().kind == ErrorKind::kFenced) {
      End(kExitFenced, "another master has taken over");
    } else if (broken) {
      End(kExitAgain, journal.error().message);
    } else {
      return false;
    }
    return true;
  }

  void ArmDeadline() {
    const std::optional<Monotonic> next = conductor_.NextDeadline();
    if (next == armed_) return;
    armed_ = next;
    if (!next) {
      deadline_.cancel();
      return;
    }
    deadline_.expires_after(std::max<Duration>(*next - clock_.Now().monotonic, Duration::zero()));
    deadline_.async_wait([this](auto error) {
      if (error) return;
      armed_.reset();
      Drive([this] { conductor_.OnTime(clock_.Now()); });
    });
  }

  // ---- agents ----

  Status Listen() {
    const Result<MasterAddress> before = directory_.ReadMasterAddress();
    if (before && before->epoch > journal_.epoch()) return Fail(ErrorKind::kFenced, "another master has taken over");
    const Result<std::string> token = directory_.ReadToken();
    if (!token) return std::unexpected(token.error());
    const auto identity = FindMasterIdentity(spec_, directory_);
    if (!identity) return std::unexpected(identity.error());
    Result<std::unique_ptr<Server>> server = Server::Listen(
        io_,
        {.address = spec_.listen_address,
         .preferred_port = before ? before->port : uint16_t{0},
         .token = *token,
         .identity = *identity},
        [this](const HttpRequest& request) { return control_.Answer(request); },
        [this](std::shared_ptr<ServerSocket> socket) { OnConnection(std::move(socket)); });
    if (!server) return std::unexpected(server.error());
    server_ = std::move(*server);
    token_ = *token;
    address_ = {.host = AddressToDial(spec_.listen_address),
                .port = server_->port(),
                .pid = getpid(),
                .start_ticks = ProcessStartTicks(getpid()),
                .epoch = journal_.epoch(),
                .tls_fingerprint = *identity ? (*identity)->fingerprint() : ""};
    return directory_.WriteMasterAddress(address_);
  }

  void OnConnection(std::shared_ptr<ServerSocket> socket) {
    const ConnectionId id{++connections_};
    socket->on_message = [this, id](std::string_view bytes) {
      if (caretaker_) return Relay(caretaker_->OnMessage(clock_.Now().wall, id, bytes));
      Drive([&] { conductor_.OnMessage(clock_.Now(), id, bytes); });
    };
    socket->on_close = [this, id](const std::string& reason) {
      // The socket is calling us; it goes when it has finished.
      boost::asio::post(io_, [gone = sockets_.extract(id)] {});
      if (caretaker_) return caretaker_->OnDisconnected(id);
      Drive([&] { conductor_.OnDisconnected(id, reason); });
    };
    sockets_[id] = std::move(socket);
  }

  void Watch() {
    watch_.expires_after(kWatchInterval);
    watch_.async_wait([this](auto error) {
      if (error || LeaveIfFenced()) return;
      LookAtJournal();
      // People reach the job by them, and the next master needs them.
      if (const Status there = directory_.PutBack(spec_, token_); !there) LogOnce("files", there.error().message);
      if (caretaker_) {
        GoOnWithLossInTime();
      } else {
        Drive([this] { conductor_.Watch(clock_.Now()); });
      }
      Watch();
    });
  }

  // Damage is told, and what can be saved is, also while there is nothing to write.
  void LookAtJournal() {
    if (std::exchange(looks_at_journal_, true)) return;
    boost::asio::post(writer_, [this] {
      Status whole = journal_.Check();
      boost::asio::post(io_, [this, whole = std::move(whole), broken = journal_.is_broken()] {
        looks_at_journal_ = false;
        if (EndIfHopeless(whole, broken)) return;
        const std::string damage = whole ? "" : whole.error().message;
        if (damage != std::exchange(damage_, damage)) Log(whole ? "the journal is whole again" : damage);
      });
    });
  }

  // For as long as the trouble with it is the same.
  void LogOnce(const std::string& with, const std::string& trouble) {
    if (std::exchange(logged_[with], trouble) != trouble) Log(trouble);
  }

  // ---- notifications ----

  void MakeNotifier() {
    if (!Notifier::IsWanted(directory_)) return;
    notifier_ = std::make_unique<Notifier>(
        io_,
        Notifier::Options{.program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "aimaster-notify",
                          .job_directory = directory_},
        Notifier::Callbacks{.on_mark = [this](OutboxMark mark) { MarkInOutbox(std::move(mark)); },
                            .on_log = [](const std::string& line) { Log(line); }});
    notifier_->Start();
  }

  // By the writer, between two batches. The courier waits for the answer, so there is one mark for each sink at most.
  void MarkInOutbox(OutboxMark mark) {
    mark.at = clock_.Now();
    boost::asio::post(writer_, [this, mark = std::move(mark)]() mutable {
      Status marked = journal_.Mark(mark);
      boost::asio::post(io_, [this, mark = std::move(mark), marked = std::move(marked),
                              broken = journal_.is_broken()]() mutable { OnMarked(std::move(mark), marked, broken); });
    });
  }

  void OnMarked(OutboxMark mark, const Status& marked, bool broken) {
    if (EndIfHopeless(marked, broken)) return;
    const bool is_waited_for = mark.kind == OutboxMark::Kind::kDelivered || mark.kind == OutboxMark::Kind::kGaveUp;
    if (marked) {
      if (is_waited_for) notifier_->Marked(mark.sink);
      return;
    }
    LogOnce("sink " + mark.sink,
            "what was delivered to sink " + mark.sink + " can't be marked, trying again: " + marked.error().message);
    if (!is_waited_for) return;
    auto again = std::make_shared<boost::asio::steady_timer>(io_, kAppendAgain);
    again->async_wait([this, again, mark = std::move(mark)](auto error) mutable {
      if (!error) MarkInOutbox(std::move(mark));
    });
  }

  // ---- people ----

  std::string DescribeJob() const override { return job().spec.id.text() + " " + std::string(Name(job().status)); }

  std::string Trouble() const override {
    if (caretaker_) return loss_;
    if (is_read_only_) return conductor_.trouble();
    if (!conductor_.trouble().empty()) return "the journal cannot be written: " + conductor_.trouble();
    if (!damage_.empty()) return damage_;
    const Duration lasts = writing_since_ ? clock_.Now().monotonic - *writing_since_ : Duration::zero();
    return lasts < kAppendSlow ? "" : "the journal's storage has not answered for " + FormatDuration(lasts);
  }

  void Stop(bool at_once, const std::string& by) override {
    if (caretaker_) {
      if (!caretaker_->stops()) go_on_by_ = clock_.Now().monotonic + Duration(spec_.timing.stop_grace) + kStopMargin;
      stopped_by_ = by;
      stopped_at_once_ = at_once;
      return Relay(caretaker_->Stop(at_once));
    }
    Drive([&] { conductor_.Stop(clock_.Now(), at_once, by); });
  }

  void Signal(int signal) override {
    if (caretaker_) return Relay(caretaker_->Signal(signal));
    Drive([&] { conductor_.Signal(signal); });
  }

  std::string RequestStacks(const std::string& by) override {
    if (caretaker_) return loss_;
    std::string why_not;
    Drive([&] { why_not = conductor_.RequestStacks(clock_.Now(), by); });
    return why_not;
  }

  // Of a large job it is some megabytes, and the disk may be slow.
  void Store(StoreStacks store) {
    auto shared = std::make_shared<const StoreStacks>(std::move(store));
    boost::asio::post(writer_, [this, shared = std::move(shared)] {
      StacksCaptured stored = WriteStacks(directory_.path(), shared->capture, shared->instances);
      boost::asio::post(
          io_, [this, stored = std::move(stored)] { Drive([&] { conductor_.OnStacksStored(clock_.Now(), stored); }); });
    });
  }

  // ---- a journal that holds less than was durable ----

  void TakeCare() {
    Log(loss_);
    std::set<NodeIndex> nodes;
    for (uint32_t i = 0; i < spec_.local_nodes; ++i) {
      const std::string name = LocalProvider::NodeName(NodeIndex{i}, spec_.local_nodes);
      if (std::filesystem::exists(directory_.nodes() / name)) nodes.insert(NodeIndex{i});
    }
    caretaker_.emplace(journal_.epoch(), spec_, nodes);
    if (provider_ == nullptr) MakeProvider();
    provider_->Acquire({nodes.begin(), nodes.end()});
  }

  void Relay(Caretaker::Answer answer) {
    for (const std::string& line : answer.log) Log(line);
    for (auto& [connection, bytes] : answer.transmit) {
      const auto found = sockets_.find(connection);
      if (found != sockets_.end()) found->second->Send(std::move(bytes));
    }
    GoOnWithLossInTime();
  }

  // Only when a person wants nothing of the job to run any more, and nothing does, what is left of the journal counts
  // as it is. An agent that has not been heard by then is greeted by a conductor, which stops what it knows nothing of.
  void GoOnWithLossInTime() {
    if (!caretaker_->stops() || (!caretaker_->has_stopped() && clock_.Now().monotonic < go_on_by_)) return;
    // Not at once: it may be a message of the caretaker's that brought us here.
    boost::asio::post(io_, [this] {
      if (!std::exchange(caretaker_, std::nullopt)) return;
      Log("going on from what is left of the journal, since the job was stopped by " + stopped_by_);
      for (const auto& [connection, socket] : std::map(sockets_)) socket->Close();
      MakeNotifier();
      Drive([this] { conductor_.Begin(clock_.Now(), spec_, engine_change_); });
      Drive([this] {
        conductor_.Stop(clock_.Now(), stopped_at_once_,
                        stopped_by_ + "; its journal had been lost, what its ranks did since is in aimaster.log alone");
      });
    });
  }

  // ---- the end ----

  // A successor says so in master.json. The journal refuses our next append in any case; this is for a master that has
  // nothing to append, and must not go on commanding agents. A predecessor that was stopped before it could write there
  // may do so when it goes on, and then leave: agents would dial a dead master for ever, so we write again.
  bool LeaveIfFenced() {
    const Result<MasterAddress> address = directory_.ReadMasterAddress();
    const bool fenced = address && address->epoch > journal_.epoch();
    if (fenced) {
      End(kExitFenced, "another master has taken over");
    } else if (!address || address->epoch < journal_.epoch()) {
      const Status written = directory_.WriteMasterAddress(address_);
      if (address || written) Log("wrote this master's address again, an older one was there or none");
    }
    return fenced;
  }

  // The last word about the job is often the one that people wait for.
  void LeaveWhenAllIsTold(const std::string& why) {
    if (!notifier_) return End(kExitDone, why);
    notifier_->Drain([this, why] { End(kExitDone, why); });
  }

  void End(int status, const std::string& why) {
    if (!why.empty()) Log(why);
    if (status == kExitDone && provider_ != nullptr) provider_->Dismiss();
    exit_status_ = status;
    io_.stop();
  }

  const JobDirectory directory_;
  const JobSpec spec_;
  const RulesInForce rules_;
  Journal journal_;  // the writer's thread's, from the first Write on
  CrashMark mark_;
  const std::string loss_;              // why the journal was not to be trusted when it was opened; empty: it was
  std::optional<Caretaker> caretaker_;  // in place of the conductor until then
  Monotonic go_on_by_{};
  std::string stopped_by_;
  bool stopped_at_once_ = false;
  bool is_read_only_ = false;
  bool looks_at_journal_ = false;
  std::string damage_;  // of the journal's files, as they were found last
  std::map<std::string, std::string> logged_;
  const std::string engine_change_;
  MasterAddress address_;  // where agents and people find us
  std::string token_;
  Conductor conductor_;
  MasterClock clock_;
  const Doer doer_{*this};
  boost::asio::io_context io_{1};
  boost::asio::thread_pool writer_{1};
  std::unique_ptr<Server> server_;
  std::unique_ptr<NodeProvider> provider_;
  std::unique_ptr<Notifier> notifier_;
  ControlApi control_{*this};
  std::map<ConnectionId, std::shared_ptr<ServerSocket>> sockets_;
  uint64_t connections_ = 0;
  bool write_posted_ = false;
  bool append_waits_ = false;
  std::optional<Monotonic> writing_since_;
  std::optional<Monotonic> armed_;
  boost::asio::steady_timer watch_, deadline_, append_again_;
  int exit_status_ = kExitAgain;
};

}  // namespace

int RunMaster(const std::filesystem::path& job_directory) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of write(2), not our end
  signal(SIGHUP, SIG_IGN);
  const bool begun = HasRun(job_directory / "journal.db");
  Result<JobDirectory> directory = JobDirectory::Open(job_directory);
  if (!directory) return RefuseForNow(directory.error(), begun);
  Result<JobSpec> spec = directory->ReadSpec();
  if (!spec) return RefuseForNow(spec.error(), begun && access(directory->spec().c_str(), R_OK) != 0);
  Result<RulesInForce> rules = ReadRulesOf(*directory);
  if (!rules) return RefuseForNow(rules.error(), begun);
  Result<Journal> journal = Journal::OpenOrCreate(directory->journal(), HashOf(rules->table().set()));
  if (!journal) return Refuse(journal.error());
  CrashMark mark(directory->path() / "crash_mark");
  Result<Recovered> recovered = RecoverJob(*journal, mark);
  if (!recovered) return Refuse(recovered.error());
  if (!recovered->skipped_check.empty()) Log(recovered->skipped_check);
  return Master(std::move(*directory), std::move(*spec), std::move(*rules), std::move(*journal), std::move(mark),
                std::move(*recovered))
      .Run();
}

}  // namespace aimaster
