#include "master/master.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "detect/root_cause.h"
#include "detect/rule_table.h"
#include "engine/engine.h"
#include "journal/job_directory.h"
#include "journal/journal.h"
#include "master/agent_table.h"
#include "master/clock.h"
#include "master/commands.h"
#include "master/control_api.h"
#include "master/log.h"
#include "master/report_event.h"
#include "nodes/local_provider.h"
#include "wire/server.h"

namespace aimaster {
namespace {

using namespace std::chrono_literals;

// Exit statuses that the supervisor understands.
constexpr int kExitDone = 0, kExitAgain = 1, kExitUsage = 64, kExitFenced = 75, kExitVersion = 76;

constexpr Duration kAppendAgain = 1s;    // the disk was full: training goes on, decisions wait
constexpr Duration kWatchInterval = 1s;  // how often silent agents are looked for
constexpr Duration kSuspectAfter = 3s;   // three heartbeats
constexpr Duration kFarewell = 3s;       // for agents to leave after the job's end

class Master : private ControlApi::Job {
 public:
  Master(JobDirectory directory, Journal journal)
      : directory_(std::move(directory)),
        journal_(std::move(journal)),
        watch_(io_),
        deadline_(io_),
        append_again_(io_),
        farewell_(io_) {}

  int Run(const JobSpec& spec) {
    if (const Status recovered = Recover(); !recovered) return Refuse(recovered.error());
    if (const Status listening = Listen(); !listening) return Refuse(listening.error());
    if (engine_.job().phase == Phase::kEnded) {  // the predecessor died over its goodbyes: agents that ask are told
      SayGoodbye();
      io_.run();
      return exit_status_;
    }
    provider_ = std::make_unique<LocalProvider>(
        io_,
        LocalProvider::Options{
            .agent_program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "aimaster-agent",
            .job_directory = directory_.path(),
            .nodes = spec.local_nodes},
        NodeProvider::Callbacks{
            .on_denied = [this](std::string reason) { Feed(NodeDenied{std::move(reason)}); },
            .on_trouble = [](const std::string& trouble) { Log(trouble); },
            .on_lost = [this](NodeIndex node, std::string reason) { Feed(NodeLost{node, std::move(reason)}); }});
    if (engine_.job().phase == Phase::kNew) Feed(JobSubmitted{spec});
    Feed(MasterStarted{journal_.epoch()});
    Watch();
    io_.run();
    return exit_status_;
  }

 private:
  // --- the journal: what was known before ---

  Status Recover() {
    Result<std::vector<Input>> inputs = journal_.LoadInputs();
    if (!inputs) return std::unexpected(inputs.error());
    for (const Input& input : *inputs) engine_.Step(input);
    if (!inputs->empty()) clock_.ContinueAfter(inputs->back().at);
    return {};
  }

  int Refuse(const Error& error) {
    Log("cannot run: " + error.message);
    return error.kind == ErrorKind::kVersion  ? kExitVersion
           : error.kind == ErrorKind::kFenced ? kExitFenced
                                              : kExitAgain;
  }

  // --- the loop: event → engine → journal → actions ---

  void Feed(Event event) {
    waiting_.push_back({clock_.Now(), std::move(event)});
    FlushSoon();
  }

  void FlushSoon() {
    if (!std::exchange(flush_posted_, true)) boost::asio::post(io_, [this] { Flush(); });
  }

  void Flush() {
    flush_posted_ = false;
    for (Input& input : std::exchange(waiting_, {})) {
      StepResult result = engine_.Step(input);
      batch_.emplace_back(std::move(input), std::move(result));
    }
    Append();
  }

  void Append() {
    if (!batch_.empty()) {
      if (const Status appended = journal_.Append(batch_, engine_.job()); !appended)
        return OnAppendFailed(appended.error());
    }
    const auto durable = std::exchange(batch_, {});
    for (const auto& [input, result] : durable) Say(result);
    Acknowledge();
    if (std::exchange(taking_over_, false)) {
      TakeOver();
    } else {
      for (const auto& [input, result] : durable) {
        for (const Action& action : result.actions) Do(action);
      }
    }
    for (const NodeIndex node : std::exchange(to_resend_, {})) Resend(node);
    ArmDeadline();
  }

  void OnAppendFailed(const Error& error) {
    if (error.kind == ErrorKind::kFenced) return Leave(kExitFenced, "another master has taken over");
    Log("the journal cannot be written, trying again: " + error.message);
    append_again_.expires_after(kAppendAgain);
    append_again_.async_wait([this](auto cancelled) {
      if (!cancelled) Flush();  // with what has arrived since: all that is acknowledged then is durable
    });
  }

  // What was under way when a predecessor died is done again: every action may be.
  void TakeOver() {
    std::vector<NodeIndex> joined;
    for (const auto& [index, node] : engine_.job().nodes) {
      if (node.joined && !node.lost) joined.push_back(index);
    }
    // They are expected from now on, so one that stays silent is noticed though this master has never heard of it.
    for (const NodeIndex node : joined) agents_[node].last_heard = clock_.Now().monotonic;
    provider_->Acquire(joined);
    for (const Action& action : engine_.Outstanding()) Do(action);
  }

  static void Say(const StepResult& result) {
    for (const JobEvent& event : result.events) Log(event.type + ": " + event.message);
    for (const Decision& decision : result.decisions) {
      Log("decision " + decision.kind + ": " + decision.summary);
      for (const std::string& reason : decision.reasons) Log("  because " + reason);
    }
  }

  void ArmDeadline() {
    const std::optional<Monotonic> next = engine_.NextDeadline();
    if (!next) {
      deadline_.cancel();
      return;
    }
    deadline_.expires_after(std::max<Duration>(*next - clock_.Now().monotonic, Duration::zero()));
    deadline_.async_wait([this](auto error) {
      if (!error) Feed(Tick{});
    });
  }

  void Do(const Action& action) {
    if (const auto* acquire = std::get_if<AcquireNodes>(&action)) provider_->Acquire(acquire->nodes);
    if (const auto* isolate = std::get_if<IsolateNode>(&action)) provider_->Isolate(isolate->node, isolate->reason);
    if (const auto* judge = std::get_if<JudgeFailure>(&action)) JudgeNow(judge->judgement_number);
    if (std::holds_alternative<FinishJob>(action)) SayGoodbye();
    for (const auto& [node, command] : MakeCommands(engine_.job(), action, directory_.path())) Send(node, command);
  }

  void JudgeNow(uint32_t number) {
    const JobState& job = engine_.job();
    Feed(FailureJudged{number, Judge(job.failures, static_cast<uint32_t>(job.instance_of_rank.size()))});
  }

  void Send(NodeIndex node, const v1::Command& command) {
    v1::ToAgent message;
    *message.mutable_command() = command;
    agents_.Send(node, message);
  }

  // --- agents ---

  Status Listen() {
    const Result<MasterAddress> before = directory_.ReadMasterAddress();
    const Result<std::string> token = directory_.ReadToken();
    if (!token) return std::unexpected(token.error());
    Result<std::unique_ptr<Server>> server = Server::Listen(
        io_, {.preferred_port = before ? before->port : uint16_t{0}, .token = *token},
        [this](const HttpRequest& request) { return control_.Answer(request); },
        [this](std::shared_ptr<ServerSocket> socket) { Greet(std::move(socket)); });
    if (!server) return std::unexpected(server.error());
    server_ = std::move(*server);
    return directory_.WriteMasterAddress({.host = "127.0.0.1",
                                          .port = server_->port(),
                                          .pid = getpid(),
                                          .start_ticks = ProcessStartTicks(getpid()),
                                          .epoch = journal_.epoch()});
  }

  // A connection is nobody's until it has said Hello.
  void Greet(std::shared_ptr<ServerSocket> socket) {
    const std::weak_ptr<ServerSocket> weak = socket;
    strangers_.insert(socket);
    socket->on_close = [this, weak](const std::string&) { strangers_.erase(weak.lock()); };
    socket->on_message = [this, weak](std::string_view bytes) {
      const std::shared_ptr<ServerSocket> stranger = weak.lock();
      v1::ToMaster message;
      const bool hello = message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) && message.has_hello();
      if (!hello || !Welcome(stranger, message.hello())) stranger->Close();
    };
  }

  bool Welcome(const std::shared_ptr<ServerSocket>& socket, const v1::Hello& hello) {
    const NodeIndex node{hello.node()};
    const auto known = engine_.job().nodes.find(node);
    if (hello.greatest_epoch() > Value(journal_.epoch())) {
      LeaveIfFenced();  // it has seen our successor; an agent that a former master turned away would be lost to it
      return false;
    }
    const bool job_over = engine_.job().phase == Phase::kEnded;
    if (known == engine_.job().nodes.end() || known->second.lost || job_over) {
      // What still runs there belongs to nobody: its ranks count as dead, and others may have taken their place.
      v1::ToAgent message;
      message.mutable_refused()->set_job_over(true);
      message.mutable_refused()->set_reason(job_over ? "the job has ended" : "this node is no longer of this job");
      socket->Send(message.SerializeAsString());
      return false;
    }
    AgentLink& link = agents_[node];
    if (link.socket != nullptr) {  // its old connection is dead, whether we have noticed or not
      link.socket->on_message = nullptr;
      link.socket->on_close = nullptr;
      link.socket->Close();
    }
    strangers_.erase(socket);
    if (link.agent_id != hello.agent_id()) link = {.agent_id = hello.agent_id()};
    link.socket = socket;
    link.suspect = false;
    link.last_heard = clock_.Now().monotonic;
    socket->on_message = [this, node](std::string_view bytes) { Hear(node, bytes); };
    socket->on_close = [this, node](const std::string& reason) { Lose(node, reason); };

    v1::ToAgent welcome;
    welcome.mutable_welcome()->set_epoch(Value(journal_.epoch()));
    *welcome.mutable_welcome()->mutable_job() = MakeJobConfig(engine_.job().spec);
    agents_.Send(node, welcome);
    if (!known->second.joined) {
      Feed(NodeJoined{node, hello.node_name(), hello.address().empty() ? "127.0.0.1" : hello.address()});
    }
    to_resend_.insert(node);
    FlushSoon();
    return true;
  }

  // What this node has been asked for and has not answered; its former connection may have swallowed it.
  void Resend(NodeIndex node) {
    for (const Action& action : engine_.Outstanding()) {
      for (const auto& [to, command] : MakeCommands(engine_.job(), action, directory_.path())) {
        if (to == node) Send(node, command);
      }
    }
  }

  void Hear(NodeIndex node, std::string_view bytes) {
    v1::ToMaster message;
    AgentLink& link = agents_[node];
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      link.socket->Close();
      return;
    }
    link.last_heard = clock_.Now().monotonic;
    link.suspect = false;
    if (message.has_heartbeat()) {
      v1::ToAgent reply;
      reply.mutable_heartbeat_reply()->set_agent_wall_ns(message.heartbeat().wall_ns());
      reply.mutable_heartbeat_reply()->set_master_wall_ns(clock_.Now().wall.since_epoch.count());
      agents_.Send(node, reply);
    }
    if (message.has_report()) TakeIn(node, link, message.report());
  }

  void TakeIn(NodeIndex node, AgentLink& link, const v1::Report& report) {
    to_acknowledge_[node] = {link.agent_id, std::max(link.received, report.sequence())};
    if (report.sequence() > link.received) {  // else it was sent again before our acknowledgement arrived
      link.received = report.sequence();
      if (const std::optional<Event> event = ReportEvent(report, node, engine_.job())) Feed(*event);
    }
    FlushSoon();
  }

  // Only called when all that was taken in is durable.
  void Acknowledge() {
    for (const auto& [node, heard] : std::exchange(to_acknowledge_, {})) {
      if (agents_[node].agent_id != heard.first) continue;
      v1::ToAgent message;
      message.mutable_acknowledge()->set_sequence(heard.second);
      agents_.Send(node, message);
    }
  }

  void Lose(NodeIndex node, const std::string& reason) {
    AgentLink& link = agents_[node];
    link.socket = nullptr;
    link.suspect = true;
    if (engine_.job().phase != Phase::kEnded)
      Log("agent of node " + std::to_string(Value(node)) + " is disconnected: " + reason);
    if (engine_.job().phase == Phase::kEnded && agents_.connected() == 0) Leave(kExitDone, "");
  }

  void Watch() {
    watch_.expires_after(kWatchInterval);
    watch_.async_wait([this](auto error) {
      if (error || LeaveIfFenced()) return;
      const Monotonic now = clock_.Now().monotonic;
      for (auto& [node, link] : agents_.links()) {
        const Duration silence = now - link.last_heard;
        link.suspect = link.socket == nullptr || silence > kSuspectAfter;
        if (silence < Duration(engine_.job().spec.timing.node_lost_timeout)) continue;
        Log("node " + std::to_string(Value(node)) + " has been silent for " + FormatDuration(silence));
        link.last_heard = now;
        if (!engine_.job().nodes.at(node).lost) provider_->Recover(node, "silent for " + FormatDuration(silence));
      }
      Watch();
    });
  }

  // --- people ---

  std::string DescribeJob() const override {
    const JobState& job = engine_.job();
    return job.spec.id.text() + " " + std::string(Name(job.status));
  }

  void Stop(bool at_once, const std::string& by) override { Feed(StopRequested{at_once, by}); }

  void Signal(int signal) override {
    v1::Command command;
    command.set_epoch(Value(journal_.epoch()));
    command.mutable_signal_instances()->set_signal(signal);
    for (const auto& [node, link] : agents_.links()) Send(node, command);
  }

  // --- the end ---

  void SayGoodbye() {
    if (provider_ != nullptr) {
      for (const auto& [index, node] : engine_.job().nodes) provider_->Release(index);
      if (agents_.connected() == 0) return Leave(kExitDone, "");
    }
    farewell_.expires_after(kFarewell);
    farewell_.async_wait([this](auto error) {
      if (!error) Leave(kExitDone, "some agents did not say goodbye");
    });
  }

  // A successor says so in master.json. The journal refuses our next append in any case; this is for a master that has
  // nothing to append, and must not go on commanding agents.
  bool LeaveIfFenced() {
    const Result<MasterAddress> address = directory_.ReadMasterAddress();
    const bool fenced = address && address->epoch > journal_.epoch();
    if (fenced) Leave(kExitFenced, "another master has taken over");
    return fenced;
  }

  void Leave(int status, const std::string& why) {
    if (!why.empty()) Log(why);
    if (status == kExitDone && provider_ != nullptr) provider_->Dismiss();
    exit_status_ = status;
    io_.stop();
  }

  const JobDirectory directory_;
  Journal journal_;
  Engine engine_;
  MasterClock clock_;
  boost::asio::io_context io_{1};
  std::unique_ptr<Server> server_;
  std::unique_ptr<NodeProvider> provider_;
  ControlApi control_{*this};
  AgentTable agents_;
  std::set<std::shared_ptr<ServerSocket>> strangers_;

  std::vector<Input> waiting_;                                            // not stepped yet
  std::vector<std::pair<Input, StepResult>> batch_;                       // stepped, not durable yet
  std::map<NodeIndex, std::pair<std::string, uint64_t>> to_acknowledge_;  // agent process and report number
  std::set<NodeIndex> to_resend_;                                         // connected anew since the last append
  bool taking_over_ = true;                                               // until the first append
  bool flush_posted_ = false;

  boost::asio::steady_timer watch_, deadline_, append_again_, farewell_;
  int exit_status_ = kExitAgain;
};

// Names the rules in force: FNV-1a over every pattern and code, so that a change of any of them shows.
std::string RulesHash() {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  };
  const RuleSet& set = RuleTable::BuiltIn().set();
  for (const Rule& rule : set.rules) add(rule.code);
  for (const Pattern& pattern : ListPatterns(set)) add(pattern.text);
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace

int RunMaster(const std::filesystem::path& job_directory) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of write(2), not our end
  signal(SIGHUP, SIG_IGN);
  const auto refuse = [](const Error& error) {
    Log("cannot run: " + error.message);
    return error.kind == ErrorKind::kVersion ? kExitVersion : kExitUsage;
  };
  Result<JobDirectory> directory = JobDirectory::Open(job_directory);
  if (!directory) return refuse(directory.error());
  Result<JobSpec> spec = directory->ReadSpec();
  if (!spec) return refuse(spec.error());
  Result<Journal> journal = Journal::OpenOrCreate(directory->journal(), RulesHash());
  if (!journal) {
    const int status = refuse(journal.error());
    return journal.error().kind == ErrorKind::kEnvironment ? kExitAgain : status;
  }
  return Master(std::move(*directory), std::move(*journal)).Run(*spec);
}

}  // namespace aimaster
